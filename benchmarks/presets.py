"""The tables of docs/presets.md about presets, made from `RECIPES`, `OWN` and text.

    python benchmarks/presets.py                        print the rules, and what six documents get
    python benchmarks/presets.py --write                renew them in the docs
    python benchmarks/presets.py --sample DIR --write   also the share that each recipe keeps, by
                                                        source of DIR/{zh,en}.jsonl.gz

tests/benchmarks/test_presets_tables.py compares all but the last with the docs.
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from filters.presets import LEFT_OUT, OWN, RECIPES, Bound, Rule, expression, needs, reasons
from filters.segments import Texts
from filters.signals import GROUPS

HERE = Path(__file__).resolve().parent
DOCS = HERE.parent / "docs" / "presets.md"
SIX = HERE / "data" / "six_documents.jsonl"
Row = dict[str, Any]


def rules_of(presets: Mapping[str, Sequence[Rule]]) -> Iterator[str]:
    """Preset x rule x unit x threshold x source x correction."""
    yield "| rule | unit | threshold | source | corrected |"
    yield "| --- | --- | --- | --- | --- |"
    for preset, rules in presets.items():
        left = f"beside these rules: {LEFT_OUT[preset]}" if preset in LEFT_OUT else ""
        yield f"| **{preset}** |  |  |  | {left} |"
        for rule in rules:
            bounds = [(key, bound) for key, bound in rule.bounds.items() if not bound.is_off]
            cells = (
                f"`{rule.name}`",
                _unit(rule),
                _said({key: _range(bound) for key, bound in bounds}),
                _said({key: bound.source for key, bound in bounds}),
                _said({k: b.correction for k, b in rule.bounds.items() if b.correction}),
            )
            yield f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def _unit(rule: Rule) -> str:
    columns = dict(GROUPS["language"].columns)
    group, _, name = rule.signal.partition(".")
    if rule.signal == "num_chars":
        return "characters"
    signal = GROUPS[group].columns[name] if name else columns[rule.signal]
    return f"{signal.unit} per {rule.per.split('_')[-1].rstrip('s')}" if rule.per else signal.unit


def _range(bound: Bound) -> str:
    if bound.minimum is None:
        return f"{'<' if bound.is_below else '≤'} {bound.maximum:,.6g}"
    if bound.maximum is None:
        return f"≥ {bound.minimum:,.6g}"
    return f"{bound.minimum:,.6g} … {bound.maximum:,.6g}"


def _said(by_key: dict[str, str]) -> str:
    """What is said of each language; once where all say the same."""
    if len(set(by_key.values())) <= 1:
        (key, text), *others = by_key.items() or [("", "")]
        return text if others or not key else f"{key}: {text}"
    return "; ".join(f"{key.removeprefix('zh-')}: {text}" for key, text in by_key.items())


ALL = RECIPES | {"clean": OWN["clean"]}  # without what asks for addresses, which texts lack


def measured(texts: Sequence[str], kinds: Sequence[str], presets: Iterable[str]) -> pa.Table:
    """Rows as in the `documents` view, as far as presets read it."""
    batch = Texts(pa.array(texts, pa.large_string()))
    found = {name: pa.array(c) for name, c in GROUPS["language"].measure(batch, {}).items()}
    table: dict[str, Any] = dict(found)
    for name in sorted(set().union(*map(needs, presets)) - {"language"}):
        columns = GROUPS[name].measure(batch, {"lang": found["lang"]})
        table[name] = pa.table({n: pa.array(columns[n]) for n in columns}).to_struct_array()
    return pa.table(table | {"kind": kinds, "num_chars": list(map(len, texts))})


def six_documents() -> Iterator[str]:
    """Which recipes keep six short documents, and why not."""
    given = [json.loads(line) for line in SIX.read_text(encoding="utf-8").splitlines()]
    table = measured([row["text"] for row in given], [row["kind"] for row in given], RECIPES)
    yield "| document | language | kept by | dropped by |"
    yield "| --- | --- | --- | --- |"
    with duckdb.connect() as connection:
        connection.register("documents", table)
        for number, row in enumerate(given):
            verdicts = [_verdict(connection, preset, number) for preset in RECIPES]
            said = dict(zip(RECIPES, verdicts, strict=True))
            kept = ", ".join(preset for preset, why in said.items() if why == "")
            dropped = "; ".join(f"{preset}: {why}" for preset, why in said.items() if why)
            lang, variant = (table[name][number].as_py() for name in ("lang", "lang_variant"))
            named = f"{lang}-{variant}".rstrip("-")
            yield f"| {row['name']} | {named} | {kept or 'none'} | {dropped or 'none'} |"


def _verdict(connection: duckdb.DuckDBPyConnection, preset: str, number: int) -> str | None:
    """The rules that drop a document; "" where none does, None without rules for its language."""
    columns = [expression(preset), "lang || '-' || lang_variant"]
    columns += [rule.value for rule in RECIPES[preset]]
    columns += [fails for _, fails in reasons(preset)]
    query = f"select {', '.join(columns)} from documents limit 1 offset {number}"
    passes, key, *rest = connection.execute(query).fetchall()[0]
    if passes is None:
        return None
    rules = RECIPES[preset]
    values, failed = rest[: len(rules)], rest[len(rules) :]
    return ", ".join(
        f"`{rule.name}` {value:.3g} (not {_range(rule.bound(key))})"
        for rule, value, fails in zip(rules, values, failed, strict=True)
        if fails
    )


def kept(sample: Path) -> Iterator[str]:
    """The share of documents that each recipe keeps, and our own cuts, by source."""
    for language in ("zh", "en"):
        with gzip.open(sample / f"{language}.jsonl.gz", "rt", encoding="utf-8") as file:
            given = [json.loads(line) for line in file]
        table = measured([row["text"] for row in given], ["web"] * len(given), ALL)
        table = table.append_column("source", pa.array([row["source"] for row in given]))
        names = [name for name, rules in ALL.items() if language in rules[0].bounds]
        shares = ", ".join(f"avg(({expression(name)})::int) as {name}" for name in names)
        with duckdb.connect() as connection:
            connection.register("documents", table)
            rows = connection.execute(
                f"select source, count(*) as n, {shares} from documents where lang = '{language}' "
                "group by 1 having n >= 5 order by 1"
            ).fetchall()
        yield from ("", f"| {language}: source | documents | {' | '.join(names)} |")
        yield f"| --- | --- |{' --- |' * len(names)}"
        for source, n, *found in rows:
            yield f"| {source} | {n:,} | {' | '.join(f'{100 * share:.0f}' for share in found)} |"


def replaced(text: str, name: str, lines: Iterator[str]) -> str:
    """`text` with a table between its two marks."""
    begin, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->"
    pattern = re.compile(f"{re.escape(begin)}.*?{re.escape(end)}", re.S)
    made = "\n".join(lines)
    found, times = pattern.subn(lambda _: f"{begin}\n{made}\n\n{end}", text)
    if times != 1:
        raise ValueError(f"{DOCS}: marks {begin.strip()!r} and {end!r} stand there {times} times")
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--write", action="store_true", help="into docs/presets.md")
    parser.add_argument("--sample", type=Path, help="folder with zh.jsonl.gz and en.jsonl.gz")
    options = parser.parse_args()
    tables = {
        "recipes": rules_of(RECIPES),
        "own cuts": rules_of(OWN),
        "six documents": six_documents(),
    }
    if options.sample:
        tables["kept share"] = kept(options.sample)
    if not options.write:
        for lines in tables.values():
            print("\n".join(lines), end="\n\n")
        return
    text = DOCS.read_text(encoding="utf-8")
    for name, lines in tables.items():
        text = replaced(text, name, lines)
    DOCS.write_text(text, encoding="utf-8")
    print(f"wrote {', '.join(tables)} into {DOCS}")


if __name__ == "__main__":
    main()
