"""The visible table of presets: published rules as bounds on stored signals, per language.

A preset drops nothing and is never stored. It is an expression that the `documents` view offers as
`<preset>.pass`, so another threshold costs one SQL statement. A bound is inclusive. A language or
kind without rules in a preset gets NULL, and a mixture that selects by NULL stops and says so.

A bound holds for the formula and the unit that it was published for. Where ours differ (a Chinese
word is a character here, about 1.6 of them make a word of FineWeb2's segmenter), `source` says how
the number was carried over; where it cannot be, there is no rule, and NO_RULE says why.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Bound:
    """Smallest and largest value that passes, both inclusive."""

    minimum: float | None
    maximum: float | None
    source: str


@dataclass(frozen=True)
class Rule:
    signal: str  # as in the `documents` view
    bounds: Mapping[str, Bound]  # by `lang`


_A1 = "MassiveText, Rae et al. 2021, table A1"
_UNIT_FREE = f"{_A1}; counts lines, so it holds for Chinese lines too"
_C4 = "Raffel et al. 2019, section 2.2, and datatrove c4_filters.py"
_FINEWEB = "Penedo et al. 2024, section 3.5"
_FINEWEB2 = "FineWeb2 configs, cmn_Hani"
_MAP_NEO = "MAP-NEO filter.py: n-grams of characters, as ours"


def _max(en: float, zh: float | None, zh_source: str = "") -> dict[str, Bound]:
    bounds = {"en": Bound(None, en, _A1)}
    return bounds if zh is None else bounds | {"zh": Bound(None, zh, zh_source)}


PRESETS: dict[str, tuple[Rule, ...]] = {
    "gopher": (
        Rule(
            "gopher.num_words",
            {
                "en": Bound(50, 100_000, _A1),
                "zh": Bound(80, 160_000, f"{_A1}, 1.6 characters for a word"),
            },
        ),
        Rule("gopher.mean_word_length", {"en": Bound(3, 10, _A1)}),
        Rule("gopher.hash_ratio", _max(0.1, 0.0625, f"{_A1}, 1.6 characters for a word")),
        Rule("gopher.ellipsis_ratio", _max(0.1, 0.0625, f"{_A1}, 1.6 characters for a word")),
        Rule("gopher.bullet_line_share", _max(0.9, 0.9, _UNIT_FREE)),
        Rule("gopher.ellipsis_line_share", _max(0.3, 0.3, _UNIT_FREE)),
        Rule(
            "gopher.alpha_word_share",
            {"en": Bound(0.8, None, _A1), "zh": Bound(0.735, None, _FINEWEB2)},
        ),
        Rule(
            "gopher.num_stop_words",
            {"en": Bound(2, None, _A1), "zh": Bound(2, None, f"{_FINEWEB2}, its list")},
        ),
        Rule("gopher.dup_line_share", _max(0.3, 0.287, _FINEWEB2)),
        Rule("gopher.dup_paragraph_share", _max(0.3, None)),
        Rule("gopher.dup_line_char_share", _max(0.2, None)),
        Rule("gopher.dup_paragraph_char_share", _max(0.2, None)),
        Rule("gopher.top_2_gram_char_share", _max(0.2, 0.2, _MAP_NEO)),
        Rule("gopher.top_3_gram_char_share", _max(0.18, 0.18, _MAP_NEO)),
        Rule("gopher.top_4_gram_char_share", _max(0.16, 0.16, _MAP_NEO)),
        Rule("gopher.dup_5_gram_char_share", _max(0.15, None)),
        Rule("gopher.dup_6_gram_char_share", _max(0.14, None)),
        Rule("gopher.dup_7_gram_char_share", _max(0.13, None)),
        Rule("gopher.dup_8_gram_char_share", _max(0.12, None)),
        Rule("gopher.dup_9_gram_char_share", _max(0.11, None)),
        Rule(
            "gopher.dup_10_gram_char_share",
            _max(0.1, 0.182, f"{_FINEWEB2}: 6 words are about 10 characters"),
        ),
    ),
    "c4": (
        Rule(
            "c4.sentences_after",
            {
                "en": Bound(5, None, f"{_C4}; TFDS has 3"),
                "zh": Bound(5, None, f"{_C4}; counts sentences, so it holds for Chinese"),
            },
        ),
        Rule("c4.num_lorem_ipsum", {"en": Bound(None, 0, _C4), "zh": Bound(None, 0, _C4)}),
        Rule("c4.num_curly_brackets", {"en": Bound(None, 0, _C4), "zh": Bound(None, 0, _C4)}),
    ),
    "fineweb": (
        Rule(
            "fineweb.punctuation_line_share",
            {"en": Bound(0.12, None, _FINEWEB), "zh": Bound(0.106, None, _FINEWEB2)},
        ),
        Rule("fineweb.short_line_share", {"en": Bound(None, 0.67, _FINEWEB)}),
        Rule(
            "gopher.dup_line_char_share",
            {"en": Bound(None, 0.01, _FINEWEB), "zh": Bound(None, 0.1, _FINEWEB2)},
        ),
        Rule(
            "fineweb.newline_ratio",
            {
                "en": Bound(None, 0.3, _FINEWEB),
                "zh": Bound(None, 0.111, f"{_FINEWEB2}: .178, 1.6 characters for a word"),
            },
        ),
    ),
}

# What the kind of a source changes. The rules were made for web pages: code is no prose, and has no
# rules; an answer, a post or a line of dialogue is short by nature, so no minimum of words or of
# sentences counts (ChineseWebText's minimum of 200 characters drops question and answer, poems and
# dialogue).
WITHOUT_RULES = ("code",)
SHORT_KINDS = ("qa", "forum", "dialogue")
LENGTHS = ("gopher.num_words", "c4.sentences_after")

# (preset, language, signal) of rules that a language goes without, and why.
NO_RULE: dict[tuple[str, str, str], str] = {
    ("gopher", "zh", "gopher.mean_word_length"): "a Han word is one character long by definition; "
    "the mean only says how much Latin script stands between, which good technical pages have",
    ("gopher", "zh", "gopher.dup_paragraph_share"): "off in FineWeb2 cmn_Hani",
    ("gopher", "zh", "gopher.dup_line_char_share"): "off in FineWeb2 cmn_Hani",
    ("gopher", "zh", "gopher.dup_paragraph_char_share"): "off in FineWeb2 cmn_Hani",
    **{
        ("gopher", "zh", f"gopher.dup_{n}_gram_char_share"): f"{n} characters are 3 to 5 words, "
        "fewer than any published rule counts: sound prose repeats them (median of dup_5 .16 in a "
        "Chinese programming guide, .38 in laws)"
        for n in range(5, 10)
    },
    ("fineweb", "zh", "fineweb.short_line_share"): "off in FineWeb2 cmn_Hani: 30 Chinese "
    "characters say as much as 90 English ones",
}


def _passes(signal: str, bound: Bound) -> str:
    tests = []
    if bound.minimum is not None:
        short = f" or kind in {SHORT_KINDS}" if signal in LENGTHS else ""
        tests.append(f"({signal} >= {bound.minimum:.10g}{short})")
    if bound.maximum is not None:
        tests.append(f"{signal} <= {bound.maximum:.10g}")
    return " and ".join(tests)


def _rules(preset: str) -> tuple[Rule, ...]:
    if preset not in PRESETS:
        raise ValueError(f"no preset {preset!r}; presets: {', '.join(PRESETS)}")
    return PRESETS[preset]


def expression(preset: str) -> str:
    """SQL that is true where a document passes all rules of its language and kind; NULL where it
    has none.

    Raises:
        ValueError: no such preset.
    """
    by_language: dict[str, list[str]] = {}
    for rule in _rules(preset):
        for language, bound in rule.bounds.items():
            by_language.setdefault(language, []).append(_passes(rule.signal, bound))
    cases = (f"when '{name}' then {' and '.join(tests)}" for name, tests in by_language.items())
    return _of_prose(f"case lang {' '.join(cases)} end")


def _of_prose(sql: str) -> str:
    listed = ", ".join(f"'{kind}'" for kind in WITHOUT_RULES)
    return f"case when kind in ({listed}) then null else {sql} end"


def reasons(preset: str) -> list[tuple[str, str]]:
    """(signal, SQL that is true where a document fails its rule); NULL where it has none.

    Raises:
        ValueError: no such preset.
    """
    found = []
    for rule in _rules(preset):
        cases = (
            f"when '{language}' then not ({_passes(rule.signal, bound)})"
            for language, bound in rule.bounds.items()
        )
        found.append((rule.signal, _of_prose(f"case lang {' '.join(cases)} end")))
    return found


def needs(preset: str) -> set[str]:
    """Signal groups whose columns the preset reads.

    Raises:
        ValueError: no such preset.
    """
    return {"language"} | {rule.signal.split(".")[0] for rule in _rules(preset)}
