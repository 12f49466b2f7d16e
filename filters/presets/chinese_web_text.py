"""ChineseWebText, 1 and 2: the rules before its classifiers (preprocess.py)."""

from __future__ import annotations

from filters.presets.rules import Rule, least, most, off

_CODE = "ChineseWebText preprocess.py"

CHINESE_WEB_TEXT: tuple[Rule, ...] = (
    Rule("num_chars", {"zh": least(201, f"{_CODE}: more than 200")}),
    Rule(
        "lines.mean_chars",
        {
            "zh": least(10, _CODE, "of stripped lines with text: blank ones counted there"),
            "zh-lzh": off("a verse has 5 or 7 characters"),
        },
    ),
    Rule(
        "chars.han_share",
        {
            "zh": least(
                0.3, _CODE, "Han of all blocks: its range ends at U+9FA5 and has no extension"
            )
        },
    ),
    Rule(
        "language_mix.hant_share",
        {
            "zh": most(
                0.5,
                f"{_CODE}: what zhconv makes simplified is dropped",
                "of characters in traditional paragraphs: there one character drops the page, 乾 "
                "and 著 too",
            )
        },
    ),
    Rule(
        "repeats.word_13_gram_share",
        {"zh": most(0.5, _CODE, "13 Han in a row; it leaves out the last 13-gram")},
    ),
)
