"""Signal groups `gopher_faithful`, `c4_faithful`, `fineweb_faithful`: datatrove 0.10.1 to the bit.

For those whose selection has to be comparable with a corpus that datatrove filtered. They are asked
for by `faithful: [gopher, c4, fineweb]` in corpus.yaml. Words are those of datatrove's splitter for
English; a document in another language gets null.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pyarrow as pa

from filters.columns import Signal
from filters.faithful import Measured, c4, fineweb, gopher
from filters.ngram_sizes import DUP_SIZES, TOP_SIZES
from filters.segments import Texts
from filters.spacy_words import num_sentences, words

LANGUAGE = "en"
ANY_END = "_any_end"

# Column -> formula, in the order in which datatrove looks at them. "words" are spaCy's, punctuation
# marks among them; "characters" those of the whole text, white space among them.
_GOPHER = {
    "num_chars": "characters",
    "dup_paragraph_share": "pieces between blank lines that stood before / pieces",
    "dup_paragraph_char_share": "characters of such pieces / characters",
    "dup_line_share": "pieces between line feeds that stood before / pieces",
    "dup_line_char_share": "characters of such pieces / characters",
    **{
        f"top_{n}_gram_char_share": f"characters of the most frequent {n} words, with a space "
        "between them, times its count / characters"
        for n in TOP_SIZES
    },
    **{
        f"dup_{n}_gram_char_share": f"characters of {n} words in a row that stood before, not "
        "overlapping / characters"
        for n in DUP_SIZES
    },
    "num_words": "words that are not of marks alone",
    "mean_word_length": "characters of such words / such words",
    "hash_ratio": "# / words",
    "ellipsis_ratio": "(... + …) / words",
    "bullet_line_share": "lines of str.splitlines that start with • or - / lines",
    "ellipsis_line_share": "lines that end in ... or … / lines",
    "alpha_word_share": "words with a letter / words",
    "num_stop_words": "distinct of the be to of and that have with, in this case of letters",
}
_C4 = {
    "num_lines": "lines of str.splitlines, to the one that drops the page",
    "num_long_word_lines": "lines with a word of over 1,000 characters",
    "num_unended_lines": "else, lines that do not end in . ? ! \" ' or do in ...",
    "num_short_lines": "else, lines of under 3 words between white space",
    "num_lorem_ipsum": "1 where a line with lorem ipsum drops the page",
    "num_javascript_lines": "else, lines that name JavaScript",
    "num_curly_brackets": "1 where such a line with { drops the page",
    "num_policy_lines": "else, lines with a phrase of terms of use, privacy or cookies",
    "lines_after": "lines that are left",
    "sentences_after": "sentences of those, each line by itself",
}
_FINEWEB = {
    "num_lines": "lines between line feeds that hold text",
    "punctuation_line_share": "such lines that end in one of 159 marks / lines",
    "short_line_share": "such lines of at most 30 characters, indents among them / lines",
    "dup_line_char_share": "characters of lines that stood before / characters but line feeds",
    "newline_ratio": "line feeds / words",
}
# float64: what lies on a threshold falls as in datatrove.
_TYPES = {"share": pa.float64(), "ratio": pa.float64(), "length": pa.float64()}

COLUMNS: dict[str, dict[str, Signal]] = {
    group: {
        name: Signal(
            _TYPES.get(name.split("_")[-1], pa.int32()),
            "as in the formula",
            f"{formula}; null but for English",
            f"datatrove 0.10.1, {file}",
        )
        for name, formula in formulas.items()
    }
    for group, file, formulas in (
        ("gopher", "gopher_repetition_filter.py, gopher_quality_filter.py", _GOPHER),
        (
            "c4",
            "c4_filters.py",
            _C4
            | {
                f"{name}{ANY_END}": f"{formula}; without the rule of the line's end, as FineWeb"
                for name, formula in _C4.items()
            },
        ),
        ("fineweb", "fineweb_quality_filter.py", _FINEWEB),
    )
}


def measure_gopher(texts: Texts, columns: Mapping[str, pa.Array]) -> Mapping[str, pa.Array]:
    """All columns of `COLUMNS["gopher"]` for a batch; see filters/signals.py."""
    return _measured("gopher", texts, columns, lambda text: gopher(text, words(text)))


def measure_c4(texts: Texts, columns: Mapping[str, pa.Array]) -> Mapping[str, pa.Array]:
    """All columns of `COLUMNS["c4"]` for a batch: each twice, as `<name>_any_end` the second."""

    def both(text: str) -> Measured:
        any_end = c4(text, num_sentences, any_end=True)
        return c4(text, num_sentences, any_end=False) | {
            f"{name}{ANY_END}": value for name, value in any_end.items()
        }

    return _measured("c4", texts, columns, both)


def measure_fineweb(texts: Texts, columns: Mapping[str, pa.Array]) -> Mapping[str, pa.Array]:
    """All columns of `COLUMNS["fineweb"]` for a batch; see filters/signals.py."""
    return _measured("fineweb", texts, columns, lambda text: fineweb(text, words(text)))


def _measured(
    group: str,
    texts: Texts,
    columns: Mapping[str, pa.Array],
    measure: Callable[[str], Measured],
) -> Mapping[str, pa.Array]:
    rows = [
        measure(text) if language == LANGUAGE else {}
        for text, language in zip(texts.array.to_pylist(), columns["lang"].to_pylist(), strict=True)
    ]
    return {
        name: pa.array([row.get(name) for row in rows], signal.type)
        for name, signal in COLUMNS[group].items()
    }


MEASURES = {"gopher": measure_gopher, "c4": measure_c4, "fineweb": measure_fineweb}
