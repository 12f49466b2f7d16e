"""C4, and its sibling for many languages."""

from __future__ import annotations

from filters.presets.rules import Rule, least, most

_PAPER = "Raffel et al. 2019, section 2.2, and datatrove c4_filters.py"
_MARKS = (
    "a line may end in 。！？…；”』」 too, 5 characters are a line's least, and 。 ends a sentence"
)
_MC4 = "mC4, Xue et al. 2020, section 3.1"

LOREM_IPSUM = Rule("c4.num_lorem_ipsum", {"en": most(0, _PAPER), "zh": most(0, _PAPER)})

# datatrove C4BadWordsFilter. A preset by itself, as it is a filter by itself there: FineWeb runs C4
# without it.
C4_BAD_WORDS: tuple[Rule, ...] = (
    Rule(
        "unsafe.num_bad_words",
        {
            "en": most(0, f"{_PAPER}: no word of LDNOOBW"),
            "zh": most(
                0,
                f"{_PAPER}: no word of LDNOOBW",
                "at borders of words, and none of one character: there 路口交通 and 奶 drop the "
                "page, and only 性 is let pass",
            ),
        },
    ),
)

C4: tuple[Rule, ...] = (
    Rule(
        "c4.sentences_after",
        {
            "en": least(5, f"{_PAPER}; TFDS has 3"),
            "zh": least(5, f"{_PAPER}; counts sentences, so it holds for Chinese", _MARKS),
        },
    ),
    LOREM_IPSUM,
    Rule("c4.num_curly_brackets", {"en": most(0, _PAPER), "zh": most(0, _PAPER)}),
)

MC4: tuple[Rule, ...] = (
    Rule(
        "lines.num_long",
        {
            "en": least(3, _MC4),
            "zh": least(
                3, _MC4, "200 Chinese characters say three times as much: here a line has 200 bytes"
            ),
        },
    ),
    Rule(
        "lang_score", {"en": least(0.7, f"{_MC4}; of cld3"), "zh": least(0.7, f"{_MC4}; of cld3")}
    ),
    LOREM_IPSUM,
    *C4_BAD_WORDS,
)
