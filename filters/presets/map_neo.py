"""MAP-NEO's Chinese rules (filter.py). Those for n-grams never fired: a function returned a pair,
and a pair is always true (filter.py:419).
"""

from __future__ import annotations

from filters.ngram_sizes import DUP_SIZES, TOP_SIZES
from filters.presets.rules import Rule, least, most, off

_FILTER = "MAP-NEO chinese_data_clean_pipeline/filter/filter.py"
_FIRES = "never enforced there"
_PER_WORD = "runs / Han characters and other words, there / all characters"

MAP_NEO: tuple[Rule, ...] = (
    Rule("chars.lenticular_share", {"zh": most(0.1, _FILTER)}),
    Rule(
        "c4.num_sentences",
        {"zh": least(2, _FILTER, "。 ends a sentence; there only after it was rewritten to .")},
    ),
    Rule(
        "num_chars",
        {"zh": least(50, _FILTER, "no maximum: 10,000 drops every long article and book chapter")},
    ),
    Rule(
        "gopher.mean_word_length",
        {"zh": off("1.3 to 10 is of jieba's words; a Han word is one character here")},
    ),
    Rule("gopher.hash_ratio", {"zh": most(0.1, _FILTER, _PER_WORD)}),
    Rule("gopher.ellipsis_ratio", {"zh": most(0.1, _FILTER, _PER_WORD)}),
    Rule(
        "chars.digit_share",
        {"zh": most(0.27, f"{_FILTER}: .3 of all but punctuation, which is a tenth of a text")},
    ),
    Rule(
        "lines.read_more_share",
        {"zh": most(0.3, _FILTER, "。。。 is found: there it was rewritten to ... before")},
    ),
    Rule("gopher.bullet_line_share", {"zh": most(0.9, _FILTER)}),
    Rule(
        "chars.symbol_share",
        {"zh": least(1e-6, f"{_FILTER}: any punctuation at all", "that of every script, 。 too")},
    ),
    Rule(
        "chars.distinct_share",
        {
            "zh": least(
                0.1,
                _FILTER,
                "of stretches of 200 characters: of a whole text the share falls with its length, "
                "and 700 characters of English are below",
            )
        },
    ),
    Rule("chars.entropy", {"zh": least(3, _FILTER)}),
    Rule(
        "lang_score",
        {"zh": least(0.4, _FILTER, "of Chinese; there of whichever language is most likely")},
    ),
    *(
        Rule(f"gopher.top_{n}_gram_char_share", {"zh": most(value, _FILTER, _FIRES)})
        for n, value in zip(TOP_SIZES, (0.2, 0.18, 0.16), strict=True)
    ),
    *(
        Rule(
            f"gopher.dup_{n}_gram_char_share",
            {
                "zh": most(
                    0.6, _FILTER, f"{_FIRES}; characters under n-grams, there distinct characters"
                )
            },
        )
        for n in DUP_SIZES
    ),
)
