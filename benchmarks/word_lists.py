"""Word lists on text that people wrote: how often each hits what is clean, and what is labelled.

    python benchmarks/word_lists.py [FOLDER ...]
    python benchmarks/word_lists.py --list some/list.txt    # any list, one phrase a line, as it is
    python benchmarks/word_lists.py --write                 # weakens what hits clean text

prints, for each language, genre and source, the share of its documents (in %) with a hit of each
list of filters/words/unsafe.tsv, severe or alone / together, and with a score of at least .5 in
each category of `unsafe`, and of at least .3 in any; then the same of the labelled sets. Strengths
are set by sense, by hand; then by the sources of FITTED: what hits those more than MOST times in a
million words counts only together.
The other sources, and all labelled ones, are for testing.

FOLDER as in detectors.py; news and encyclopedias are those of package_texts.py.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
from human_texts import DAMAGED, LABELLED, Human, documents

from filters import disguises, shipped, unsafe
from filters.automaton import Form, automaton
from filters.matching import find
from filters.segments import Texts
from filters.signals import GROUPS

MOST = 2  # hits in a million words of any fitted genre, and at least two hits
NUM_BYTES = 20_000_000  # of a source
NUM_LISTED = 200  # documents of a source on which any list is measured as it is

FITTED = (
    *("laws-zh", "javaguide-zh", "python-peps-en", "poetry-tang-song", "crosswoz-zh"),
    *("medical-qa-zh", "gensim-news-en"),
)
FEWEST = 5  # documents of a row of the tables
LANGUAGES = ("zh", "en", "ja", "ko")  # in which words of these lists are written; else "other"
CATEGORIES = {  # labelled source -> what its positive label is
    "cold-offensive-zh": "hate",
    "hate-speech-tweets-en": "hate",
    "sms-spam-en": "fraud",
    "spamassassin-mail-en": "fraud",
}

Row = tuple[str, str, str]  # language, genre, source


def clean(people: list[Human]) -> dict[Row, Texts]:
    """The documents without labels, by language, genre and source."""
    rows: dict[Row, list[str]] = {}
    unlabelled = [one for one in people if one.source not in LABELLED]
    batch = texts_of([one.text for one in unlabelled])
    lang = GROUPS["language"].measure(batch, {})["lang"]
    for one, language in zip(unlabelled, pa.array(lang).to_pylist(), strict=True):
        known = language if language in LANGUAGES else "other"
        rows.setdefault((known, one.genre, one.source), []).append(one.text)
    return {row: texts_of(rows[row]) for row in sorted(rows) if len(rows[row]) >= FEWEST}


def texts_of(texts: list[str]) -> Texts:
    return Texts(pa.array(texts, pa.large_string()))


def write_strengths(people: list[Human]) -> None:
    """Make `together` of every entry that hits the fitted sources too often."""
    rows = [line.split("\t") for line in shipped.UNSAFE.read_text(encoding="utf-8").splitlines()]
    phrases = [row[0] for row in rows]
    ordinary = [row[0] for row in rows if row[2] == shipped.ORDINARY]
    weak = np.zeros(len(rows), bool)
    built = automaton(disguises.forms(phrases), list(range(len(rows))), ordinary)
    for name in FITTED:
        texts = texts_of([p.text for p in people if p.source == name and p.genre != DAMAGED])
        counts = np.bincount(find(texts, built).entries, minlength=len(rows))
        num_words = int(texts.segments.words.offsets[-1])
        weak |= (counts >= 2) & (counts > MOST * num_words / 1e6)
    for row, is_weak in zip(rows, weak, strict=True):
        if is_weak and row[2] != shipped.ORDINARY:
            row[2] = shipped.TOGETHER
    lines = ["\t".join(row) + "\n" for row in rows]
    shipped.UNSAFE.write_text("".join(lines), encoding="utf-8")
    shipped.unsafe_entries.cache_clear()
    unsafe.entries.cache_clear()
    print(f"{int(weak.sum())} of {len(rows)} entries hit clean text and count only together")


def share(flags: np.ndarray) -> str:
    return f"{100 * flags.mean():.1f}"


def table(heads: list[str], rows: Iterator[list[str]]) -> None:
    print(f"\n| {' | '.join(heads)} |\n|{' --- |' * len(heads)}")
    for row in rows:
        print(f"| {' | '.join(row)} |", flush=True)


def named(row: Row, texts: Texts) -> list[str]:
    language, genre, source = row
    fitted = " (fitted)" if source in FITTED and genre != DAMAGED else ""
    return [language, genre, f"{source}{fitted}", f"{len(texts):,}"]


def list_of(phrase: str, origin: str) -> str:
    """Its origin, with the language that ours has."""
    return origin if origin != "own" else f"own {'en' if phrase.isascii() else 'zh'}"


def print_clean(sources: dict[Row, Texts]) -> None:
    """Share of the documents of each clean source with a hit of each list, by strength; and with a
    score of .5 in each category."""
    rows = [line.split("\t") for line in shipped.UNSAFE.read_text(encoding="utf-8").splitlines()]
    rows = [row for row in rows if row[2] != shipped.ORDINARY]
    lists = [list_of(row[0], row[3]) for row in rows]
    names = sorted(set(lists))
    numbers = np.array([names.index(name) for name in lists])
    together = unsafe.entries().together.astype(int)

    def cells() -> Iterator[list[str]]:
        for row, texts in sources.items():
            found = shipped.shipped(texts).unsafe
            flags = np.zeros((len(names), 2, len(texts)), bool)
            flags[numbers[found.entries], together[found.entries], found.texts] = True
            scores = unsafe.measure(texts, {})
            shares = [share(scores[name] >= 0.5) for name in (*unsafe.CATEGORIES, "score")]
            shares.append(share(scores["score"] >= 0.3))
            yield [*named(row, texts), *(" / ".join(map(share, pair)) for pair in flags), *shares]

    heads = [*names, *unsafe.CATEGORIES, "any", "any .3"]
    table(["language", "genre", "source", "documents", *heads], cells())


def print_labelled(people: list[Human]) -> None:
    def cells() -> Iterator[list[str]]:
        for source, category in CATEGORIES.items():
            found = [one for one in people if one.source == source]
            if not found:
                continue
            labels = np.array([one.label in LABELLED[source] for one in found])
            scores = unsafe.measure(texts_of([one.text for one in found]), {})[category]
            shares = [
                share(scores[of] >= bound) for of in (labels, ~labels) for bound in (0.5, 0.3)
            ]
            positive = f"{labels.sum():,} of {len(labels):,}"
            yield [source, category, positive, *shares, share(labels[scores >= 0.5])]

    heads = ["recall .5", "recall .3", "false .5", "false .3", "precision .5"]
    table(["source", "score", "of it", *heads], cells())


def print_list(path: Path, sources: dict[Row, Texts]) -> None:
    """A list as it is: entries anywhere in the text, and at word borders."""
    lines = path.read_text(encoding="utf-8").splitlines()
    phrases = sorted({line.strip() for line in lines if 2 <= len(line.strip()) <= 60})
    built = automaton([Form(i, p) for i, p in enumerate(phrases)], [0] * len(phrases))

    def cells() -> Iterator[list[str]]:
        for row, texts in sources.items():
            step = max(len(texts) // NUM_LISTED, 1)
            some = texts.array.to_pylist()[::step][:NUM_LISTED]
            found = np.zeros(len(some), bool)
            found[find(texts_of(some), built).texts] = True
            anywhere = np.array([any(phrase in text for phrase in phrases) for text in some])
            yield [*named(row, texts_of(some)), share(anywhere), share(found)]

    print(f"\n{path.name}: {len(phrases)} entries of 2 to 60 characters")
    table(["language", "genre", "source", "documents", "anywhere", "at word borders"], cells())


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    given = [os.environ[name] for name in ("ASSAY_SAMPLE", "ASSAY_CORPUS") if name in os.environ]
    parser.add_argument("folders", nargs="*", default=given, metavar="FOLDER")
    parser.add_argument("--write", action="store_true", help="weaken what hits clean text")
    parser.add_argument("--list", type=Path, help="measure this list, as it is, instead")
    chosen = parser.parse_args()
    if not chosen.folders:
        parser.error("name a folder with a corpus, or set ASSAY_SAMPLE or ASSAY_CORPUS")
    people = documents(chosen.folders, NUM_BYTES)
    if chosen.write:
        write_strengths(people)
    sources = clean(people)
    if chosen.list:
        print_list(chosen.list, sources)
        return
    print_clean(sources)
    print_labelled(people)


if __name__ == "__main__":
    main()
