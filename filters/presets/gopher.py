"""MassiveText, the data of Gopher: rules for quality and repetition."""

from __future__ import annotations

from filters.ngram_sizes import DUP_SIZES, TOP_SIZES
from filters.presets.rules import HAN_PER_WORD, Bound, Rule, least, most, off

A1 = "MassiveText, Rae et al. 2021, table A1"
CARRIED = f"{A1}; 1.6 characters for a word"
_LINES = f"{A1}; counts lines, so it holds for Chinese lines too"
_CMN = "FineWeb2 cmn_Hani"
_MAP_NEO = "MAP-NEO filter.py: n-grams of characters, as ours"
OFF_IN_FINEWEB2 = off(f"off in {_CMN}")

NUM_WORDS = Rule(
    "gopher.num_words",
    {
        "en": Bound(50, 100_000, A1),
        "zh": Bound(80, 160_000, CARRIED),
    },
)
ONE_CHARACTER = off(
    "a Han word is one character long by definition; the mean only says how much Latin script "
    "stands between, which good technical pages have"
)
MEAN_WORD = Rule("gopher.mean_word_length", {"en": Bound(3, 10, A1), "zh": ONE_CHARACTER})
SYMBOLS = tuple(
    Rule(f"gopher.{name}_ratio", {"en": most(0.1, A1), "zh": most(0.1 / HAN_PER_WORD, CARRIED)})
    for name in ("hash", "ellipsis")
)
BULLETS = Rule("gopher.bullet_line_share", {"en": most(0.9, A1), "zh": most(0.9, _LINES)})
ELLIPSES = Rule("gopher.ellipsis_line_share", {"en": most(0.3, A1), "zh": most(0.3, _LINES)})
ALPHA = Rule("gopher.alpha_word_share", {"en": least(0.8, A1), "zh": least(0.735, _CMN)})
STOP_WORDS = Rule(
    "gopher.num_stop_words",
    {
        "en": least(2, A1),
        "zh": least(
            2,
            f"{_CMN}, its list",
            "the list counts 为 and 為 as two words, and · as one; here they are one, and none",
        ),
    },
)
# An n-gram that stands once counts nothing: in datatrove a short text without any repetition is
# dropped for its one most frequent bigram. n-grams are not joined by spaces, which Chinese has not.
TOP_NGRAMS = tuple(
    Rule(f"gopher.top_{n}_gram_char_share", {"en": most(value, A1), "zh": most(value, _MAP_NEO)})
    for n, value in zip(TOP_SIZES, (0.2, 0.18, 0.16), strict=True)
)
DUP_NGRAMS_EN = dict(zip(DUP_SIZES, (0.15, 0.14, 0.13, 0.12, 0.11, 0.1), strict=True))


def too_few(n: int) -> Bound:
    return off(
        f"{n} characters are 3 to 5 words, fewer than any published rule counts: sound prose "
        "repeats them (median of dup_5 .16 in a Chinese programming guide, .38 in laws)"
    )


GOPHER: tuple[Rule, ...] = (
    NUM_WORDS,
    MEAN_WORD,
    *SYMBOLS,
    BULLETS,
    ELLIPSES,
    ALPHA,
    STOP_WORDS,
    Rule("gopher.dup_line_share", {"en": most(0.3, A1), "zh": most(0.287, _CMN)}),
    Rule("gopher.dup_paragraph_share", {"en": most(0.3, A1), "zh": OFF_IN_FINEWEB2}),
    Rule("gopher.dup_line_char_share", {"en": most(0.2, A1), "zh": OFF_IN_FINEWEB2}),
    Rule("gopher.dup_paragraph_char_share", {"en": most(0.2, A1), "zh": OFF_IN_FINEWEB2}),
    *TOP_NGRAMS,
    *(
        Rule(
            f"gopher.dup_{n}_gram_char_share",
            {
                "en": most(value, A1),
                "zh": most(0.182, f"{_CMN}: 6 words are about 10 characters")
                if n == 10
                else too_few(n),
            },
        )
        for n, value in DUP_NGRAMS_EN.items()
    ),
)
