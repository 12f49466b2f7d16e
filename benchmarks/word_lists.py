"""Word lists on text that people wrote: how often each hits what is clean, and what is labelled.

    ASSAY_SAMPLE=... ASSAY_CORPUS=... python benchmarks/word_lists.py
    python benchmarks/word_lists.py --list some/list.txt    # any list, one phrase a line, as it is
    python benchmarks/word_lists.py --write                 # sets the strengths of unsafe.tsv

prints, for each clean source, the share of its documents with a hit of each list of
filters/words/unsafe.tsv and with a score of at least .5 in each category of `unsafe`; then the same
of the labelled sets. Strengths are set on the sources of FITTED alone: an entry that hits those
more than MOST times in a million words counts only together with others. The other sources, and all
labelled ones, are for testing.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
from pathlib import Path

import numpy as np
import pyarrow as pa

from filters import disguises, unsafe
from filters.automaton import Form, automaton
from filters.matching import find
from filters.segments import Texts

MOST = 2  # hits in a million words of any fitted genre, and at least two hits
NUM_BYTES = 6_000_000  # of a source

# Genre -> the sources on which strengths are set, and those on which they are tested.
FITTED = {
    "laws": ("laws-zh",),
    "technical": ("javaguide-zh", "python-peps-en"),
    "poems": ("poetry-tang-song",),
    "dialogue": ("crosswoz-zh",),
    "medical": ("medical-qa-zh",),
}
TESTED = {
    "technical": (
        *("d2l-zh", "trpl-zh", "hf-course", "tldr-pages"),
        *("ethereum-eips-en", "rust-book-en", "rust-rfcs-en"),
    ),
    "poems": ("poetry-yuding-quantangshi", "poetry-other-classics"),
    "reviews": ("nltk-movie-reviews",),
    "speeches": ("nltk-state-union",),
    "plays": ("nltk-shakespeare",),
}
# Source -> category, label of what is of it; the other labels are not.
LABELLED = {
    "cold-offensive-zh": ("hate", ("offensive",)),
    "hate-speech-tweets-en": ("hate", ("offensive", "hate")),
    "sms-spam-en": ("fraud", ("spam",)),
    "spamassassin-mail-en": ("fraud", ("spam",)),
}


def sources() -> dict[str, list[tuple[str, str]]]:
    """Source -> texts with their labels, of $ASSAY_CORPUS where it has the source."""
    found: dict[str, list[tuple[str, str]]] = {}
    for variable in ("ASSAY_CORPUS", "ASSAY_SAMPLE"):
        taken = set(found)
        for path in sorted(Path(os.environ[variable]).glob("*.jsonl.gz")):
            with gzip.open(path, "rt", encoding="utf-8") as lines:
                for line in lines:
                    row = json.loads(line)
                    if row["source"] not in taken:
                        label = str(row.get("label") or "")
                        found.setdefault(row["source"], []).append((row["text"], label))
    return {source: _first(rows) for source, rows in found.items()}


def _first(rows: list[tuple[str, str]]) -> list[tuple[str, str]]:
    sizes = np.cumsum([len(text.encode()) for text, _ in rows])
    return rows[: int(np.searchsorted(sizes, NUM_BYTES)) + 1]


def texts_of(rows: list[tuple[str, str]]) -> Texts:
    return Texts(pa.array([text for text, _ in rows], pa.string()))


def num_words(texts: Texts) -> int:
    return int(texts.segments.words.offsets[-1])


def write_strengths(texts: dict[str, Texts]) -> None:
    """Set `alone` or `together` of every entry by its rate on the fitted sources."""
    rows = [line.split("\t") for line in unsafe.FILE.read_text(encoding="utf-8").splitlines()]
    phrases = [row[0] for row in rows]
    ordinary = [row[0] for row in rows if row[2] == unsafe.ORDINARY]
    weak = np.zeros(len(rows), bool)
    built = automaton(disguises.forms(phrases), list(range(len(rows))), ordinary)
    for names in FITTED.values():
        for name in names:
            counts = np.bincount(find(texts[name], built).entries, minlength=len(rows))
            weak |= (counts >= 2) & (counts > MOST * num_words(texts[name]) / 1e6)
    for row, is_weak in zip(rows, weak, strict=True):
        if row[2] != unsafe.ORDINARY:
            row[2] = unsafe.TOGETHER if is_weak else unsafe.ALONE
    lines = ["\t".join(row) + "\n" for row in rows]
    unsafe.FILE.write_text("".join(lines), encoding="utf-8")
    unsafe.entries.cache_clear()
    print(f"{int(weak.sum())} of {len(rows)} entries count only together")


def share(flags: np.ndarray) -> str:
    return f"{100 * flags.mean():.1f} %"


def print_lists(texts: dict[str, Texts]) -> None:
    """Share of the documents of each clean source with a hit, by list and strength."""
    rows = [line.split("\t") for line in unsafe.FILE.read_text(encoding="utf-8").splitlines()]
    rows = [row for row in rows if row[2] != unsafe.ORDINARY]
    known = unsafe.entries()
    names = sorted({(row[3], row[2]) for row in rows})
    numbers = np.array([names.index((row[3], row[2])) for row in rows])
    print("\n| source | documents |", *(f"{origin}, {strength} |" for origin, strength in names))
    print("| --- " * (len(names) + 2) + "|")
    for source in _clean():
        found = find(texts[source], known.automaton)
        cells = []
        for number in range(len(names)):
            flags = np.zeros(len(texts[source]), bool)
            flags[found.texts[numbers[found.entries] == number]] = True
            cells.append(f"{share(flags)} |")
        print(f"| {source} | {len(texts[source])} |", *cells)


def print_scores(texts: dict[str, Texts]) -> None:
    print("\n| genre | source |", *(f"{name} |" for name in unsafe.CATEGORIES), "any |")
    print("| --- " * (len(unsafe.CATEGORIES) + 3) + "|")
    for genres, kind in ((FITTED, "fitted"), (TESTED, "tested")):
        for genre, names in genres.items():
            for source in names:
                scores = unsafe.measure(texts[source], {})
                cells = [f"{share(scores[c] >= 0.5)} |" for c in (*unsafe.CATEGORIES, "score")]
                print(f"| {genre}, {kind} | {source} |", *cells)


def print_labelled(rows: dict[str, list[tuple[str, str]]], texts: dict[str, Texts]) -> None:
    print(
        "\n| source | score | of it | recall .5 | recall .3 | false .5 | false .3 | precision .5 |"
    )
    print("| --- " * 8 + "|")
    for source, (category, positive) in LABELLED.items():
        labels = np.array([label in positive for _, label in rows[source]])
        scores = unsafe.measure(texts[source], {})[category]
        cells = [share(scores[of] >= bound) for of in (labels, ~labels) for bound in (0.5, 0.3)]
        precision = share(labels[scores >= 0.5])
        print(f"| {source} | {category} | {labels.sum()} of {len(labels)} |", end=" ")
        print(*(f"{cell} |" for cell in (*cells, precision)))


def print_list(path: Path, texts: dict[str, Texts]) -> None:
    """A list as it is: entries anywhere in the text, and at word borders."""
    lines = path.read_text(encoding="utf-8").splitlines()
    phrases = sorted({line.strip() for line in lines if 2 <= len(line.strip()) <= 60})
    built = automaton([Form(i, p) for i, p in enumerate(phrases)], [0] * len(phrases))
    print(f"\n{path.name}: {len(phrases)} entries of 2 to 60 characters")
    print("| source | documents | anywhere | at word borders |\n| --- | --- | --- | --- |")
    for source in _clean():
        step = max(len(texts[source]) // 200, 1)
        documents = texts[source].array.to_pylist()[::step][:200]
        found = np.zeros(len(documents), bool)
        found[find(Texts(pa.array(documents, pa.string())), built).texts] = True
        anywhere = np.array([any(phrase in text for phrase in phrases) for text in documents])
        print(f"| {source} | {len(found)} | {share(anywhere)} | {share(found)} |")


def _clean() -> list[str]:
    return [source for genres in (FITTED, TESTED) for names in genres.values() for source in names]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help="set the strengths of unsafe.tsv")
    parser.add_argument("--list", type=Path, help="measure this list, as it is, instead")
    chosen = parser.parse_args()
    rows = sources()
    texts = {source: texts_of(found) for source, found in rows.items()}
    if chosen.list:
        print_list(chosen.list, texts)
        return
    if chosen.write:
        write_strengths(texts)
    print_lists(texts)
    print_scores(texts)
    print_labelled(rows, texts)


if __name__ == "__main__":
    main()
