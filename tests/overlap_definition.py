"""What dedup/item_index.py and dedup/overlap.py find, in plain Python, as their headers say it."""

from __future__ import annotations

import re
from collections import Counter
from typing import NamedTuple

from dedup.folding import ONE_WORD, fold_point
from dedup.item_index import MAX_ENTRIES
from dedup.placed_words import Length

Ngram = tuple[str, ...]


class Word(NamedTuple):
    letters: str
    start: int  # bytes
    end: int
    single: bool


def placed_words(text: str) -> list[Word]:
    found: list[Word] = []
    is_open = False
    at = 0
    for char in text:
        begin, at = at, at + len(char.encode())
        view = fold_point(char)
        if view == "" and found and found[-1].end == begin:
            found[-1] = found[-1]._replace(end=at)
        for letter in view:
            if letter == " ":
                is_open = False
            elif re.match(f"[{ONE_WORD}]", letter):
                found.append(Word(letter, begin, at, True))
                is_open = False
            elif is_open:
                found[-1] = found[-1]._replace(letters=found[-1].letters + letter, end=at)
            else:
                found.append(Word(letter, begin, at, False))
                is_open = True
    return found


def ngrams(words: list[Word], length: Length) -> list[Ngram]:
    found = []
    for begin in range(len(words)):
        weight = 0
        for end in range(begin, len(words)):
            weight += length.words if words[end].single else length.characters
            if weight >= length.words * length.characters:
                found.append(tuple(word.letters for word in words[begin : end + 1]))
                break
    return found


class Entry(NamedTuple):
    places: dict[Ngram, int]  # of n-grams of its own
    counted: set[int]
    question: int
    asked: set[int]


def entries(items: list[tuple[str, str]], length: Length) -> list[Entry]:
    rows = [ngrams(placed_words(f"{question}\n{other}"), length) for question, other in items]
    counts = Counter(ngram for row in rows for ngram in set(row))
    found = []
    for (question, _), row in zip(items, rows, strict=True):
        places = {g: row.index(g) for g in row if counts[g] <= MAX_ENTRIES}
        held = {n for g, at in places.items() for n in range(at, at + len(g))}
        border = len(placed_words(question))
        inside = any(at + len(g) <= border for g, at in places.items())
        asked = {n for n in held if n < border} if inside else set()
        found.append(Entry(places, held, border, asked))
    return found


def found_in(
    documents: list[str], items: list[tuple[str, str]], length: Length
) -> list[tuple[int, int, float, int, int]]:
    """(document, entry, share, start, end) of each place."""
    known = entries(items, length)
    found = []
    for document, text in enumerate(documents):
        words = placed_words(text)
        row = ngrams(words, length)
        for number, entry in enumerate(known):
            places: list[list[int]] = []
            for at, ngram in enumerate(row):
                if ngram in entry.places:
                    last = places[-1][-1] if places else None
                    if last is not None and at <= last + len(row[last]) + length.longest:
                        places[-1].append(at)
                    else:
                        places.append([at])
            for place in places:
                held = {entry.places[row[at]] + n for at in place for n in range(len(row[at]))}
                share = len(held) / len(entry.counted)
                if entry.asked:
                    of_question = {n for n in held if n < entry.question}
                    share = max(share, len(of_question) / len(entry.asked))
                end = place[-1] + len(row[place[-1]]) - 1
                found.append((document, number, share, words[place[0]].start, words[end].end))
    return found
