"""How many of the words that sound text in a language has, stand in a text: for Gopher's rule in
English, and FineWeb2's in Chinese, Cantonese and classical Chinese.
"""

from __future__ import annotations

import functools

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from filters.names import Keys, Positions
from filters.wordruns import Words, word_hash
from kernels.compile import kernel

# en: table A1 of Gopher. zh, yue, lzh: `stopwords` of FineWeb2's configs cmn_Hani, yue_Hani and
# lzh_Hani (github.com/huggingface/fineweb-2, commit d331bee) without "·", which is a mark, and 香港
# and 可以, two words each here. A simplified and a traditional form are one word, there two.
STOP_WORDS: dict[str, tuple[str, ...]] = {
    "en": ("the", "be", "to", "of", "and", "that", "have", "with"),
    "zh": (
        *("的", "年", "在", "月", "是", "和", "日", "了", "于於", "为為", "有", "被", "人", "中"),
        *("他", "与與", "后後", "也", "而", "由"),
    ),
    "yue": (
        *("嘅", "係", "年", "喺", "有", "佢", "月", "个個", "咗", "一", "同", "呢", "人", "唔"),
        *("都", "到", "号號", "国國", "啲", "后後", "就", "会會", "市", "镇鎮", "而", "嚟", "由"),
        *("嗰", "做", "为為"),
    ),
    "lzh": (
        *("之", "年", "以", "为為", "其", "也", "国國", "不", "人", "于於", "大", "者", "有"),
        *("一", "而", "曰", "王", "中", "子", "日", "月", "军軍", "三", "帝", "所", "至", "事"),
        *("学學", "自", "二", "与與", "时時", "州"),
    ),
}
_SLOTS = 1 << 14


def lists_of(languages: pa.Array, lists: dict[str, str]) -> Positions:
    """The number in STOP_WORDS of the list of each text; -1 where its language has none in `lists`
    (language -> list)."""
    found = pc.index_in(languages, value_set=pa.array(list(lists)))
    numbers = [list(STOP_WORDS).index(name) for name in lists.values()]
    places = pc.fill_null(found, len(numbers)).to_numpy(zero_copy_only=False)
    of_texts: Positions = np.array([*numbers, -1], np.int32)[places]
    return of_texts


def num_stop_words(words: Words, lists: Positions) -> Positions:
    """Distinct words of its list in each text; 0 where the list is -1."""
    return _count(words, lists, *_table())


@functools.cache
def _table() -> tuple[Keys, npt.NDArray[np.uint8]]:
    """By list and hash modulo _SLOTS: the hash of the stop word there, and its number."""
    hashes = np.zeros((len(STOP_WORDS), _SLOTS), np.uint64)
    numbers = np.zeros((len(STOP_WORDS), _SLOTS), np.uint8)
    for which, entries in enumerate(STOP_WORDS.values()):
        for number, entry in enumerate(entries):
            for word in [entry] if entry.isascii() else list(entry):
                value = word_hash(word)
                slot = which, value % _SLOTS
                assert hashes[slot] == 0, f"stop words collide at {word!r}; change _SLOTS"
                hashes[slot], numbers[slot] = value, number
    return hashes, numbers


@kernel
def _count(
    words: Words, lists: Positions, hashes: Keys, numbers: npt.NDArray[np.uint8]
) -> Positions:
    counts = np.zeros(len(lists), np.int32)
    for text in range(len(lists)):
        if lists[text] < 0:
            continue
        seen = 0
        for value in words.vocabulary[words.starts[text] : words.starts[text + 1]]:
            slot = int(value % np.uint64(_SLOTS))
            if hashes[lists[text], slot] == value:
                seen |= 1 << int(numbers[lists[text], slot])
        while seen:
            counts[text] += seen & 1
            seen >>= 1
    return counts
