"""docs/signals.md: every signal, its unit, formula and source, as the tables of the code have them.

python benchmarks/signal_tables.py            # prints the page; a test holds docs/signals.md to it
python benchmarks/signal_tables.py --write
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from filters import classifier, faithful_groups, perplexity, urls
from filters.columns import Signal
from filters.signals import GROUPS
from pipeline.groups import DEFAULT
from pipeline.transforms import decontaminate, substrings

DOCS = Path(__file__).resolve().parent.parent / "docs" / "signals.md"
HEAD = """# Every signal

Made by `python benchmarks/signal_tables.py --write` from the tables of the code; a test compares.
In SQL a column is `<group>.<column>`; those of `language` stand by themselves. Shares are 0 to 1.
Units are those of [filters.md](filters.md#units-of-text), whose first table says which page tells
how far to trust a group.
"""
# Groups that other keys of corpus.yaml than `signals` make.
BY_KEY: dict[str, tuple[str, Mapping[str, Signal]]] = {
    "<name>": ("classifiers: {<name>: model.bin}", classifier.COLUMNS),
    "perplexity": ("perplexity: models.npz", perplexity.COLUMNS),
    "urls": ("urls: {block: [list.txt]}", urls.COLUMNS),
    "contamination": ("decontaminate: {sets: {...}}", decontaminate.COLUMNS),
    "substrings": ("substrings: {min_bytes: 300}", substrings.COLUMNS),
    **{
        f"{name}_faithful": (f"faithful: [{name}]", columns)
        for name, columns in faithful_groups.COLUMNS.items()
    },
}


def page() -> str:
    return "\n".join([HEAD, *_tables()]) + "\n"


def _tables() -> Iterator[str]:
    for name, group in GROUPS.items():
        asked = "`signals: default`, `all`" if name in DEFAULT else f"`signals: [{name}]`, `all`"
        yield from _table(name, asked, group.columns)
    for name, (key, columns) in BY_KEY.items():
        yield from _table(name, f"`{key}`", columns)


def _table(name: str, asked: str, columns: Mapping[str, Signal]) -> Iterator[str]:
    yield from (f"## `{name}`", "", f"{asked}", "", "| column | unit | what | source |")
    yield "| --- | --- | --- | --- |"
    for column, signal in columns.items():
        cells = (signal.unit, signal.formula, signal.source or "assay")
        yield f"| `{column}` | {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"
    yield ""


if __name__ == "__main__":
    if sys.argv[1:] == ["--write"]:
        DOCS.write_text(page(), encoding="utf-8")
    else:
        print(page(), end="")
