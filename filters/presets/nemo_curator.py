"""NeMo Curator: heuristic_filter_en.yaml for English, heuristic_filter_non-en.yaml for Chinese.

The latter is made for languages with spaces between words. What it names "repeated" shares of lines
and paragraphs are unique shares; here they are those of duplicates.
"""

from __future__ import annotations

from filters.presets.gopher import (
    DUP_NGRAMS_EN,
    ONE_CHARACTER,
    TOP_NGRAMS,
    too_few,
)
from filters.presets.rules import HAN_PER_WORD, Bound, Rule, least, most, off

_EN = "heuristic_filter_en.yaml"
_OTHER = "heuristic_filter_non-en.yaml"
_NOT_THERE = off(f"not in {_OTHER}")


def _same(maximum: float, correction: str = "") -> dict[str, Bound]:
    return {"en": most(maximum, _EN, correction), "zh": most(maximum, _OTHER, correction)}


def _unique(least_unique: float) -> dict[str, Bound]:
    text = f"it keeps a unique share of at least {least_unique:g} and calls it a repeated one"
    return _same(round(1 - least_unique, 2), text)


def _duplicates(n: int, en: float) -> Bound:
    words = {8: 5, 10: 6}
    if n not in words:
        return too_few(n)
    return most(DUP_NGRAMS_EN[words[n]], _OTHER, f"{words[n]} words are about {n} characters")


NEMO_CURATOR: tuple[Rule, ...] = (
    Rule(
        "chars.alnum_share",
        {
            "en": least(
                0.72,
                f"{_EN}: others than [a-zA-Z0-9?!,.] and line feeds at most .25",
                "letters of every script; those marks are .03 of English, and no letters here",
            ),
            "zh": _NOT_THERE,
        },
    ),
    *(
        Rule(
            f"gopher.{name}_ratio",
            {
                "en": most(0.1, _EN),
                "zh": most(0.1 / HAN_PER_WORD, _OTHER, "1.6 characters for a word"),
            },
        )
        for name in ("hash", "ellipsis")
    ),
    Rule("chars.digit_share", _same(0.15)),
    Rule("markup.url_chars", _same(0.2), per="num_chars"),
    Rule("chars.space_share", _same(0.25)),
    Rule("chars.parenthesis_share", _same(0.1, "full-width ones count too")),
    Rule("c4.num_policy_lines", _same(0.4, "Chinese phrases too"), per="c4.num_lines"),
    Rule("gopher.dup_line_share", _unique(0.7)),
    Rule("gopher.dup_paragraph_share", _unique(0.7)),
    Rule("gopher.dup_line_char_share", _unique(0.8)),
    Rule("gopher.dup_paragraph_char_share", _unique(0.8)),
    Rule(
        "gopher.num_words",
        {
            "en": Bound(50, 100_000, _EN),
            "zh": Bound(80, 160_000, _OTHER, "by white space a Chinese page has 1 to 20 words"),
        },
    ),
    Rule(
        "fineweb.punctuation_line_share",
        {
            "en": least(0.15, f"{_EN}: lines without an end mark at most .85"),
            "zh": least(
                0.15,
                f"{_OTHER}: likewise",
                "its marks are . ? ! \" ' alone: here 。！？…；”』」 too",
            ),
        },
    ),
    Rule("gopher.alpha_word_share", {"en": least(0.8, _EN), "zh": _NOT_THERE}),
    Rule("gopher.num_stop_words", {"en": least(2, _EN), "zh": _NOT_THERE}),
    Rule("gopher.mean_word_length", {"en": Bound(3, 10, _EN), "zh": ONE_CHARACTER}),
    Rule("c4.num_long_word_lines", _same(0, "a Chinese paragraph without spaces is no long word")),
    Rule("gopher.ellipsis_line_share", _same(0.3)),
    *(
        Rule(
            rule.signal, _same(rule.bounds["en"].maximum or 0, "n-grams that stand once count not")
        )
        for rule in TOP_NGRAMS
    ),
    *(
        Rule(f"gopher.dup_{n}_gram_char_share", {"en": most(en, _EN), "zh": _duplicates(n, en)})
        for n, en in DUP_NGRAMS_EN.items()
    ),
    Rule("gopher.bullet_line_share", _same(0.9)),
)
