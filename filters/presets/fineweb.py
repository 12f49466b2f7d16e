"""FineWeb's own rules, and FineWeb2 for Chinese: Mandarin, Cantonese, classical.

FineWeb2 fits its thresholds to each language by the distribution of each measure. They hold for its
words (about 1.6 characters in Mandarin and Cantonese; one in classical Chinese), and its n-grams
are joined by spaces that the text does not have, so that shares above 1 occur.
"""

from __future__ import annotations

from filters.presets.gopher import BULLETS, ELLIPSES, NUM_WORDS, ONE_CHARACTER, SYMBOLS
from filters.presets.rules import HAN_PER_WORD, Bound, Rule, least, most, off

_FINEWEB = "Penedo et al. 2024, section 3.5"
_KEYS = {"zh": "cmn", "zh-yue": "yue", "zh-lzh": "lzh"}
_GLOTLID = off("FineWeb2: thresholds of .692, .412, .386 are of GlotLID's probability")
_STRIPPED = "lines are stripped: with CRLF or an ideographic space no line ended in punctuation"


def _fitted(
    name: str, values: tuple[float, ...], sign: int, correction: str = ""
) -> dict[str, Bound]:
    """A threshold of each kind of Chinese: the most (1) or the least (-1)."""
    make = most if sign > 0 else least
    return {
        key: make(value, f"FineWeb2 {code}_Hani, {name}", correction)
        for (key, code), value in zip(_KEYS.items(), values, strict=True)
    }


_PUNCTUATION = _fitted("line_punct_thr", (0.106, 0.111, 0.167), -1, _STRIPPED)
_NEWLINES = _fitted(
    "new_line_ratio",
    (0.178 / HAN_PER_WORD, 0.238 / HAN_PER_WORD, 0.14),
    1,
    "1.6 characters for a word; lzh 1",
)
_DUP_CHARS = _fitted("dup_line_chars", (0.1, 0.1, 0.1), 1)

FINEWEB: tuple[Rule, ...] = (
    Rule(
        "lang_score",
        {
            "en": least(0.65, "Penedo et al. 2024, base filtering: fastText, lid.176"),
            "zh": _GLOTLID,
        },
    ),
    Rule(
        "fineweb.punctuation_line_share",
        {"en": least(0.12, _FINEWEB, _STRIPPED), **_PUNCTUATION},
    ),
    Rule(
        "fineweb.short_line_share",
        {
            "en": most(0.67, _FINEWEB),
            "zh": off(
                "off in FineWeb2 cmn_Hani: 30 Chinese characters say as much as 90 English ones"
            ),
        },
    ),
    Rule("gopher.dup_line_char_share", {"en": most(0.01, _FINEWEB), "zh": _DUP_CHARS["zh"]}),
    Rule("fineweb.newline_ratio", {"en": most(0.3, _FINEWEB), **_NEWLINES}),
)

_SPACED = "its n-grams hold a space a word: 4.2 characters for 3.2"
_LONGER = off(
    "of its segmenter; 3 words are 5 characters and more, longer than any top n-gram that is stored"
)
_INERT = off("the threshold is above 1: no text reaches it without the spaces between words")
_PAST = (
    "5 words are 8 characters, 6 are 10; n-grams of 7 to 10 words are longer than any stored one"
)

FINEWEB2: tuple[Rule, ...] = (
    Rule("lang_score", {"zh": _GLOTLID}),
    Rule("gopher.num_words", {"zh": NUM_WORDS.bound("zh")}),
    Rule("gopher.mean_word_length", {"zh": ONE_CHARACTER}),
    *(Rule(rule.signal, {"zh": rule.bound("zh")}) for rule in (*SYMBOLS, BULLETS, ELLIPSES)),
    Rule(
        "gopher.alpha_word_share",
        _fitted(
            "max_non_alpha_words_ratio",
            (0.735, 0.765, 0.826),
            -1,
            "a minimum of words with a letter, whatever its name says",
        ),
    ),
    Rule(
        "gopher.num_stop_words",
        {
            "zh": least(2, "FineWeb2 cmn_Hani, stopwords", "为 and 為 are one word, · is none"),
            "zh-yue": off("its own list, below"),
            "zh-lzh": off("its own list, below"),
        },
    ),
    *(
        Rule(
            f"fineweb.num_{name}_words",
            {
                "zh": off(f"a list for {name}"),
                f"zh-{name}": least(2, f"FineWeb2 {name}_Hani, stopwords", correction),
            },
        )
        for name, correction in (
            ("yue", "without 香港 and 可以, which are two words here"),
            ("lzh", "為 and 为 are one word"),
        )
    ),
    Rule("gopher.dup_line_share", _fitted("dup_line_frac", (0.287, 0.442, 0.261), 1)),
    Rule(
        "gopher.top_3_gram_char_share",
        {
            "zh": most(
                0.195,
                "FineWeb2 cmn_Hani, top_n_grams of 2: .256",
                f"2 words are 3 characters; {_SPACED}",
            ),
            "zh-yue": _INERT,
            "zh-lzh": _INERT,
        },
    ),
    Rule("gopher.top_4_gram_char_share", {"zh": _LONGER}),
    Rule(
        "gopher.dup_8_gram_char_share",
        _fitted("dup_n_grams of 5", (0.198, 0.241, 0.19), 1, _PAST),
    ),
    Rule(
        "gopher.dup_10_gram_char_share",
        _fitted("dup_n_grams of 6", (0.182, 0.216, 0.181), 1, _PAST),
    ),
    Rule("fineweb.punctuation_line_share", _PUNCTUATION),
    Rule("gopher.dup_line_char_share", _DUP_CHARS),
    Rule("fineweb.newline_ratio", _NEWLINES),
)
