"""Signal group `language`: which language, how sure, which kind of Chinese, shares of scripts.

fastText's lid.176 looks at the first characters of the prose (filters/prose.py). Then the letters
of the whole document are counted by script. Where the two contradict each other, the document
decides and `lang_conflict` says so. It is a measurement: nothing is dropped here.
"""

from __future__ import annotations

import importlib.metadata
import re
import unicodedata
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from filters import text as units
from filters.columns import Signal
from filters.prose import prose
from filters.segments import Texts
from kernels.arrow import string_buffers

MODEL = Path(__file__).parent / "models" / "lid.176.ftz"
# Of the prose, 800 letters or 270 Han; Han cost the model thrice. Of 58,000 real documents 32 got
# another label than from 1,200 bytes, nearly all of them mojibake.
MODEL_BYTES = 800
HEAD_CHARS = 2_000  # of the document in which that prose is looked for, at first
HEAD_CHARS_OF_CODE = 40_000  # ... and where the first head is nearly all code and markup
MIN_PROSE_CHARS = 200

_FULL_WIDTH = re.compile(
    "[０-９Ａ-Ｚａ-ｚｦ-ﾟ]"
)  # Latin and half-width kana; not ，！ of Chinese text

LID = "Joulin et al. 2016, fastText lid.176"
_SHARE = pa.float32()
COLUMNS: dict[str, Signal] = {
    "lang": Signal(pa.string(), "text", "ISO 639-1, else fastText's label; und: no letters", LID),
    "lang_score": Signal(
        _SHARE, "text", "the model's probability; on conflict the weight of the script", LID
    ),
    "lang_variant": Signal(
        pa.string(),
        "text",
        "zh: Hans, Hant, yue, wuu, lzh where evidence is there; else ''",
        "assay",
    ),
    "lang_conflict": Signal(pa.bool_(), "text", "the model contradicted the script", "assay"),
    "han_share": Signal(_SHARE, "letters", "Han letters / letters", "Unicode 17 blocks"),
    "kana_share": Signal(_SHARE, "letters", "kana / letters", "Unicode 17 blocks"),
    "hangul_share": Signal(_SHARE, "letters", "Hangul / letters", "Unicode 17 blocks"),
    "latin_share": Signal(_SHARE, "letters", "Latin letters / letters", "Unicode 17 blocks"),
}

# Function words of one kind of Chinese that the others do not write, or seldom.
_YUE = "嘅咗喺唔冇佢哋嗰啲嚟嘢睇咁咩噉俾攞瞓嚿"
_WUU = "搿伲覅侬"
_CLASSICAL = "之也而其曰矣焉乎者於于以乃哉與与兮"
_MODERN = "的了们們这這是个個没沒你吗嗎呢么麼什很把被给給她吧啊还還让讓说說哪"
# Of the modern ones, what Japanese does not write: these show that a few Han are Chinese.
_NOT_JAPANESE = "们們这這吗嗎么麼很没沒你她吧啊哪给让"


class Letters(NamedTuple):
    """Letters of a document: all, by script, and those that tell kinds of Chinese apart."""

    all: int
    han: int
    kana: int
    hangul: int
    latin: int
    upper: int
    hans: int
    hant: int
    yue: int
    wuu: int
    classical: int
    modern: int
    chinese: int  # simplified or modern characters that Japanese does not have

    def ideographic_weight(self) -> float:
        """Share of Han, kana and Hangul in the content: such a letter says as much as about three
        letters of an alphabet.
        """
        ideographic = self.han + self.kana + self.hangul
        return 3 * ideographic / max(self.all + 2 * ideographic, 1)


_SCRIPTS = (units.HAN, units.KANA, units.HANGUL, units.LATIN)
_IDEOGRAPHIC_SCRIPTS = units.HAN | units.KANA | units.HANGUL
_IDEOGRAPHIC = ("zh", "ja", "ko")


def _letter_bits() -> units.Bits:
    """For each code point one bit per field of `Letters`."""
    table = (Path(__file__).parent / "words" / "han_variants.tsv").read_text(encoding="utf-8")
    variants = dict(line.split("\t") for line in table.splitlines())
    letters = units.CLASSES & units.LETTER != 0
    members: list[Any] = [
        letters,
        *(letters & (units.CLASSES & script != 0) for script in _SCRIPTS),
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
                {*variants["Hans"], *_NOT_JAPANESE} - {*variants["Jpan"]},
            )
        ),
    ]
    bits = np.zeros(0x110000, np.uint16)
    for number, member in enumerate(members):
        bits[member] |= 1 << number
    return bits


_LETTER_BITS = _letter_bits()


@cache
def model() -> Any:
    """The fastText model, loaded once per process.

    Raises:
        ImportError: none or several installed packages own the module `fasttext`.
    """
    check_owner(importlib.metadata.packages_distributions().get("fasttext", []))
    import fasttext

    return fasttext.load_model(str(MODEL))


def check_owner(owners: Sequence[str]) -> None:
    """Five packages on PyPI install a module `fasttext` and overwrite each other unnoticed."""
    if len(set(owners)) != 1:
        raise ImportError(
            f"module `fasttext` belongs to {sorted(set(owners)) or 'no package'}; exactly one may "
            "own it: uninstall them all, then `pip install fasttext-numpy2-wheel==0.9.2`"
        )


def measure(texts: Texts, languages: pa.Array) -> Mapping[str, pa.Array | np.ndarray]:
    """All columns of `COLUMNS` for a batch; `languages` is not read. See filters/signals.py."""
    counts, letters = count_letters(texts.array)
    found = identify(texts.array.to_pylist(), letters)
    scripts = counts[:, 1:5] / np.maximum(counts[:, :1], 1)
    return {
        "lang": pa.array([lang for lang, _, _ in found], pa.string()),
        "lang_score": np.array([score for _, score, _ in found], np.float32),
        "lang_variant": pa.array(
            [
                variant(n) if lang == "zh" else ""
                for (lang, _, _), n in zip(found, letters, strict=True)
            ],
            pa.string(),
        ),
        "lang_conflict": pa.array([conflict for _, _, conflict in found], pa.bool_()),
        **{
            name: scripts[:, i].astype(np.float32)
            for i, name in enumerate(("han_share", "kana_share", "hangul_share", "latin_share"))
        },
    }


def count_letters(texts: pa.Array) -> tuple[npt.NDArray[np.int64], list[Letters]]:
    """Letters of each text, as rows of an array and by name."""
    counts = units.count_bits(*string_buffers(texts), _LETTER_BITS, len(Letters._fields))
    return counts, [Letters(*row) for row in counts.tolist()]


def identify(texts: Sequence[str], letters: Sequence[Letters]) -> list[tuple[str, float, bool]]:
    """Language, score and conflict of each text."""
    found = [("und", 0.0, False)] * len(texts)
    lettered = [i for i, n in enumerate(letters) if n.all]
    views = [_view(texts[i], letters[i]) for i in lettered]
    _, seen = count_letters(pa.array(views, pa.string()))
    for i, (guess, score), view in zip(lettered, predict(views), seen, strict=True):
        found[i] = _settle(texts[i], letters[i], view, guess, score)
    return found


def _view(text: str, letters: Letters) -> str:
    """What the model sees of a text."""
    view = prose(text[:HEAD_CHARS])
    if len(view) < MIN_PROSE_CHARS and len(text) > HEAD_CHARS:
        view = prose(text[:HEAD_CHARS_OF_CODE])
    if not any(char.isalpha() for char in view):
        view = " ".join(text[:HEAD_CHARS].split())
    view = view.encode()[:MODEL_BYTES].decode(errors="ignore")
    if _FULL_WIDTH.search(view):
        view = unicodedata.normalize("NFKC", view)
    if 2 * letters.upper > letters.all:  # "PROJECT TAGGING CRITERIA" is Korean to the model
        view = view.lower()
    return view


def predict(views: list[str]) -> list[tuple[str, float]]:
    """The model's language and probability for texts of one line; Chinese is zh in every form."""
    if not views:
        return []
    labels, scores = model().predict(views)
    found = []
    for label, score in zip(labels, scores, strict=True):
        name = label[0].removeprefix("__label__") if label else "und"
        found.append(
            ("zh" if name in ("yue", "wuu") else name, min(float(score[0]), 1.0) if label else 0.0)
        )
    return found


def _settle(
    text: str, n: Letters, view: Letters, guess: str, score: float
) -> tuple[str, float, bool]:
    """The model's guess against the letters `n` of the whole document."""
    share = n.ideographic_weight()
    if share < 0.1 if guess in _IDEOGRAPHIC else share < 0.5 <= view.ideographic_weight():
        # Code may outnumber the prose: a Chinese sentence under a long listing is still Chinese.
        share = count_letters(pa.array([prose(text)]))[1][0].ideographic_weight()
    script = _language_of_script(n)
    if guess not in _IDEOGRAPHIC:
        if share < 0.5:
            return guess, score, False
    elif share < 0.1:  # a few Chinese names in an English page
        rest = "".join(c for c in text if not units.CLASSES[ord(c)] & _IDEOGRAPHIC_SCRIPTS)
        guess, score = predict([_view(rest, n)])[0]
        return ("und", 0.0, True) if guess in _IDEOGRAPHIC else (guess, score, True)
    elif guess == script or (guess == "ja" and script == "zh" and n.kana > 0.05 * (n.han + n.kana)):
        return guess, min(score, 0.5) if _undecided(n) else score, False
    if _undecided(n):
        return "und", min(score, 0.5), True
    return script, share, True


def _language_of_script(n: Letters) -> str:
    """Japanese prose has .4 to .7 kana among its kana and Han; Chinese has hardly any."""
    if n.hangul > n.han + n.kana:
        return "ko"
    return "ja" if n.kana > 0.2 * (n.han + n.kana) else "zh"


def _undecided(n: Letters) -> bool:
    """A few Han characters that Chinese and Japanese share (language-detection #73, 東京都庁)."""
    return n.han < 16 and n.han == n.all and not n.chinese


def variant(n: Letters) -> str:
    """Which Chinese: one of Hans, Hant, yue, wuu, lzh, or "" without evidence."""
    if n.yue >= 2 and n.yue >= 0.02 * n.han:
        return "yue"
    if n.wuu >= 2 and n.wuu >= 0.02 * n.han:
        return "wuu"
    if n.han >= 40 and n.classical >= 0.06 * n.han and n.modern <= 0.1 * n.classical:
        return "lzh"
    if n.hans > 3 * n.hant:
        return "Hans"
    return "Hant" if n.hant > 3 * n.hans else ""
