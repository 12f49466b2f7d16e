"""`assay review CORPUS --where ...`: read documents blind, one key a label.

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
from pathlib import Path
from typing import Any

from pipeline.amounts import counted
from pipeline.config import ConfigError
from pipeline.finished import reading
from pipeline.objects import is_url
from pipeline.seeing import labels
from pipeline.seeing.asking import Row, checked, rows
from pipeline.seeing.rubrics import RESERVED, RUBRICS, Rubric, rubric
from pipeline.seeing.summary import summary
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
            design = {name: getattr(options, name) for name in ("where", "per", "n", "seed")}
            drawn = draw(root, **design)
            if not drawn:
                asked_for = f"where {options.where}" if options.where else "at all"
                raise ConfigError(
                    f"{options.corpus}: no document {asked_for}: nothing to review; `assay sample "
                    f'{options.corpus} --where "..."` counts what a predicate keeps'
                )
            found = unlabelled(root, drawn, options.reviewer, asked)
            if not found:
                print(f"all {len(drawn):,} are labelled: -n more or another --seed")
            done = label(Path(options.corpus), found, options.reviewer, asked, _keys(), design)
            if found and not done and not has_labels(root, asked):
                print("no label was given; the same command begins here again")
                return 0
        print("\n".join(summary(root, Path(options.corpus), asked, options.where)))
    return 0


def draw(root: Path, where: str | None, per: str | None, n: int, seed: int) -> list[Row]:
    """Contents of a sample, `n` or `n` of each value of `per`, in an order that says nothing of
    them.

    Raises:
        SqlError: `where` or `per` cannot be used.
    """
    group = checked(per) if per else "true"
    order = f"md5(content_hash || '{seed}')"
    return rows(
        root,
        f"select content_hash, min(id) as id from documents where {checked(where)} "
        f"group by content_hash, {group} qualify row_number() over "
        f"(partition by {group} order by {order}) <= {n} order by {order}",
    )


def unlabelled(root: Path, drawn: list[Row], reviewer: str, asked: Rubric) -> list[Row]:
    """Those without a label of the reviewer, with their texts."""
    known = (
        f"select content_hash from labels where reviewer = {text_literal(reviewer)} "
        f"and rubric = {text_literal(asked.id)}"
    )
    done = {row["content_hash"] for row in rows(root, known)}
    left = [row for row in drawn if row["content_hash"] not in done]
    ids = ", ".join(text_literal(row["id"]) for row in left) or "''"
    texts = {
        r["id"]: r["text"]
        for r in rows(root, f"select id, text from documents where id in ({ids})")
    }
    return [row | {"text": texts[row["id"]]} for row in left]


def has_labels(root: Path, asked: Rubric) -> bool:
    """Whether anybody labelled anything by this rubric."""
    known = f"select count(*) as n from labels where rubric = {text_literal(asked.id)}"
    return bool(rows(root, known)[0]["n"])


def label(
    folder: Path,
    found: list[Row],
    reviewer: str,
    asked: Rubric,
    read_key: Callable[[], str],
    design: dict[str, Any] | None = None,
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
            given: dict[str, float | None] = {found[at]["content_hash"]: asked.keys[key]}
            labels.append(folder, reviewer, asked.id, given, design)
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
