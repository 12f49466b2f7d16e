"""Signal group `language_mix`: which languages stand in a document, block by block, and how much of
each. For pages in two languages, documentation half translated, quotations, classical Chinese in
modern; `lang` names one language a document.

A block (filters/blocks.py) is a paragraph, cut where lines change the kind of script. Chinese,
Japanese and Korean are told by their scripts, English by its function words; lid.176 is asked about
what else is prose in an alphabet. A block that tells nothing is of the document's language, if that
is written in its kind of script. Not in `default`: 2 to 4 CPU ms for a MB.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from filters import fasttext_predict, letters
from filters.blocks import ALPHABETIC, IDEOGRAPHIC, NO_WORDS, Blocks, blocks
from filters.columns import Signal
from filters.fasttext_file import Ids
from filters.language import model
from filters.letters import Letters
from filters.names import Offsets
from filters.segments import Texts

# An alphabetic block is English from this share of function words on: English prose has .3 to .45
# of them, the other large languages in a Latin script below .05.
MIN_ENGLISH = 1 / 8
# The model is asked about blocks of so many characters in words, with few symbols for each (prose
# has .05, code .2 and more), by their first bytes, and believed from a score on: to headings and
# lists of names it gives any language.
MIN_CHARS, MAX_SYMBOLS, ASKED_BYTES, MIN_SCORE = 60, 1 / 12, 240, 0.7
MIN_SHARE = 0.05  # of the characters, for a place in `languages`
MAX_LANGUAGES = 8

_SHARE = pa.float32()
_UNIT = "characters of words"
_OURS = ("zh", "en", "ja", "ko")
_VARIANTS = ("Hans", "Hant", "yue", "lzh")
PART = pa.struct(
    {
        "lang": pa.string(),
        "start": pa.int64(),  # byte of the text
        "end": pa.int64(),
        "num_blocks": pa.int32(),
    }
)
COLUMNS: dict[str, Signal] = {
    **{f"{name}_share": Signal(_SHARE, _UNIT, f"of blocks in {name}", "assay") for name in _OURS},
    "other_share": Signal(_SHARE, _UNIT, "of blocks in any other language", "assay"),
    "und_share": Signal(_SHARE, _UNIT, "of no known one: code, names, numbers", "assay"),
    **{
        f"{name.lower()}_share": Signal(
            _SHARE, _UNIT, f"of Chinese blocks of variant {name} (`lang_variant`)", "assay"
        )
        for name in _VARIANTS
    },
    "main_share": Signal(_SHARE, _UNIT, "of the language with most of them", "assay"),
    "num_switches": Signal(
        pa.int32(), "paragraphs", "times that a block is of another language than the last", "assay"
    ),
    "languages": Signal(
        pa.list_(pa.string()),
        "text",
        "languages of at least .05 of the characters, largest first, at most 8",
        "assay",
    ),
    "parts": Signal(
        pa.list_(PART),
        "paragraphs",
        "language, bytes and blocks of each run of blocks in one language",
        "assay",
    ),
}


def measure(texts: Texts, columns: Mapping[str, pa.Array]) -> Mapping[str, pa.Array | np.ndarray]:
    """All columns of `COLUMNS` for a batch; see filters/signals.py."""
    found = blocks(texts)
    lang = languages(texts, found, columns["lang"])
    text = np.repeat(np.arange(len(texts)), np.diff(found.offsets))
    # A column for each language that stands in the batch, and for those that have one anyway.
    ours, und = [_code(name) for name in _OURS], model().und
    seen = np.zeros(len(model().names), np.bool_)
    seen[lang] = seen[[*ours, und]] = True
    column, num_columns = np.cumsum(seen) - 1, int(seen.sum())
    by_language = np.bincount(
        text * num_columns + column[lang], found.chars, len(texts) * num_columns
    ).reshape(len(texts), num_columns)
    chars = np.maximum(by_language.sum(1), 1)
    shares = {
        f"{name}_share": by_language[:, column[code]]
        for name, code in zip(_OURS, ours, strict=True)
    }
    shares["und_share"] = by_language[:, column[und]].copy()
    shares["other_share"] = by_language.sum(1) - sum(shares.values())
    ideographic = np.flatnonzero(found.kinds == IDEOGRAPHIC)
    is_chinese = lang[ideographic] == _code("zh")
    variant = np.where(is_chinese, letters.variant(found.letters), 0)
    for name in _VARIANTS:
        of_it = (variant == letters.VARIANTS.index(name)) * found.chars[ideographic]
        shares[f"{name.lower()}_share"] = np.bincount(text[ideographic], of_it, len(texts))
    by_language[:, column[und]] = 0
    shares["main_share"] = by_language.max(1, initial=0)
    return {
        **{name: (shares[name] / chars).astype(np.float32) for name in COLUMNS if name in shares},
        "num_switches": _switches(text, lang, len(texts)),
        "languages": _listed(by_language / chars[:, None], np.flatnonzero(seen)),
        "parts": _parts(texts, found, lang),
    }


def languages(texts: Texts, found: Blocks, lang: pa.Array) -> Ids:
    """The language of each block (in `model().names`), where `lang` is that of each document."""
    documents = np.asarray(pc.fill_null(pc.index_in(lang, value_set=model().names), model().und))
    of_text = np.repeat(documents, np.diff(found.offsets))
    told = np.full(len(of_text), model().und, np.int32)
    ideographic = np.flatnonzero(found.kinds == IDEOGRAPHIC)
    alphabetic = np.flatnonzero(found.kinds == ALPHABETIC)
    told[ideographic] = _by_script(found.letters, of_text[ideographic])
    told[alphabetic] = _by_words(texts, found, alphabetic, of_text[alphabetic])
    return told


def _by_script(n: Letters, of_text: Ids) -> Ids:
    """The language of ideographic blocks with these letters, in texts of these languages."""
    zh, _, ja, ko, und = *map(_code, _OURS), model().und
    # A title in Han alone is in the language of its page; by itself it may be Japanese.
    shared = (n.kana == 0) & ((n.chinese == 0) | letters.is_like_kanji(n))
    han = np.where(shared & (of_text == ja), ja, zh)
    alone = letters.is_undecided(n) & ~model().is_ideographic(of_text)
    han = np.where(alone, und, han)
    return np.where(letters.is_korean(n), ko, np.where(letters.is_japanese(n), ja, han))


def _by_words(texts: Texts, found: Blocks, blocks: Offsets, of_text: Ids) -> Ids:
    """The language of those alphabetic blocks of `found`, in texts of these languages."""
    zh, en, ja, ko, und = *map(_code, _OURS), model().und
    is_english = found.english[blocks] >= np.maximum(MIN_ENGLISH * found.words[blocks], 2)
    told = np.where(model().is_ideographic(of_text), und, of_text)
    told[is_english] = en
    chars, symbols = found.chars[blocks], found.symbols[blocks]
    is_prose = (chars >= MIN_CHARS) & (symbols <= MAX_SYMBOLS * chars)
    asked = np.flatnonzero(~is_english & is_prose & (of_text != und))  # und: no mojibake
    if len(asked):
        begins = found.begins[blocks[asked]]
        ends = np.minimum(found.ends[blocks[asked]], begins + ASKED_BYTES)
        guess, score = fasttext_predict.predict(model().network, texts.data, begins, ends)
        guess = model().codes[guess]
        sure = (score >= MIN_SCORE) & ~np.isin(guess, [zh, en, ja, ko])
        told[asked[sure]] = guess[sure]
    return told


def _code(name: str) -> int:
    return int(pc.index(model().names, name).as_py())


def _switches(text: npt.NDArray[np.int64], lang: Ids, num_texts: int) -> npt.NDArray[np.int32]:
    """Of each text; blocks of no known language do not count."""
    known = lang != model().und
    text, lang = text[known], lang[known]
    turns = (text[1:] == text[:-1]) & (lang[1:] != lang[:-1])
    return np.bincount(text[1:][turns], minlength=num_texts).astype(np.int32)


def _listed(shares: npt.NDArray[np.float64], codes: npt.NDArray[np.int64]) -> pa.Array:
    """Of each row the names of the columns, languages `codes`, of at least MIN_SHARE, largest
    first."""
    row, column = np.nonzero(shares >= MIN_SHARE)
    order = np.lexsort((-shares[row, column], row))
    row, column = row[order], column[order]
    place = np.arange(len(row)) - np.searchsorted(row, row)
    row, column = row[place < MAX_LANGUAGES], column[place < MAX_LANGUAGES]
    offsets = np.searchsorted(row, np.arange(len(shares) + 1)).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(offsets), model().names.take(pa.array(codes[column])))


def _parts(texts: Texts, found: Blocks, lang: Ids) -> pa.Array:
    """Runs of blocks in one language, in order; a block without words goes with those before it."""
    blocks = np.flatnonzero(found.kinds != NO_WORDS)
    text = np.repeat(np.arange(len(texts)), np.diff(found.offsets))[blocks]
    changes = (np.diff(text) != 0) | (np.diff(lang[blocks]) != 0)
    first = np.flatnonzero(np.concatenate([[True], changes])) if len(blocks) else blocks
    last = np.append(first[1:], len(blocks))[: len(first)] - 1
    text, before = text[first], texts.offsets[text[first]]
    columns = [
        model().names.take(pa.array(lang[blocks[first]])),
        pa.array(found.begins[blocks[first]] - before),
        pa.array(found.ends[blocks[last]] - before),
        pa.array((last - first + 1).astype(np.int32)),
    ]
    offsets = np.searchsorted(text, np.arange(len(texts) + 1)).astype(np.int32)
    return pa.ListArray.from_arrays(
        pa.array(offsets), pa.StructArray.from_arrays(columns, fields=list(PART))
    )
