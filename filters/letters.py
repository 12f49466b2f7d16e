"""Letters of a document by script, and what they tell: of which kind its language can be, and which
kind of Chinese it is. All functions take and give one number a document.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from filters import text as units
from kernels.cache import kept_arrays
from kernels.hashing import Bytes

Counts = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

# Function words of one kind of Chinese that the others do not write, or seldom.
_YUE = "嘅咗喺唔冇佢哋嗰啲嚟嘢睇咁咩噉俾攞瞓嚿"
_WUU = "搿伲覅侬"
_CLASSICAL = "之也而其曰矣焉乎者於于以乃哉與与兮"
_MODERN = "的了们們这這是个個没沒你吗嗎呢么麼什很把被给給她吧啊还還让讓说說哪"
# What Japanese does not write shows that a few Han are Chinese: these of the modern ones,
# simplified characters, and all Han but the 2,965 common ones of JIS X 0208 (level 1, to 0x989E).
_NOT_JAPANESE = "们們这這吗嗎么麼很没沒你她吧啊哪给让"
_LEVEL_2 = b"\x98\x9f"
_HAN = units.CHARS[0x3400:0xA000].tolist()

IDEOGRAPHIC = units.HAN | units.KANA | units.HANGUL
ODD_WIDTH = "０-９Ａ-Ｚａ-ｚｦ-ﾟ"  # full-width Latin, half-width kana; not the ，！ of Chinese text
VARIANTS = ("", "yue", "wuu", "lzh", "Hans", "Hant")


class Letters(NamedTuple):
    """Letters of each document: all, by script, and those that tell kinds of Chinese apart."""

    all: Counts
    han: Counts
    kana: Counts
    hangul: Counts
    latin: Counts
    upper: Counts
    hans: Counts
    hant: Counts
    yue: Counts
    wuu: Counts
    classical: Counts
    modern: Counts
    chinese: Counts  # that Japanese does not have, or seldom
    japanese: Counts  # Han that no kind of Chinese has
    odd_width: Counts  # ODD_WIDTH
    accented: Counts  # Latin letters À to ÿ

    def of(self, documents: Counts | Flags) -> Letters:
        """Those of some documents."""
        return Letters(*(counts[documents] for counts in self))


_VARIANTS = Path(__file__).parent / "words" / "han_variants.tsv"


def _classes() -> tuple[npt.NDArray[np.uint8], Counts]:
    """A class for each code point, and which classes each field of `Letters` counts; takes 160 ms,
    3 from the cache."""
    table = _VARIANTS.read_text(encoding="utf-8")
    variants = dict(line.split("\t") for line in table.splitlines())
    letters = units.CLASSES & units.LETTER != 0
    scripts = (units.HAN, units.KANA, units.HANGUL, units.LATIN)
    members: list[Any] = [
        letters,
        *(letters & (units.CLASSES & script != 0) for script in scripts),
        np.strings.isupper(units.CHARS),
        *(
            [ord(char) for char in chars]
            for chars in (
                variants["Hans"],
                variants["Hant"],
                _YUE,
                _WUU,
                _CLASSICAL,
                _MODERN,
                {*variants["Hans"], *_NOT_JAPANESE, *_rare_in_japanese()} - {*variants["Jpan"]},
                _only_japanese() - {*variants["Hans"], *variants["Hant"]},
            )
        ),
        [ord(char) for char in re.findall(f"[{ODD_WIDTH}]", "".join(units.CHARS.tolist()))],
        letters & (units.CHARS >= "À") & (units.CHARS <= "ÿ"),
    ]
    bits = np.zeros(0x110000, np.uint16)
    for number, member in enumerate(members):
        bits[member] |= 1 << number
    kinds, classes = np.unique(bits, return_inverse=True)
    return classes.astype(np.uint8), kinds[:, None] >> np.arange(len(members)) & 1


def _rare_in_japanese() -> set[str]:
    return {*_HAN} - _within("shift_jis", _LEVEL_2)


def _only_japanese() -> set[str]:
    """Of its common Han those that neither charset of Chinese has: 発 総 図, 働 込."""
    return _within("shift_jis", _LEVEL_2) - _within("gb2312") - _within("big5")


def _within(charset: str, end: bytes = b"\xff") -> set[str]:
    """The Han that a charset has before `end`."""
    return {char for char in _HAN if b"" < char.encode(charset, "ignore") < end}


# Of each code point a class; of each class, which fields of `Letters` it counts in.
CLASSES, FIELDS = kept_arrays([__file__, units.__file__, _VARIANTS], _classes)


def count(data: Bytes, offsets: Counts) -> Letters:
    """Letters of each text `data[offsets[i]:offsets[i + 1]]`."""
    counts = units.count_classes(data, offsets, CLASSES, len(FIELDS))
    return Letters(*(counts @ FIELDS).T)


def ideographic_weight(n: Letters) -> npt.NDArray[np.float64]:
    """Share of Han, kana and Hangul in the content: such a letter says as much as about three
    letters of an alphabet.
    """
    ideographic = n.han + n.kana + n.hangul
    return 3 * ideographic / np.maximum(n.all + 2 * ideographic, 1)


def is_korean(n: Letters) -> Flags:
    """Of the languages that write Han, kana or Hangul."""
    return n.hangul > n.han + n.kana


def is_japanese(n: Letters) -> Flags:
    """Japanese prose has .4 to .7 kana among its kana and Han; Chinese has hardly any."""
    return ~is_korean(n) & (n.kana > 0.2 * (n.han + n.kana))


def is_like_kanji(n: Letters) -> Flags:
    """Han of which some are of Japanese alone and no more of Chinese alone (原子力発電所),
    or all of Japanese, some simplified and some not (学習指導要領). Of these the model is believed
    if it says Japanese: of 35,913 Chinese documents and 200,321 lines of them that is none.
    """
    own: Flags = (n.japanese > 0) & (n.japanese >= n.chinese)
    mixed: Flags = (n.chinese == 0) & (n.hans > 0) & (n.hant > 0)
    return own | mixed


def is_plainly_chinese(n: Letters) -> Flags:
    """Nearly all Han, no kana or Hangul, and among them words of modern Chinese and characters that
    Japanese does not have: of 55,004 real documents 26,904 are such, and the model called none of
    them otherwise; asking it was a third of the time of Chinese text.
    """
    pure = (n.kana == 0) & (n.hangul == 0) & (ideographic_weight(n) >= 0.9)
    plainly: Flags = pure & (n.chinese >= 2) & (n.modern >= np.maximum(2, 0.02 * n.han))
    return plainly


def is_undecided(n: Letters) -> Flags:
    """A few Han characters that Chinese and Japanese share (language-detection #73, 東京都庁)."""
    undecided: Flags = (n.han < 16) & (n.han == n.all) & (n.chinese == 0)
    return undecided


def is_mojibake(n: Letters) -> Flags:
    """Bytes of another charset read as Latin-1: no language has accents on half of its letters
    (of 200 measured, Yanomami has most: .15); of GBK read so all but a few are such.
    """
    mojibake: Flags = (n.accented >= 4) & (2 * n.accented > n.all)
    return mojibake


def variant(n: Letters) -> Counts:
    """Which of `VARIANTS` a Chinese text is; 0 without evidence."""
    kinds = [
        (n.yue >= 2) & (n.yue >= 0.02 * n.han),
        (n.wuu >= 2) & (n.wuu >= 0.02 * n.han),
        (n.han >= 40) & (n.classical >= 0.06 * n.han) & (n.modern <= 0.1 * n.classical),
        n.hans > 3 * n.hant,
        n.hant > 3 * n.hans,
    ]
    return np.select(kinds, range(1, len(VARIANTS)), 0)
