"""Words and sentences as datatrove 0.10.1 splits English: spaCy's blank English, with its
sentencizer.

Each punctuation mark is a word there. spaCy takes a run without white space apart mark by mark, and
looks at all of the rest each time: 4,000 exclamation marks took 1.3 CPU s, 200,000 would take an
hour. So its rules for the two ends of a run are shown the ends only, which finds the same words; a
run of over LONG_RUN characters is taken in pieces of that length, which may not.
"""

from __future__ import annotations

import functools
import re
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

WINDOW = 32  # characters; the longest affix of a fixed length has five, after at most three
LONG_RUN = 20_000  # characters; 20,000 exclamation marks take 0.5 CPU s
# spaCy's pattern of an address takes quadratic time in colons: 8,000 characters 0.26 CPU s.
LONG_URL = 4_000

_LONG_RUNS = re.compile(rf"(\S{{{LONG_RUN}}})(?=\S)")

Search = Callable[[str], "re.Match[str] | None"]


def words(text: str) -> list[str]:
    """Stripped words that are not white space."""
    nlp = _english()
    with nlp.memory_zone():
        found = [token.text.strip() for token in nlp.tokenizer(_LONG_RUNS.sub(r"\1 ", text))]
    return [word for word in found if word]


def num_sentences(text: str) -> int:
    """One for a text without any, as in datatrove."""
    nlp = _english()
    with nlp.memory_zone():
        document = nlp.get_pipe("sentencizer")(nlp.tokenizer(_LONG_RUNS.sub(r"\1 ", text)))
        return max(sum(1 for _ in document.sents), 1)


@functools.cache
def _english() -> Any:
    nlp = _spacy().blank("en")
    nlp.add_pipe("sentencizer")
    tokenizer = nlp.tokenizer
    prefix, suffix, url = tokenizer.prefix_search, tokenizer.suffix_search, tokenizer.url_match
    tokenizer.prefix_search = lambda run: _at_start(prefix, run)
    tokenizer.suffix_search = lambda run: _at_end(suffix, run)
    tokenizer.url_match = lambda run: url(run) if len(run) <= LONG_URL else None
    return nlp


def _at_start(search: Search, run: str) -> re.Match[str] | None:
    found = search(run[:WINDOW])
    return search(run) if found and found.end() == WINDOW else found  # a row of dots goes on


def _at_end(search: Search, run: str) -> re.Match[str] | None:
    found = search(run[-WINDOW:])
    return search(run) if found and found.end() - found.start() == WINDOW else found


def _spacy() -> ModuleType:
    """spaCy takes torch in where it finds it, 2 CPU s and 300 MB that splitting words never uses;
    and no process of ours holds torch and Beam."""
    hidden: dict[str, Any] = sys.modules  # None stands for a module that cannot be imported
    absent = "torch" not in hidden
    if absent:
        hidden["torch"] = None
    try:
        import spacy
    finally:
        if absent:
            del hidden["torch"]
    return spacy
