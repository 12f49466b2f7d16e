"""datatrove 0.10.1's rules over the faithful columns, in its order, with its reasons.

Each is (signal, least, most, reason): what is below the least or above the most is dropped, and the
first rule that drops a document gives the reason. They hold for English.
"""

from __future__ import annotations

from filters.ngram_sizes import DUP_SIZES, TOP_SIZES

FaithfulRule = tuple[str, float | None, float | None, str]

_TOP = dict(zip(TOP_SIZES, (0.2, 0.18, 0.16), strict=True))
_DUP = dict(zip(DUP_SIZES, (0.15, 0.14, 0.13, 0.12, 0.11, 0.1), strict=True))

GOPHER_REPETITION: tuple[FaithfulRule, ...] = (
    ("num_chars", 1, None, "empty"),
    ("dup_paragraph_share", None, 0.3, "dup_para_frac"),
    ("dup_paragraph_char_share", None, 0.2, "dup_para_char_frac"),
    ("dup_line_share", None, 0.3, "dup_line_frac"),
    ("dup_line_char_share", None, 0.2, "dup_line_char_frac"),
    *((f"top_{n}_gram_char_share", None, most, f"top_{n}_gram") for n, most in _TOP.items()),
    *(
        (f"dup_{n}_gram_char_share", None, most, f"duplicated_{n}_n_grams")
        for n, most in _DUP.items()
    ),
)
GOPHER_QUALITY: tuple[FaithfulRule, ...] = (
    ("num_words", 50, None, "gopher_short_doc"),
    ("num_words", None, 100_000, "gopher_long_doc"),
    ("mean_word_length", 3, None, "gopher_below_avg_threshold"),
    ("mean_word_length", None, 10, "gopher_above_avg_threshold"),
    ("hash_ratio", None, 0.1, "gopher_too_many_hashes"),
    ("ellipsis_ratio", None, 0.1, "gopher_too_many_ellipsis"),
    ("bullet_line_share", None, 0.9, "gopher_too_many_bullets"),
    ("ellipsis_line_share", None, 0.3, "gopher_too_many_end_ellipsis"),
    ("alpha_word_share", 0.8, None, "gopher_below_alpha_threshold"),
    ("num_stop_words", 2, None, "gopher_enough_stop_words"),
)
C4: tuple[FaithfulRule, ...] = (
    ("num_lorem_ipsum", None, 0, "lorem_ipsum"),
    ("num_curly_brackets", None, 0, "curly_bracket"),
    ("sentences_after", 5, None, "too_few_sentences"),
)
C4_ANY_END: tuple[FaithfulRule, ...] = tuple((f"{rule[0]}_any_end", *rule[1:]) for rule in C4)
FINEWEB: tuple[FaithfulRule, ...] = (
    ("num_lines", 1, None, "empty"),
    ("punctuation_line_share", 0.12, None, "line_punct_ratio"),
    ("short_line_share", None, 0.67, "short_line_ratio"),
    ("dup_line_char_share", None, 0.01, "char_dup_ratio"),
    ("newline_ratio", None, 0.3, "list_ratio"),
)

# Preset -> its signal group and its rules. The first is datatrove's two filters in FineWeb's order.
FAITHFUL: dict[str, tuple[str, tuple[FaithfulRule, ...]]] = {
    "gopher_faithful": ("gopher_faithful", (*GOPHER_REPETITION, *GOPHER_QUALITY)),
    "c4_faithful": ("c4_faithful", C4),
    # As FineWeb runs C4: a line may end in anything.
    "c4_any_end_faithful": ("c4_faithful", C4_ANY_END),
    "fineweb_faithful": ("fineweb_faithful", FINEWEB),
}


def first_reason(rules: tuple[FaithfulRule, ...], values: dict[str, float]) -> str | None:
    """datatrove's reason to drop a document of these values; None where it keeps it."""
    for signal, least, most, reason in rules:
        value = values[signal]
        if (least is not None and value < least) or (most is not None and value > most):
            return reason
    return None
