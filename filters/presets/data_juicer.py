"""data-juicer: three recipes for English pages, one for Chinese instructions.

Python's `str.isalnum` counts Han as alphanumeric and Chinese has no spaces, so that a *maximum* of
alphanumerics, and a minimum of special characters, drop clean Chinese (data-juicer #98, #267). Its
words are split at white space unless told otherwise (#93, #509).
"""

from __future__ import annotations

from filters.presets.rules import HAN_PER_WORD, Bound, Rule, least, most, off

_C4 = "redpajama-c4-refine.yaml"
_CC = "redpajama-cc-2023-06-refine.yaml"
_BLOOM = "bloom-oscar.yaml"
_ZH = "alpaca-cot-zh-refine.yaml"
_NO_SPACES = "no maximum: Chinese without spaces is above it"
_PER_CHARACTER = "1.6 characters for a word"
_UNICODE = "by Unicode's classes: its list has 上, 士, ー and some full-width marks"


def _same(maximum: float, source: str, correction: str = "") -> dict[str, Bound]:
    return {"en": most(maximum, source, correction), "zh": most(maximum, source, correction)}


def _words(fewest: int, greatest: int, source: str) -> Rule:
    return Rule(
        "gopher.num_words",
        {
            "en": Bound(fewest, greatest, source),
            "zh": Bound(
                round(fewest * HAN_PER_WORD),
                round(greatest * HAN_PER_WORD),
                source,
                "1.6 characters for a word; by white space a page has one",
            ),
        },
    )


def _language(score: float, source: str) -> Rule:
    return Rule("lang_score", {"en": least(score, source), "zh": least(score, source)})


def _repeated(maximum: float, en: float, source: str) -> Rule:
    """`en`: above it are as many of 1,018 English documents (300 characters and more; PEPs, EIPs,
    books, mail, reviews) by our formula as are above `maximum` by the original's.
    """
    carried = f"{maximum:g} of ten characters at every place; here of words in a row that have ten"
    bounds = {"en": most(en, source, carried), "zh": most(maximum, source)}
    return Rule("repeats.char_10_gram_share", bounds)


def _flagged(maximum: float, source: str) -> Rule:
    carried = "48 of the 68 English words of its list (BigScience) are on ours; as whole phrases"
    bounds = {
        "en": most(maximum, source, carried),
        "zh": most(
            maximum / HAN_PER_WORD, source, f"ours of pornography for its list; {_PER_CHARACTER}"
        ),
    }
    return Rule("unsafe.num_pornography", bounds, per="gopher.num_words")


JUICER_C4: tuple[Rule, ...] = (
    Rule(
        "chars.alnum_share",
        {"en": Bound(0.65, 0.9, _C4), "zh": least(0.65, _C4, _NO_SPACES)},
    ),
    Rule("lines.mean_chars", _same(3000, _C4)),
    _repeated(0.3, 0.4, _C4),
    _language(0.6, _C4),
    Rule("lines.max_chars", _same(4000, _C4)),
    Rule("chars.special_share", _same(0.4, _C4, _UNICODE)),
    _words(20, 10_000, _C4),
    Rule("repeats.word_10_gram_share", _same(0.231, _C4)),
)

JUICER_CC: tuple[Rule, ...] = (
    Rule(
        "chars.alnum_share",
        {"en": Bound(0.7508, 0.8591, _CC), "zh": least(0.7508, _CC, _NO_SPACES)},
    ),
    Rule("lines.mean_chars", _same(1500, _CC)),
    _repeated(0.3, 0.4, _CC),
    _language(0.793, _CC),
    Rule("lines.max_chars", _same(5000, _CC)),
    Rule(
        "chars.special_share",
        {
            "en": Bound(0.15, 0.35, _CC, _UNICODE),
            "zh": most(0.35, _CC, "no minimum: Chinese without spaces is below it"),
        },
    ),
    Rule(
        "num_chars",
        {
            "en": most(58_187, _CC),
            "zh": off("the maximum of words says the same; a Han character is no English letter"),
        },
    ),
    _words(20, 11_529, _CC),
    Rule("repeats.word_10_gram_share", _same(0.2962, _CC)),
    _flagged(0.0015, _CC),
)

BLOOM: tuple[Rule, ...] = (
    _language(0.8, _BLOOM),
    _words(20, 100_000, _BLOOM),
    _repeated(0.106, 0.167, _BLOOM),
    Rule(
        "repeats.word_5_gram_share",
        {"en": most(0.19, _BLOOM), "zh": off("5 characters are 3 words: laws repeat them")},
    ),
    Rule("chars.special_share", _same(0.4, _BLOOM, _UNICODE)),
    _flagged(0.01, _BLOOM),
)

JUICER_ZH: tuple[Rule, ...] = (
    Rule("chars.alnum_share", {"zh": least(0.1, _ZH)}),
    Rule("repeats.char_10_gram_share", {"zh": most(0.6, _ZH)}),
    Rule("num_chars", {"zh": least(10, _ZH)}),
    Rule(
        "unsafe.num_pornography",
        {"zh": _flagged(0.017, _ZH).bounds["zh"]},
        per="gopher.num_words",
    ),
)
