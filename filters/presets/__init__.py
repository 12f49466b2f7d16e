"""Presets: published recipes and the cuts of our own detectors, as bounds on stored signals, by
language and by kind of Chinese.

A preset drops nothing and is never stored. It is an expression that the `documents` view offers as
`<preset>.pass`, so another threshold costs one SQL statement. A language or
kind without rules in a preset gets NULL, and a mixture that selects by NULL stops and says so.

A bound holds for the formula and the unit that it was published for. Where ours differ (a Chinese
word is a character here, about 1.6 of them make a word of a segmenter), it says how the number was
carried over; where it cannot be, the rule is `off`, with the reason. Where a recipe has a fault,
the corrected rule stands here, and `correction` says what was wrong.

What a recipe does beside such rules (lists of addresses and words, language models, edits) is in
LEFT_OUT. docs/presets.md shows all of it as a table.
"""

from __future__ import annotations

import difflib
import re

from filters.presets.c4 import C4, C4_BAD_WORDS, MC4
from filters.presets.chinese_web_text import CHINESE_WEB_TEXT
from filters.presets.clean import CLEAN, CUTS
from filters.presets.data_juicer import BLOOM, JUICER_C4, JUICER_CC, JUICER_ZH
from filters.presets.faithful import FAITHFUL
from filters.presets.fineweb import FINEWEB, FINEWEB2
from filters.presets.gopher import GOPHER
from filters.presets.hacked import HACKED
from filters.presets.left_out import LEFT_OUT
from filters.presets.map_neo import MAP_NEO
from filters.presets.nemo_curator import NEMO_CURATOR
from filters.presets.refinedweb import DCLM, REFINEDWEB
from filters.presets.rules import (
    PROSE_GROUPS,
    WITHOUT_RULES,
    Bound,
    Rule,
    by_language,
    in_force,
    of_prose,
    passes,
)
from filters.presets.zyda import ZYDA

__all__ = [
    "CUTS",
    "LEFT_OUT",
    "OWN",
    "PRESETS",
    "PROSE_GROUPS",
    "RECIPES",
    "Bound",
    "Rule",
    "expression",
    "first_reason",
    "in_force",
    "judges",
    "needs",
    "of_prose",
    "reads",
    "reasons",
]

# With faults corrected, for Chinese and English, over the groups of filters/signals.py.
RECIPES: dict[str, tuple[Rule, ...]] = {
    "gopher": GOPHER,
    "c4": C4,
    "c4_bad_words": C4_BAD_WORDS,
    "mc4": MC4,
    "refinedweb": REFINEDWEB,
    "dclm": DCLM,
    "fineweb": FINEWEB,
    "fineweb2": FINEWEB2,
    "nemo_curator": NEMO_CURATOR,
    "data_juicer_c4": JUICER_C4,
    "data_juicer_cc": JUICER_CC,
    "data_juicer_bloom": BLOOM,
    "data_juicer_zh": JUICER_ZH,
    "map_neo": MAP_NEO,
    "chinese_web_text": CHINESE_WEB_TEXT,
    "zyda": ZYDA,
}
# What nobody published: the detectors of this project.
OWN: dict[str, tuple[Rule, ...]] = {"clean": CLEAN, "hacked": HACKED}
# And those with all faults of the original, over the groups that `faithful` of corpus.yaml makes.
PRESETS: dict[str, tuple[Rule, ...]] = RECIPES | OWN | FAITHFUL


def _rules(preset: str) -> tuple[Rule, ...]:
    if preset not in PRESETS:
        near = difflib.get_close_matches(preset, PRESETS, n=1, cutoff=0.5)
        hint = f"did you mean {near[0]!r}? " if near else ""
        raise ValueError(f"no preset {preset!r}; {hint}presets: {', '.join(PRESETS)}")
    return PRESETS[preset]


def expression(preset: str) -> str:
    """SQL that is true where a document passes all rules of its language and kind; NULL where it
    has none.

    Raises:
        ValueError: no such preset.
    """
    rules = _rules(preset)

    def all_pass(key: str) -> str:
        tests = [passes(rule, bound) for rule in rules if not (bound := rule.bound(key)).is_off]
        return " and ".join(tests)

    return _of_kinds(preset, by_language(rules, all_pass))


def reasons(preset: str) -> list[tuple[str, str]]:
    """(name of the rule, SQL that is true where a document fails it); NULL where it has none.

    Raises:
        ValueError: no such preset.
    """

    def fails(rule: Rule) -> str:
        def of(key: str) -> str:
            bound = rule.bound(key)
            return "null" if bound.is_off else f"not ({passes(rule, bound)})"

        return _of_kinds(preset, by_language((rule,), of))

    return [(rule.name, fails(rule)) for rule in _rules(preset)]


def first_reason(preset: str) -> str:
    """SQL for the reason of the first rule, in the order of the table, that a document fails; NULL
    where it passes or has no rules.

    Raises:
        ValueError: no such preset.
    """
    named = zip(reasons(preset), _rules(preset), strict=True)
    cases = (f"when {fails} then '{rule.reason or name}'" for (name, fails), rule in named)
    return f"case {' '.join(cases)} end"


def judges(preset: str, kind: str) -> bool:
    """Whether a preset has rules for a kind of source."""
    return preset in FAITHFUL or kind not in WITHOUT_RULES  # datatrove knows no kinds


def _of_kinds(preset: str, sql: str) -> str:
    return sql if preset in FAITHFUL else of_prose(sql)


def needs(preset: str) -> set[str]:
    """Signal groups whose columns the preset reads.

    Raises:
        ValueError: no such preset.
    """
    return {"language", *(group for group, _ in reads(preset))}


def reads(preset: str) -> set[tuple[str, str]]:
    """(signal group, column) of each signal that the preset reads, those of `language` apart.

    Raises:
        ValueError: no such preset.
    """
    read = " ".join(f"{rule.value} {rule.where}" for rule in _rules(preset))
    return set(re.findall(r"([a-z]\w*)\.(\w+)", read))
