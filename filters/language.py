"""Signal group `language`: which language, how sure, which kind of Chinese, shares of scripts.

fastText's lid.176 looks at the first characters of the prose (filters/prose.py). Then the letters
of the whole document are counted by script. Where the two contradict each other, the document
decides and `lang_conflict` says so. It is a measurement: nothing is dropped here.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from filters import fasttext_predict, letters
from filters.columns import Signal
from filters.fasttext_file import Floats, Ids, Network, labels, read
from filters.letters import Counts, Flags, Letters
from filters.prose import prose
from filters.segments import Texts
from filters.text import CLASSES
from filters.views import views
from kernels.arrow import string_buffers
from kernels.hashing import Bytes

MODEL = Path(__file__).parent / "models" / "lid.176.ftz"
LID = "Joulin et al. 2016, fastText lid.176"
_SHARE = pa.float32()
COLUMNS: dict[str, Signal] = {
    "lang": Signal(pa.string(), "text", "ISO 639-1, else fastText's label; und: no language", LID),
    "lang_score": Signal(
        _SHARE,
        "text",
        "the model's probability; where letters decide (all Chinese prose), their weight",
        LID,
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

_FOLDED = {"yue": "zh", "wuu": "zh"}  # the model's labels for kinds of Chinese


class Model(NamedTuple):
    """lid.176, its languages as numbers."""

    network: Network
    names: pa.Array
    codes: Ids  # in `names`, of each label; then of `und`, which -1 so finds
    und: int
    zh: int
    ja: int
    ko: int

    def is_ideographic(self, lang: Ids) -> Flags:
        return np.isin(lang, (self.zh, self.ja, self.ko))


@cache
def model() -> Model:
    """Loaded once per process."""
    found, network = read(MODEL)
    names = [*found, "und"]
    codes = [names.index(_FOLDED.get(name, name)) for name in names]
    known = (names.index(name) for name in ("und", "zh", "ja", "ko"))
    return Model(network, pa.array(names), np.array(codes, np.int32), *known)


def codes() -> list[str]:
    """All that `lang` may be, sorted."""
    return sorted({"und", *(_FOLDED.get(name, name) for name in labels(MODEL))})


def measure(texts: Texts, columns: Mapping[str, pa.Array]) -> Mapping[str, pa.Array | np.ndarray]:
    """All columns of `COLUMNS` for a batch; no other columns are read. See filters/signals.py."""
    n = letters.count(texts.data, texts.offsets)
    lang, score, conflict = identify(texts.array, n)
    variant = np.where(lang == model().zh, letters.variant(n), 0)
    scripts = {"han": n.han, "kana": n.kana, "hangul": n.hangul, "latin": n.latin}
    return {
        "lang": model().names.take(pa.array(lang)),
        "lang_score": score,
        "lang_variant": pa.array(letters.VARIANTS).take(pa.array(variant)),
        "lang_conflict": conflict,
        **{
            f"{script}_share": (count / np.maximum(n.all, 1)).astype(np.float32)
            for script, count in scripts.items()
        },
    }


def identify(texts: pa.Array, n: Letters) -> tuple[Ids, Floats, Flags]:
    """Language (in `model().names`), score and conflict of each text, whose letters are `n`.

    Where these alone say that it is Chinese, the model is not asked, and the score is their weight.
    """
    plain = letters.is_plainly_chinese(n)
    if not plain.any():
        return _by_model(texts, n)
    lang = np.full(len(texts), model().zh, np.int32)
    score, conflict = letters.ideographic_weight(n).astype(np.float32), np.zeros(len(texts), bool)
    (others,) = np.nonzero(~plain)
    found = _by_model(texts.take(pa.array(others)), n.of(others))
    lang[others], score[others], conflict[others] = found
    return lang, score, conflict


def _by_model(texts: pa.Array, n: Letters) -> tuple[Ids, Floats, Flags]:
    """The same: the model's guess against the letters of the whole document."""
    und, zh, ja, ko = model().und, model().zh, model().ja, model().ko
    viewed = string_buffers(views(texts, n))
    lang, score = predict(*viewed)
    ideographic = model().is_ideographic(lang)
    share = letters.ideographic_weight(n)
    seen = letters.ideographic_weight(letters.count(*viewed))
    # Code may outnumber the prose: a Chinese sentence under a long listing is still Chinese.
    doubtful = np.flatnonzero(np.where(ideographic, share < 0.1, (share < 0.5) & (seen >= 0.5)))
    if len(doubtful):
        whole = pa.array([prose(texts[i].as_py()) for i in doubtful.tolist()], pa.string())
        share[doubtful] = letters.ideographic_weight(letters.count(*string_buffers(whole)))

    foreign = np.flatnonzero(ideographic & (share < 0.1))  # some Chinese names in an English page
    undecided = letters.is_undecided(n)
    script = np.where(letters.is_korean(n), ko, np.where(letters.is_japanese(n), ja, zh))
    kanji = (n.kana > 0.05 * (n.han + n.kana)) | (letters.is_like_kanji(n) & ~undecided)
    kanji &= (lang == ja) & (script == zh)
    conflict = ~np.where(ideographic, (lang == script) | kanji, share < 0.5)
    score[undecided] = np.minimum(score[undecided], 0.5)
    lang[conflict] = np.where(undecided, und, script)[conflict]
    score[conflict & ~undecided] = share[conflict & ~undecided]
    if len(foreign):
        lang[foreign], score[foreign] = _without_ideographs(texts, n, foreign)
        conflict[foreign] = True
    mojibake = letters.is_mojibake(n)
    silent = (n.all == 0) | mojibake
    lang[silent], score[silent], conflict[silent] = und, 0.0, mojibake[silent]
    return lang, score, conflict


def _without_ideographs(texts: pa.Array, n: Letters, documents: Counts) -> tuple[Ids, Floats]:
    """The model's guess for what else some documents hold; und where it stays ideographic."""
    kept = []
    for i in documents.tolist():
        codes = np.frombuffer(texts[i].as_py().encode("utf-32-le"), np.uint32)
        rest = codes[CLASSES[codes] & letters.IDEOGRAPHIC == 0]
        kept.append(rest.tobytes().decode("utf-32-le"))
    others = views(pa.array(kept, pa.string()), n.of(documents))
    lang, score = predict(*string_buffers(others))
    still = model().is_ideographic(lang)
    lang[still], score[still] = model().und, 0.0
    return lang, score


def predict(data: Bytes, offsets: Counts) -> tuple[Ids, Floats]:
    """The model's language and probability for texts in one line; Chinese is zh in every form."""
    if len(offsets) == 1:
        return np.empty(0, np.int32), np.empty(0, np.float32)
    found, scores = fasttext_predict.predict(model().network, data, offsets[:-1], offsets[1:])
    return model().codes[found], np.minimum(scores, np.float32(1))
