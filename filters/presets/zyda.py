"""Zyda: filtering.py. Made for English; the words of its patterns are ASCII, so they hold anywhere.

Its shares are occurrences per character. A Chinese text has a third of the characters, so three
times the share.
"""

from __future__ import annotations

from filters.presets.gopher import ONE_CHARACTER
from filters.presets.rules import Bound, Rule, least, most

_CODE = "Zyda filtering.py"
_DENSER = "three characters of English for one of Chinese"
_SEXUAL = "hits of `unsafe` for 16 English words of its own, which no Chinese text has"


def _same(maximum: float, correction: str = "") -> dict[str, Bound]:
    return {"en": most(maximum, _CODE, correction), "zh": most(maximum, _CODE, correction)}


def _per_char(signal: str, maximum: float, correction: str = "") -> Rule:
    denser = f"{correction}; {_DENSER}" if correction else _DENSER
    bounds = {"en": most(maximum, _CODE, correction), "zh": most(3 * maximum, _CODE, denser)}
    return Rule(signal, bounds, per="num_chars")


ZYDA: tuple[Rule, ...] = (
    Rule("num_chars", {"en": least(100, _CODE), "zh": least(33, _CODE, _DENSER)}),
    Rule(
        "gopher.mean_word_length",
        {"en": Bound(3, 12, f"{_CODE}; splits at - / \\ . too"), "zh": ONE_CHARACTER},
    ),
    Rule("chars.symbol_share", _same(0.3)),
    Rule("chars.digit_share", _same(0.2)),
    Rule("chars.replacement_share", _same(0.01, "U+FFFD; U+FEFF and controls are gone before")),
    Rule("chars.num_runs", _same(50)),
    Rule("markup.num_xml", _same(10)),
    Rule("c4.num_lorem_ipsum", _same(2)),
    _per_char("markup.num_urls", 0.002),
    _per_char("markup.num_www", 0.01),
    _per_char("markup.num_tags", 0.03),
    _per_char("markup.num_json_keys", 0.002),
    Rule("unsafe.num_pornography", _same(10, _SEXUAL)),
    _per_char("unsafe.num_pornography", 0.001, _SEXUAL),
    _per_char("unsafe.num_bad_words", 0.0025, "the words of LDNOOBW for 11 of its own"),
)
