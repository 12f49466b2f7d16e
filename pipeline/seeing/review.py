"""`assay review CORPUS --where ...`: read documents blind, one key a label; and what labels say.

Blind: neither source, address nor scores are shown, and documents come in an order of their own.
"""

from __future__ import annotations

import argparse
import getpass
import os
import re
import shutil
import sys
import termios
import textwrap
import tty
from collections.abc import Callable
from itertools import combinations
from pathlib import Path

from pipeline.amounts import counted
from pipeline.config import ConfigError
from pipeline.finished import reading
from pipeline.objects import is_url
from pipeline.seeing import labels
from pipeline.seeing.agreement import weighted_kappa, wilson
from pipeline.seeing.asking import Row, checked, rows
from pipeline.seeing.rubrics import RESERVED, RUBRICS, Rubric, rubric
from pipeline.syntax import text_literal

EXAMPLE = """examples:
  assay review runs/web --where "not gopher.pass" -n 200 --per source
  assay review runs/web --rubric education -n 100
  assay review runs/web --summary --where "ads.score >= 0.2"    (of labels that are there)

keys while reading: {keys}"""


def main(argv: list[str]) -> int:
    keys = ", ".join(f"{key!r} {what}" for key, what in RESERVED.items())
    parser = argparse.ArgumentParser(
        prog="assay review",
        description="Label documents by hand, blind, with single keys. Labels belong to contents "
        "and stay when the corpus is prepared anew; in SQL they are the view `labels`.",
        epilog=EXAMPLE.format(keys=keys),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("corpus", help="folder of a corpus")
    parser.add_argument("--where", help="of documents for which this is true (default: all)")
    parser.add_argument("-n", type=int, default=50, help="documents (default %(default)s)")
    parser.add_argument("--per", help="-n for each value of this column, such as source")
    parser.add_argument(
        "--rubric", default="keep", help=f"{', '.join(RUBRICS)}, or a YAML file (default: keep)"
    )
    parser.add_argument("--reviewer", default=getpass.getuser(), help="default: your user name")
    parser.add_argument("--seed", type=int, default=0, help="another one, other documents")
    parser.add_argument("--summary", action="store_true", help="what the labels say; asks nothing")
    options = parser.parse_args(argv)
    if is_url(options.corpus):
        parser.error("labels are kept in a folder; give a corpus on this machine")
    if re.fullmatch(r"[\w.@-]+", options.reviewer) is None:
        parser.error(f"--reviewer {options.reviewer!r}: letters, digits, `.`, `_`, `@` and `-`")
    asked = rubric(options.rubric)
    with reading(options.corpus) as root:
        if not options.summary:
            found = choose(
                root, options.where, options.n, options.per, options.seed, options.reviewer, asked
            )
            label(Path(options.corpus), found, options.reviewer, asked, _keys())
        print("\n".join(summary(root, Path(options.corpus), asked, options.where)))
    return 0


def choose(
    root: Path,
    where: str | None,
    n: int,
    per: str | None,
    seed: int,
    reviewer: str,
    asked: Rubric,
) -> list[Row]:
    """Contents that the reviewer has not labelled yet, in an order that says nothing of them.

    Raises:
        SqlError: `where` or `per` cannot be used.
    """
    group = checked(per) if per else "true"
    order = f"md5(content_hash || '{seed}')"
    known = (
        f"select content_hash from labels where reviewer = {text_literal(reviewer)} "
        f"and rubric = {text_literal(asked.id)}"
    )
    found = rows(
        root,
        f"select content_hash, min(id) as id from documents where {checked(where)} "
        f"group by content_hash, {group} qualify row_number() over "
        f"(partition by {group} order by {order}) <= {n} order by {order}",
    )
    done = {row["content_hash"] for row in rows(root, known)}
    left = [row for row in found if row["content_hash"] not in done]
    if not left:
        return []
    ids = ", ".join(text_literal(row["id"]) for row in left)
    texts = {
        r["id"]: r["text"]
        for r in rows(root, f"select id, text from documents where id in ({ids})")
    }
    return [row | {"text": texts[row["id"]]} for row in left]


def label(
    folder: Path, found: list[Row], reviewer: str, asked: Rubric, read_key: Callable[[], str]
) -> int:
    """Show each text and write its label at once; returns how many were labelled."""
    at = done = 0
    while at < len(found):
        key = _ask(found[at]["text"], asked, f"{at + 1} of {len(found)}", read_key)
        if key == "q":
            break
        if key == "u":
            at = max(0, at - 1)
            labels.append(folder, reviewer, asked.id, {found[at]["content_hash"]: None})
            continue
        if key != "s":
            labels.append(folder, reviewer, asked.id, {found[at]["content_hash"]: asked.keys[key]})
            done += 1
        at += 1
    return done


def _ask(text: str, asked: Rubric, place: str, read_key: Callable[[], str]) -> str:
    """The key that answers, after as many pages as the reviewer wants."""
    columns, height = shutil.get_terminal_size((100, 40))
    lines = [
        part
        for line in text.split("\n")
        for part in textwrap.wrap(line, columns // 2 if not line.isascii() else columns) or [""]
    ]
    answers = " ".join(f"[{key}]" for key in asked.keys)
    page = 0
    while True:
        shown = lines[page : page + height - 4]
        more = len(lines) - page - len(shown)
        tail = f"  (space: {counted(more, 'more line')})" if more else ""
        print("\n" * 2 + "\n".join(shown))
        print(f"--- {place}  {asked.question}  {answers}{tail}", flush=True)
        key = read_key()
        if key == " ":
            page = page + height - 4 if more else 0
        elif key in asked.keys or key in RESERVED:
            return key
        elif key == "":
            return "q"


def _keys() -> Callable[[], str]:
    """Single keys of a terminal; characters of any other input."""
    if not sys.stdin.isatty():
        return lambda: sys.stdin.read(1)
    number = sys.stdin.fileno()

    def read_key() -> str:
        before = termios.tcgetattr(number)
        try:
            tty.setcbreak(number)
            return os.read(number, 1).decode(errors="replace")
        finally:
            termios.tcsetattr(number, termios.TCSADRAIN, before)

    return read_key


def summary(root: Path, folder: Path, asked: Rubric, where: str | None) -> list[str]:
    """Share of bad documents by source with its interval, agreement of reviewers, and of a rule how
    many of the documents that it selects are bad.

    Raises:
        ConfigError: there is no label of this rubric.
    """
    table = labels.read(folder).to_pylist()
    found = [row for row in table if row["rubric"] == asked.id]
    if not found:
        known = sorted({row["rubric"] for row in table})
        raise ConfigError(
            f"{folder}: no labels of rubric {asked.id}; "
            + (f"there are some of {', '.join(known)}" if known else "make some without --summary")
        )
    contents: dict[str, list[float]] = {}
    for row in found:
        contents.setdefault(row["content_hash"], []).append(row["label"])
    bad = {c: sum(given) / len(given) < asked.bad_below for c, given in contents.items()}
    listed = ", ".join(map(text_literal, contents))
    question = (
        f"select content_hash, source, {checked(where)} as selected from documents "
        f"where content_hash in ({listed}) qualify row_number() over (partition by content_hash "
        "order by id) = 1"
    )
    documents = rows(root, question)
    lines = [f"{asked.id}: {counted(len(found), 'label')} of {counted(len(documents), 'document')}"]
    for source in sorted({row["source"] for row in documents}):
        of = [bad[row["content_hash"]] for row in documents if row["source"] == source]
        lines.append(f"  {source:<24} bad {_rate(sum(of), len(of))}")
    if where:
        for selected, what in ((True, "selected"), (False, "not selected"), (None, "NULL")):
            of = [bad[r["content_hash"]] for r in documents if r["selected"] is selected]
            if of or selected is not None:
                lines.append(f"  {what} by {where}: bad {_rate(sum(of), len(of))}")
    return lines + _agreements(found)


def _rate(hits: int, n: int) -> str:
    low, high = wilson(hits, n)
    return f"{hits} of {n}, {low:.0%} to {high:.0%}" if n else "none labelled"


def _agreements(found: list[Row]) -> list[str]:
    by_reviewer: dict[str, dict[str, float]] = {}
    for row in found:
        by_reviewer.setdefault(row["reviewer"], {})[row["content_hash"]] = row["label"]
    lines = []
    for a, b in combinations(sorted(by_reviewer), 2):
        both = sorted(by_reviewer[a].keys() & by_reviewer[b].keys())
        if both:
            ours, theirs = ([by_reviewer[who][c] for c in both] for who in (a, b))
            same = sum(x == y for x, y in zip(ours, theirs, strict=True))
            lines.append(
                f"  {a} and {b}: the same label for {same} of {len(both)}, weighted kappa "
                f"{weighted_kappa(ours, theirs):.2f}"
            )
    return lines
