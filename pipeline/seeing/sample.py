"""`assay sample CORPUS --where ...`: random documents that a predicate keeps, and that it drops.

Which ones depends on the seed and on ids, not on how the corpus is cut.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from pipeline.amounts import counted
from pipeline.finished import reading
from pipeline.seeing.asking import Row, checked, rows
from pipeline.syntax import text_literal

FATES = {"kept": "true", "dropped": "false", "null": "null"}  # what the predicate says
EXAMPLE = """examples:
  assay sample runs/web --where "gopher.pass"
  assay sample runs/web --where "ads.score < 0.2" --only dropped -n 10
  assay sample runs/web --where "c4.pass" --within "source = 'forum' and lang = 'zh'" --seed 2"""


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="assay sample",
        description="Print random documents that a predicate keeps, and random ones it drops.",
        epilog=EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("corpus", help="folder or URL of a corpus")
    parser.add_argument("--where", required=True, help="SQL over the columns of `documents`")
    parser.add_argument("--within", help="only of documents for which this is true")
    parser.add_argument("-n", type=int, default=3, help="of each kind (default %(default)s)")
    parser.add_argument("--only", choices=FATES, help="one kind; null: the predicate says neither")
    parser.add_argument("--seed", type=int, default=0, help="another one, other documents")
    parser.add_argument("--chars", type=int, default=600, help="of each text (default %(default)s)")
    parser.add_argument("--json", action="store_true", help="whole documents, one a line")
    options = parser.parse_args(argv)
    if options.n < 1:
        parser.error(f"-n {options.n}: at least 1")
    with reading(options.corpus) as root:
        fates = [options.only] if options.only else list(FATES)
        found = sample(root, options.where, options.within, fates, options.n, options.seed)
        counts = count(root, options.where, options.within)
    if options.json:
        for row in found:
            print(json.dumps(row, ensure_ascii=False, default=str))
        return 0
    print("\n".join(shown(found, counts, options.where, options.chars)))
    return 0


def count(root: Path, where: str, within: str | None) -> dict[str, int]:
    """Documents for each of `FATES`."""
    question = (
        f"select {_fate(where)} as fate, count(*) as documents from documents "
        f"where {checked(within)} group by 1"
    )
    return {row["fate"]: row["documents"] for row in rows(root, question)}


def sample(
    root: Path, where: str, within: str | None, fates: list[str], n: int, seed: int
) -> list[Row]:
    """`n` documents of each fate, with `fate`, in order of fates; fewer where there are fewer.

    Raises:
        SqlError: a predicate that is none.
    """
    listed = ", ".join(map(text_literal, fates))
    chosen = rows(
        root,
        f"select id, {_fate(where)} as fate from documents where {checked(within)} "
        f"and {_fate(where)} in ({listed}) qualify row_number() over "
        f"(partition by fate order by md5(id || '{seed}')) <= {n} order by md5(id || '{seed}')",
    )
    if not chosen:
        return []
    ids = ", ".join(text_literal(row["id"]) for row in chosen)
    columns = "id, source, lang, url, num_chars, text"
    known = {r["id"]: r for r in rows(root, f"select {columns} from documents where id in ({ids})")}
    chosen.sort(key=lambda row: fates.index(row["fate"]))
    return [row | known[row["id"]] for row in chosen]


def shown(found: list[Row], counts: dict[str, int], where: str, chars: int) -> list[str]:
    """Lines for a terminal."""
    total = max(1, sum(counts.values()))
    lines = [
        f"{where}: "
        + ", ".join(
            f"{fate} {counts[fate]:,} ({counts[fate] / total:.1%})"
            for fate in FATES
            if counts.get(fate)
        )
    ]
    for row in found:
        url = f"  {row['url']}" if row["url"] else ""
        lines.append(f"\n--- {row['fate']}  {row['id']}  {row['source']}  {row['lang']}{url}")
        lines.append(row["text"][:chars])
        if row["num_chars"] > chars:
            lines.append(f"... {counted(row['num_chars'] - chars, 'more character')}")
    return lines


def _fate(where: str) -> str:
    return (
        f"case when {checked(where)} then 'kept' when not {checked(where)} then 'dropped' "
        "else 'null' end"
    )
