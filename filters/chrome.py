"""Page chrome: which lines stand around a text and are none of it. The table: words/chrome.toml.

A rule judges a whole line, never a piece of one, and where it stands: rules that could take a line
of prose look only at the edges of a page, and single words (Reply, 喜欢) only in a row with a line
that is taken. The functions here are the definition; filters/boilerplate.py finds the same lines in
a batch.
"""

from __future__ import annotations

import functools
import re
import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from kernels.cache import kept_arrays
from kernels.han import SIMPLIFIED, TRADITIONAL_TO_SIMPLIFIED

PATH = Path(__file__).with_name("words") / "chrome.toml"
HEAD_LINES, FOOT_LINES = 8, 12  # with text: the edges of a page
ANYWHERE, EDGE, ROW = "anywhere", "edge", "row"
PLACES = {ANYWHERE: (True, True), EDGE: (False, True), ROW: (False, False)}  # middle, edge


@dataclass(frozen=True)
class Rule:
    """As in the file; its head says what they mean."""

    longest: int
    keys: tuple[str, ...]
    pattern: str
    examples: tuple[str, ...]
    place: str  # of PLACES

    def stands(self, at_edge: bool) -> bool:
        """May it take a line there, whatever stands beside?"""
        return PLACES[self.place][at_edge]


def _rules() -> dict[str, Rule]:
    read = tomllib.loads(PATH.read_text(encoding="utf-8"))
    pieces: dict[str, str] = {}

    def filled(pattern: str) -> str:
        return re.sub(r"<([a-z]+)>", lambda match: pieces[match[1]], pattern)

    for name, piece in read["pieces"].items():
        pieces[name] = filled(piece if isinstance(piece, str) else f"(?:{'|'.join(piece)})")
    return {
        name: Rule(
            rule["longest"],
            (*rule["keys"], *rule.get("words", ())),
            "|".join([*map(filled, rule["patterns"]), *map(re.escape, rule.get("words", ()))]),
            tuple(rule["examples"]),
            rule.get("place", ANYWHERE),
        )
        for name, rule in read["rules"].items()
    }


RULES = _rules()


def _folded_chars() -> tuple[npt.NDArray[np.uint32]]:
    """Each character as the rules see it: lower case, simplified, of the usual width."""
    found = np.arange(0x110000, dtype=np.uint32)
    found[0xFF01:0xFF5F] -= 0xFEE0
    found[[0x3000, 0xA0, 9]] = 32
    for traditional, simplified in TRADITIONAL_TO_SIMPLIFIED.items():
        found[ord(traditional)] = ord(simplified)
    found[65:91] += 32
    found[0xFF21:0xFF3B] += 32
    return (found,)


(FOLDED,) = kept_arrays([__file__, SIMPLIFIED], _folded_chars)


def folded(line: str) -> str:
    """A line as the rules see it, character by character."""
    codes = np.frombuffer(line.encode("utf-32-le"), np.uint32)
    return FOLDED[codes].tobytes().decode("utf-32-le")


def takes(name: str, line: str) -> bool:
    """Does a pattern of the rule match the whole line, which is `folded`?"""
    return _compiled(RULES[name].pattern).fullmatch(" ".join(line.split())) is not None


@functools.cache
def _compiled(pattern: str) -> re.Pattern[str]:
    """When it is first needed: all of them take 0.1 s."""
    return re.compile(pattern)


def rules_of(page: Sequence[str]) -> list[str]:
    """Of each line of a page (those with text, stripped) the rule that takes it; "" if none."""
    taken = []
    for number, line in enumerate(page):
        at_edge = number < HEAD_LINES or number >= len(page) - FOOT_LINES
        taken.append(rule_of(line, [n for n, rule in RULES.items() if rule.stands(at_edge)]))
    downwards = range(len(page))
    for step, order in ((-1, downwards), (1, reversed(downwards))):
        for number in order:
            beside = number + step
            if not taken[number] and 0 <= beside < len(page) and taken[beside]:
                taken[number] = rule_of(page[number], RULES)
    return taken


def rule_of(line: str, names: Iterable[str]) -> str:
    """The first of these rules that takes a line; "" if none."""
    seen = folded(line)
    for name in names:
        rule = RULES[name]
        looked_at = len(line) <= rule.longest and any(_stands(key, seen) for key in rule.keys)
        if looked_at and takes(name, seen):
            return name
    return ""


def _stands(key: str, line: str) -> bool:
    """Does the key stand in the line, and where it begins in ASCII, not within an ASCII word?"""
    at = line.find(key)
    while at > 0 and key[0].isascii() and line[at - 1].isascii() and line[at - 1].isalnum():
        at = line.find(key, at + 1)
    return at >= 0
