"""The visible table of signal groups: what is measured, by which function, into which columns.

A group is one plain function over a batch of texts. Adding a signal group is one function, one
line here and one golden pair in tests/golden/.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from filters import (
    ads,
    boilerplate,
    broken,
    c4,
    chars,
    code,
    copied,
    fineweb,
    generated,
    gopher,
    hosts,
    language,
    language_mix,
    lines,
    markup,
    privacy,
    repeats,
    spun,
    unsafe,
)
from filters.addresses import SUFFIXES_FILE
from filters.columns import Signal
from filters.segments import Texts
from filters.shipped import AD_FILES, UNSAFE_FILES

# texts (one `Texts` for all groups: what one of them found serves the others), the columns of
# `reads` (pa.string arrays; `lang` is always there, "" where the group runs before language) -> one
# array per column, in the order of `columns`
Columns = Mapping[str, pa.Array]
Measure = Callable[[Texts, Columns], Mapping[str, "pa.Array | np.ndarray"]]


@dataclass(frozen=True)
class Group:
    measure: Measure
    columns: Mapping[str, Signal]
    modules: tuple[str, ...]  # project modules whose code, with all they import, is fingerprinted
    files: tuple[str, ...] = ()  # data files that are part of it; relative ones stand in filters/
    reads: tuple[str, ...] = ()  # columns of documents that it needs beside text: kind, url, domain
    settings: Any = None  # what corpus.yaml says to it, as JSON; part of the fingerprint


SIMPLIFIED = "../kernels/simplified.tsv"

GROUPS: dict[str, Group] = {
    "language": Group(
        language.measure,
        language.COLUMNS,
        ("filters.language",),
        ("models/lid.176.ftz", "words/han_variants.tsv"),
    ),
    "language_mix": Group(
        language_mix.measure,
        language_mix.COLUMNS,
        ("filters.language_mix",),
        ("models/lid.176.ftz", "words/han_variants.tsv"),
    ),
    "gopher": Group(gopher.measure, gopher.COLUMNS, ("filters.gopher",)),
    "c4": Group(c4.measure, c4.COLUMNS, ("filters.c4",)),
    "fineweb": Group(fineweb.measure, fineweb.COLUMNS, ("filters.fineweb",)),
    "chars": Group(chars.measure, chars.COLUMNS, ("filters.chars",)),
    "lines": Group(lines.measure, lines.COLUMNS, ("filters.lines",)),
    "repeats": Group(repeats.measure, repeats.COLUMNS, ("filters.repeats",)),
    "markup": Group(markup.measure, markup.COLUMNS, ("filters.markup",)),
    "privacy": Group(privacy.measure, privacy.COLUMNS, ("filters.privacy",)),
    "code": Group(code.measure, code.COLUMNS, ("filters.code",), reads=("kind",)),
    "broken": Group(broken.measure, broken.COLUMNS, ("filters.broken",)),
    "generated": Group(
        generated.measure,
        generated.COLUMNS,
        ("filters.generated",),
        ("words/generated.tsv", "words/style.tsv", SIMPLIFIED),
    ),
    "boilerplate": Group(
        boilerplate.measure,
        boilerplate.COLUMNS,
        ("filters.boilerplate",),
        ("words/chrome.toml", SIMPLIFIED),
        ("kind",),
    ),
    "unsafe": Group(unsafe.measure, unsafe.COLUMNS, ("filters.unsafe",), UNSAFE_FILES),
    "ads": Group(ads.measure, ads.COLUMNS, ("filters.ads",), AD_FILES),
    "copied": Group(copied.measure, copied.COLUMNS, ("filters.copied",), AD_FILES),
    "spun": Group(
        spun.measure,
        spun.COLUMNS,
        ("filters.spun",),
        ("words/synonyms.tsv", "words/han_words.tsv", SIMPLIFIED),
    ),
    "hosts": Group(hosts.measure, hosts.COLUMNS, ("filters.hosts",), (SUFFIXES_FILE,), ("domain",)),
}
