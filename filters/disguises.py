"""The ways in which an entry is written to hide it, beyond those that symbols fold away.

    微信         薇信, V信, VX ...: by words/disguises.tsv, also inside longer entries (加微信号)
    viagra~      v1agra, vi@gra ...: an entry that ends in ~ is found with digits for letters

A spelling with * there is an ordinary word too (威信, prestige): it is the entry only with a
character inserted (威❤信).
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path

from filters.automaton import Form

FILE = Path(__file__).with_name("words") / "disguises.tsv"
ASKS_FOR_DIGITS = "~"
MAX_SPELLINGS = 64  # of an entry with digits for letters

_DIGITS = {"a": "4@", "e": "3", "i": "1!", "o": "0", "s": "5$", "t": "7"}


@functools.cache
def disguises(path: Path = FILE) -> dict[str, tuple[str, ...]]:
    """Phrase -> its spellings."""
    rows = (line.split("\t") for line in path.read_text(encoding="utf-8").splitlines())
    return {phrase: tuple(spellings.split()) for phrase, spellings in rows}


def name(entry: str) -> str:
    """The entry as it is shown."""
    return entry.removesuffix(ASKS_FOR_DIGITS)


def forms(entries: Sequence[str]) -> list[Form]:
    """The forms of each entry: as it is, then its disguises."""
    return [form for number, entry in enumerate(entries) for form in _forms(number, entry)]


def _forms(number: int, entry: str) -> Iterator[Form]:
    text = name(entry)
    yield Form(number, text)
    if text != entry:
        for spelling in itertools.islice(_with_digits(text.lower()), MAX_SPELLINGS):
            yield Form(number, spelling)
    for phrase, spellings in disguises().items():
        if phrase in text.lower():
            for spelling in spellings:
                hidden = text.lower().replace(phrase, spelling.removesuffix("*"))
                yield Form(number, hidden, gapped=spelling.endswith("*"))


def _with_digits(text: str) -> Iterator[str]:
    """Spellings with digits for letters: for one letter, then for two, and so on."""
    letters = [i for i, char in enumerate(text) if char in _DIGITS]
    for number in range(1, len(letters) + 1):
        for chosen in itertools.combinations(letters, number):
            for digits in itertools.product(*(_DIGITS[text[i]] for i in chosen)):
                spelling = list(text)
                for i, digit in zip(chosen, digits, strict=True):
                    spelling[i] = digit
                yield "".join(spelling)
