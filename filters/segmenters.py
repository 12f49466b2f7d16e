"""Han segmenters: what is a word of Chinese, behind one function.

A signal counts Han characters: they need no dictionary, no release changes them, and they cost a
look at three bytes. Where real words are needed (a classifier's input, a recipe that was published
with them) one of SEGMENTERS cuts runs of Han; all other words stay those of filters/text.py.

jieba is made by rjieba, the same dictionary and model in Rust: of 127,000 words of the real sample
(12 sources) one was cut otherwise than by jieba 0.42.1, in a ninth of its time: 4.8 MB/s. It is
an extra, loaded when it is asked for first.
"""

from __future__ import annotations

import functools
import importlib.metadata
import itertools
import re
from collections.abc import Callable

import numpy as np

from filters import text as units
from filters.text import CLASSES, HAN, MARK

Cut = Callable[[str], list[str]]  # a text -> its pieces, in order, nothing left out


def _jieba() -> Cut:
    try:
        import rjieba
    except ImportError:
        raise ModuleNotFoundError(
            "segmenter 'jieba' needs the package rjieba; `pip install 'assay[segmenter]'`, "
            "or use 'han'"
        ) from None
    cut: Cut = rjieba.cut  # unknown words by its hidden Markov model, as jieba.cut does
    return cut


# Name -> what loads it, and the distribution whose version changes its words.
SEGMENTERS: dict[str, tuple[Callable[[], Cut], str]] = {
    "han": (lambda: list, ""),
    "jieba": (_jieba, "rjieba"),
}


@functools.cache
def cutter(segmenter: str) -> Cut:
    """The segmenter itself, over all of a text, punctuation and spaces too: what a recipe used
    that was published with it.

    Raises:
        ValueError: no such segmenter.
        ModuleNotFoundError: its package is not installed.
    """
    if segmenter not in SEGMENTERS:
        raise ValueError(f"no segmenter {segmenter!r}; known: {', '.join(SEGMENTERS)}")
    return SEGMENTERS[segmenter][0]()


def version(segmenter: str) -> str:
    """For a fingerprint or a model card: "han", "jieba by rjieba 0.2.2"."""
    cutter(segmenter)
    package = SEGMENTERS[segmenter][1]
    return f"{segmenter} by {package} {importlib.metadata.version(package)}" if package else "han"


def words(text: str, segmenter: str = "han") -> list[str]:
    """The words of a text, in order; those of filters/text.py where `segmenter` is "han".

    Raises: as `cutter`.
    """
    cut = cutter(segmenter)
    return units.words(text) if segmenter == "han" else words_by(cut, text)


def words_by(cut: Cut, text: str) -> list[str]:
    """The same, each run of Han cut by `cut`."""
    found: list[str] = []
    end = 0
    for run in _han_run().finditer(text):
        found += units.words(text[end : run.start()])
        end = run.end()
        first = len(found)
        for piece in cut(run[0]):
            if len(found) > first and CLASSES[ord(piece[0])] & MARK:
                found[-1] += piece  # a mark belongs to the word before it
            else:
                found.append(piece)
    return found + units.words(text[end:])


def _ranges(bits: int) -> str:
    """Characters with one of the bits, as ranges of a regular expression."""
    codes = np.flatnonzero(CLASSES & bits).tolist()
    borders = [i for i in range(1, len(codes)) if codes[i] != codes[i - 1] + 1]
    return "".join(
        f"\\U{codes[first]:08x}-\\U{codes[last - 1]:08x}"
        for first, last in itertools.pairwise([0, *borders, len(codes)])
    )


@functools.cache
def _han_run() -> re.Pattern[str]:
    """When it is first needed: 40 ms, and most processes cut no Chinese words."""
    return re.compile(f"[{_ranges(HAN)}][{_ranges(HAN | MARK)}]*")
