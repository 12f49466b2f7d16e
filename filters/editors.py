"""The visible table of rules that change text: which function finds their edits.

Adding one is one function, one line here and one golden pair in tests/golden/edits/.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from filters import boilerplate, c4, privacy
from filters.edits import Edits
from filters.segments import Texts
from filters.signals import Columns

Find = Callable[[Texts, Columns], Edits]


@dataclass(frozen=True)
class Editor:
    find: Find
    modules: tuple[str, ...]  # project modules whose code, with all they import, is fingerprinted
    files: tuple[str, ...] = ()  # data files that are part of it; relative ones stand in filters/
    reads: tuple[str, ...] = ()  # columns of documents that it needs beside text and `lang`
    settings: Any = None  # what corpus.yaml says to it, as JSON; part of the fingerprint


EDITORS: dict[str, Editor] = {
    "privacy": Editor(privacy.find, ("filters.privacy",)),
    "boilerplate": Editor(
        boilerplate.find,
        ("filters.boilerplate",),
        ("words/chrome.toml", "../kernels/simplified.tsv"),
        ("kind",),
    ),
    "c4": Editor(c4.find, ("filters.c4",), reads=("kind",)),
}
