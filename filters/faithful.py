"""What datatrove 0.10.1 measures for Gopher, C4 and FineWeb, in plain Python.

Each number is the one that datatrove compares with a threshold, its traps included. Words and
sentences come from a splitter that is handed in: filters/spacy_words.py is datatrove's. The columns
are in filters/faithful_groups.py. The groups `gopher`, `c4` and `fineweb` hold the same rules
without the traps, a hundred times as fast; here clarity comes first.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from filters.ngram_sizes import DUP_SIZES, TOP_SIZES
from filters.phrases import PHRASES, POLICY
from filters.stop_words import STOP_WORDS

MARKS_FILE = "words/datatrove_marks.tsv"  # in filters/
LONG_WORD = 1000  # characters
SHORT_LINE = 30  # characters
LINE_WORDS = 3

Measured = dict[str, float]


def _marks() -> dict[str, frozenset[str]]:
    """Name -> characters; the file has ranges of code points."""
    found = {}
    text = (Path(__file__).parent / MARKS_FILE).read_text(encoding="ascii")
    for name, listed in (line.split("\t") for line in text.splitlines()):
        ends = [[int(code, 16) for code in item.split("-")] for item in listed.split()]
        found[name] = frozenset(chr(c) for end in ends for c in range(end[0], end[-1] + 1))
    return found


_MARKS = _marks()
TERMINALS = tuple(sorted(_MARKS["terminal"]))
MARKS = _MARKS["terminal"] | _MARKS["other"]


def gopher(text: str, words: list[str]) -> Measured:
    """Gopher repetition, then Gopher quality.

    Traps: characters in n-grams, joined by spaces, over all characters of the text; the most
    frequent n-gram counts though it stands once; an empty line before the first line feed; each
    punctuation mark is a word below the line, and none in `num_words`.
    """
    chars = max(len(text), 1)
    paragraphs = re.split(r"\n{2,}", text.strip())
    lines = re.split(r"\n+", text)
    dup_paragraphs, dup_paragraph_chars = _repeated(paragraphs)
    dup_lines, dup_line_chars = _repeated(lines)
    found = {
        "num_chars": len(text),
        "dup_paragraph_share": dup_paragraphs / len(paragraphs),
        "dup_paragraph_char_share": dup_paragraph_chars / chars,
        "dup_line_share": dup_lines / len(lines),
        "dup_line_char_share": dup_line_chars / chars,
    }
    for n in TOP_SIZES:
        found[f"top_{n}_gram_char_share"] = _top_gram_chars(words, n) / chars
    for n in DUP_SIZES:
        found[f"dup_{n}_gram_char_share"] = _repeated_gram_chars(words, n) / chars
    num_words = max(len(words), 1)
    lengths = [len(word) for word in words if not MARKS.issuperset(word)]
    lines = text.splitlines()
    num_lines = max(len(lines), 1)
    bullets = sum(line.lstrip().startswith(("•", "-")) for line in lines)
    ellipses = sum(line.rstrip().endswith(("...", "…")) for line in lines)
    return found | {
        "num_words": len(lengths),
        "mean_word_length": sum(lengths) / max(len(lengths), 1),
        "hash_ratio": text.count("#") / num_words,
        "ellipsis_ratio": (text.count("...") + text.count("…")) / num_words,
        "bullet_line_share": bullets / num_lines,
        "ellipsis_line_share": ellipses / num_lines,
        "alpha_word_share": sum(any(map(str.isalpha, word)) for word in words) / num_words,
        "num_stop_words": len(set(words).intersection(STOP_WORDS["en"])),
    }


def _repeated(pieces: list[str]) -> tuple[int, int]:
    """How many pieces stood before, and their characters."""
    seen: set[str] = set()
    again = []
    for piece in pieces:
        if piece in seen:
            again.append(len(piece))
        seen.add(piece)
    return len(again), sum(again)


def _top_gram_chars(words: list[str], n: int) -> int:
    grams = Counter(" ".join(gram) for gram in zip(*(words[i:] for i in range(n)), strict=False))
    gram = max(grams, key=grams.__getitem__, default="")  # of equals the first in the text
    return len(gram) * grams[gram]


def _repeated_gram_chars(words: list[str], n: int) -> int:
    """Characters in n-grams that stood before; from one of them the walk goes on behind it."""
    seen: set[str] = set()
    chars = at = 0
    while at + n <= len(words):
        gram = "".join(words[at : at + n])
        if gram in seen:
            chars += len(gram)
            at += n
        else:
            seen.add(gram)
            at += 1
    return chars


_CITATION = re.compile(r"\[(?:\d*|edit|citation needed)\]")
_POLICY = tuple(phrase for phrase, kind in PHRASES.items() if kind == POLICY and phrase.isascii())
# What becomes of a line, in the order of the rules; two of them drop the page there and then.
LINE_FATES = (
    *("num_long_word_lines", "num_unended_lines", "num_short_lines", "num_lorem_ipsum"),
    *("num_javascript_lines", "num_curly_brackets", "num_policy_lines", "lines_after"),
)
PAGE_FATES = ("num_lorem_ipsum", "num_curly_brackets")


def c4(text: str, num_sentences: Callable[[str], int], *, any_end: bool) -> Measured:
    """Lines by what becomes of them, up to the line that drops the page; `any_end`: as FineWeb runs
    it, without the rule that a line ends in a terminal mark.

    Traps: words and lengths are those of the line before citations are cut out of it; a JavaScript
    line hides its curly bracket; what the page has behind a bracket is not looked at.
    """
    found = dict.fromkeys(("num_lines", *LINE_FATES, "sentences_after"), 0)
    for line in text.splitlines():
        line = line.strip()
        without_citations = _CITATION.sub("", line)
        fate = _fate(line.split(), without_citations, any_end)
        found["num_lines"] += 1
        found[fate] += 1
        if fate in PAGE_FATES:
            break
        if fate == "lines_after":
            found["sentences_after"] += num_sentences(without_citations)
    return dict(found)


def _fate(words: list[str], line: str, any_end: bool) -> str:
    if any(len(word) > LONG_WORD for word in words):
        return "num_long_word_lines"
    if not any_end and (not line.endswith((".", "?", "!", '"', "'")) or line.endswith("...")):
        return "num_unended_lines"
    if len(words) < LINE_WORDS:
        return "num_short_lines"
    lower = line.lower()
    if "lorem ipsum" in lower:
        return "num_lorem_ipsum"
    if "javascript" in lower:
        return "num_javascript_lines"
    if "{" in line:
        return "num_curly_brackets"
    if any(phrase in lower for phrase in _POLICY):
        return "num_policy_lines"
    return "lines_after"


def fineweb(text: str, words: list[str]) -> Measured:
    """FineWeb's own rules. Traps: a line is not stripped, so before CRLF none ends in a mark, and
    an indented line is the longer; of the marks neither quotation marks nor … are terminal."""
    lines = [line for line in text.split("\n") if line.strip()]
    num_lines = max(len(lines), 1)
    return {
        "num_lines": len(lines),
        "punctuation_line_share": sum(line.endswith(TERMINALS) for line in lines) / num_lines,
        "short_line_share": sum(len(line) <= SHORT_LINE for line in lines) / num_lines,
        "dup_line_char_share": _repeated(lines)[1] / max(len(text.replace("\n", "")), 1),
        "newline_ratio": text.count("\n") / max(len(words), 1),
    }
