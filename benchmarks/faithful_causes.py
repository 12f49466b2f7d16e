"""Why datatrove's formulas decide otherwise over our words, document by document: for faithful.py.

datatrove's words become ours in steps; the first one after which the decision is ours is the cause.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from filters import faithful, spacy_words, text

Measured = dict[str, faithful.Measured]  # step -> what the formulas then say


def _without_marks(words: list[str]) -> list[str]:
    return [word for word in words if not faithful.MARKS.issuperset(word)]


def _in_parts(words: list[str]) -> list[str]:
    return [part for word in words for part in text.words(word)]


STEPS = {
    "marks": _without_marks,  # are no words
    "parts": _in_parts,  # addresses, paths, numbers with units are several words
}
ONCE = "once"  # no n-gram stands twice: the rule compares the length of whichever comes first
REST = "rest"  # what spaCy cuts and we do not: do|n't, it|'s
CAUSES = (ONCE, *STEPS, REST)
FORMULAS = {"gopher": faithful.gopher, "fineweb": faithful.fineweb}


class Splits:
    """datatrove's words of texts, and what the formulas make of them after each step: kept, for
    several rules ask for them."""

    def __init__(self) -> None:
        self._kept: dict[tuple[str, str], tuple[list[str], Measured]] = {}

    def of(self, found: str, group: str) -> tuple[list[str], Measured]:
        if (found, group) not in self._kept:
            words = first = spacy_words.words(found)
            measured = {}
            for name, step in STEPS.items():
                words = step(words)
                measured[name] = FORMULAS[group](found, words)
            self._kept[found, group] = first, measured
        return self._kept[found, group]


def cause(
    splits: Splits, found: str, group: str, signal: str, passes: Callable[[float], bool], kept: bool
) -> str:
    """Why a rule does not keep (drop) over our words what it does over datatrove's."""
    words, measured = splits.of(found, group)
    if signal.startswith("top_"):
        n = int(signal.split("_")[1])
        grams = Counter(zip(*(words[i:] for i in range(n)), strict=False))
        if max(grams.values(), default=0) == 1:
            return ONCE
    for name, values in measured.items():
        if passes(values[signal]) != kept:
            return name
    return REST
