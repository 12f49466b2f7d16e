"""What datatrove 0.10.1 finds in documents; for datatrove's environment (see peers.py).

    python datatrove_signals.py < DOCUMENTS.jsonl > FOUND.jsonl

Its filters do not say what they measure. So each runs once as FineWeb sets it, for its verdict, and
once with thresholds that note what they are compared with and never drop, for its numbers.
"""

import copy
import hashlib
import itertools
import json
import sys

from datatrove.data import Document
from datatrove.pipeline.filters import (
    C4QualityFilter,
    FineWebQualityFilter,
    GopherQualityFilter,
    GopherRepetitionFilter,
)
from datatrove.utils.text import split_into_words

FILTERS = {  # as FineWeb sets them; c4: as it comes
    "gopher_repetition": GopherRepetitionFilter(),
    "gopher_quality": GopherQualityFilter(),
    "c4": C4QualityFilter(),
    "c4_any_end": C4QualityFilter(filter_no_terminal_punct=False),
    "fineweb": FineWebQualityFilter(),
}
LINES = {  # what C4's filter counts -> our name
    "line-total": "num_lines",
    "line-filter-too_long_word": "num_long_word_lines",
    "line-filter-no_terminal_punc": "num_unended_lines",
    "line-filter-too_few_words": "num_short_lines",
    "line-filter-javascript": "num_javascript_lines",
    "line-filter-policy": "num_policy_lines",
    "line-kept": "lines_after",
}


class Probe:
    """A threshold that notes the numbers it is compared with, one name a comparison, and lets all
    pass."""

    __array_ufunc__ = None  # numpy's numbers ask it, too

    def __init__(self, found, *names):
        self.found, self.names = found, itertools.cycle(names)

    def __gt__(self, value):
        name = next(self.names)
        if value == value:  # the mean over no words is none
            self.found[name] = float(value)
        return False

    __lt__ = __gt__


def gopher(document):
    found = {}
    shares = {
        f"dup_{short}": Probe(found, f"dup_{long}_share")
        for short, long in (
            ("line_frac", "line"),
            ("para_frac", "paragraph"),
            ("line_char_frac", "line_char"),
            ("para_char_frac", "paragraph_char"),
        )
    }
    tops = tuple((n, Probe(found, f"top_{n}_gram_char_share")) for n in (2, 3, 4))
    dups = tuple((n, Probe(found, f"dup_{n}_gram_char_share")) for n in range(5, 11))
    GopherRepetitionFilter(**shares, top_n_grams=tops, dup_n_grams=dups).filter(document)
    GopherQualityFilter(
        min_doc_words=Probe(found, "num_words"),
        max_doc_words=None,
        min_avg_word_length=Probe(found, "mean_word_length"),
        max_avg_word_length=None,
        max_symbol_word_ratio=Probe(found, "hash_ratio", "ellipsis_ratio"),
        max_bullet_lines_ratio=Probe(found, "bullet_line_share"),
        max_ellipsis_lines_ratio=Probe(found, "ellipsis_line_share"),
        max_non_alpha_words_ratio=Probe(found, "alpha_word_share"),
        min_stop_words=Probe(found, "num_stop_words"),
    ).filter(document)
    return found


def c4(document, any_end):
    found = dict.fromkeys(LINES.values(), 0)
    sentences = Probe(found, "sentences_after")
    step = C4QualityFilter(filter_no_terminal_punct=not any_end, min_num_sentences=sentences)

    def count(label):
        found[LINES[label]] += 1

    step.stat_update = count
    result = step.filter(copy.copy(document))
    reason = "" if result is True else result[1]
    found["num_lorem_ipsum"] = int(reason == "lorem_ipsum")
    found["num_curly_brackets"] = int(reason == "curly_bracket")
    return found


def fineweb(document):
    found = {}
    FineWebQualityFilter(
        line_punct_thr=Probe(found, "punctuation_line_share"),
        short_line_thr=Probe(found, "short_line_share"),
        char_duplicates_ratio=Probe(found, "dup_line_char_share"),
        new_line_ratio=Probe(found, "newline_ratio"),
    ).filter(document)
    return found


def signals(document):
    by_end, any_end = c4(document, False), c4(document, True)
    return {
        "gopher": gopher(document),
        "c4": by_end | {f"{name}_any_end": value for name, value in any_end.items()},
        "fineweb": fineweb(document),
    }


def verdicts(document):
    found = {}
    for name, step in FILTERS.items():
        result = step.filter(copy.copy(document))
        found[name] = "keep" if result is True else result[1]
    return found


if __name__ == "__main__":
    for line in sys.stdin:
        row = json.loads(line)
        document = Document(text=row["text"], id=row["id"])
        words = split_into_words(document.text)
        found = {
            "id": row["id"],
            "words": hashlib.sha256("\n".join(words).encode()).hexdigest(),
            "verdicts": verdicts(document),
            "signals": signals(document),
        }
        print(json.dumps(found), flush=True)
