"""Train a classifier, judge it on what was held out, write it and its card, or refuse it.

The same examples, settings and seed give the same bytes. fastText 0.9.2 with one thread fills a
tenth of its input matrix with random numbers and leaves the rest as the memory was (`uniform` of
densematrix.cc hands out blocks for ten threads): results then differ from run to run, and now and
then are NaN. So its memory is zeros: the rows of the most frequent tokens begin at random, the
others at zero.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import xxhash

from filters import calibration, cards, classifier, edges
from filters.fasttext_file import LABEL, Floats
from filters.segments import Texts
from filters.spread import View, spread_all
from kernels.arrow import string_buffers
from pipeline import heap
from pipeline.config import ConfigError
from pipeline.files import replacing
from pipeline.fingerprint import versions
from pipeline.learned import agreement
from pipeline.learned.assess import assess, beats_majority, by, cross_calibrated
from pipeline.learned.card import write_card
from pipeline.learned.examples import examples, place
from pipeline.learned.settings import ClassifierSettings, FastText
from pipeline.learned.split import split

POSITIVE, NEGATIVE = "positive", "negative"
Flags = npt.NDArray[np.bool_]
# Tokens with a meaning of their own: a label, the end of a line. Only a raw view can hold them.
RESERVED = {LABEL: "__ label__", "</s>": "< /s>"}


def train(settings: ClassifierSettings) -> dict[str, Any]:
    """Write the model and its card; returns the card.

    Raises:
        ConfigError: the model is no better than the majority class on what was held out; labels do
            not agree with those by hand; examples that cannot be used.
    """
    checked = agreement.required(settings)
    table, left_out = examples(settings)
    held, sources = split(table, settings.heldout, settings.seed)
    good = table["good"].to_numpy()
    view = View(**settings.view.model_dump())
    lines = spread_lines(table["text"], view)
    output = Path(settings.output)
    with replacing(output) as temporary:
        fit_file(lines, good, ~held, settings.fasttext, settings.seed, temporary)
        model = classifier.Model(view, *classifier.linear(temporary, POSITIVE), {}, {})
        unseen = table.filter(pa.array(held))
        margins = classifier.margins(model, Texts(unseen["text"].combine_chunks()))
        numbers = _judged(unseen, margins, settings, sources)
        if not beats_majority(numbers["all"]):
            raise ConfigError(_refusal(numbers["all"], settings))
        digest = cards.sha256(temporary)
    card = {
        "format": cards.FORMAT,
        "kind": classifier.KIND,
        "model": {"file": output.name, "sha256": digest},
        "positive": POSITIVE,
        "view": view._asdict(),
        "calibration": calibration.fit(margins, good[held], settings.calibration),
        "heldout": numbers,
        "data": _described(table, held) | left_out,
        "agreement": checked,
        "settings": settings.model_dump(mode="json", exclude={"output"}),
        "versions": versions(["assay", "fasttext-numpy2-wheel", "numpy"]),
        "edges": {
            "corpus": "the texts held out when it was trained",
            "documents": len(margins),
            "margins": edges.fit(margins, unseen["lang"].to_pylist()),
        },
    }
    write_card(output, card)
    return card


def spread_lines(texts: pa.ChunkedArray, view: View) -> list[str]:
    """The view of each text, as fastText may read it from a line."""
    data, offsets = spread_all(*string_buffers(texts), view)
    ends = offsets.tolist()
    raw = data.tobytes()
    lines = [raw[ends[i] : ends[i + 1]].decode() for i in range(len(ends) - 1)]
    if view.units == "raw":
        for token, other in RESERVED.items():
            lines = [line.replace(token, other) for line in lines]
    return lines


def fit_file(
    lines: list[str], good: Flags, rows: Flags, settings: FastText, seed: int, path: Path
) -> None:
    """Train on some of the lines and write the model.

    Raises:
        ConfigError: fastText gave up.
    """
    import fasttext  # .1 s, for this alone

    order = sorted(np.flatnonzero(rows).tolist(), key=lambda row: place(b"%d" % row, seed))
    with tempfile.NamedTemporaryFile("w", encoding="utf-8", suffix=".txt") as file:
        for row in order:  # fastText does not shuffle
            file.write(f"{LABEL}{POSITIVE if good[row] else NEGATIVE}{lines[row]}\n")
        file.flush()
        with heap.zeroed():
            try:
                model = fasttext.train_supervised(
                    file.name,
                    dim=settings.dim,
                    wordNgrams=settings.word_ngrams,
                    epoch=settings.epochs,
                    lr=settings.learning_rate,
                    minCount=settings.min_count,
                    bucket=settings.bucket,
                    loss="softmax",
                    thread=1,
                    seed=seed,
                    verbose=0,
                )
            except RuntimeError as error:  # "Encountered NaN."
                raise ConfigError(
                    f"fastText gave up ({error}); lower `fasttext.learning_rate` "
                    f"({settings.learning_rate:g})"
                ) from None
            model.save_model(str(path))


def _judged(
    table: pa.Table, margins: Floats, settings: ClassifierSettings, sources: tuple[str, ...]
) -> dict[str, Any]:
    """Numbers of the held-out texts: all, by language, by source."""
    good = table["good"].to_numpy()
    method = calibration.chosen(settings.calibration, len(good))
    halves = np.array([place(k, settings.seed + 1) & 1 for k in table["content_hash"].to_pylist()])
    try:
        likely = cross_calibrated(margins, good, halves == 0, method)
    except (ValueError, np.linalg.LinAlgError):
        raise ConfigError(
            f"{len(good)} texts held out are too few to calibrate on; give more, or a larger "
            "`heldout.share`"
        ) from None
    return {
        "by": "source" if sources else "content",
        "sources": sources,
        "all": assess(margins, likely, good),
        "languages": by(table["lang"].to_pylist(), margins, likely, good),
        "by_source": by(table["source"].to_pylist(), margins, likely, good),
    }


def _refusal(found: dict[str, Any], settings: ClassifierSettings) -> str:
    low, high = found["interval"]
    return (
        f"{settings.output} is not written: of {found['documents']:,} texts held out it is right "
        f"in a share of {found['accuracy']:.3f} (95 % interval {low:.3f} to {high:.3f}), and who "
        f"always says the larger class in {found['majority']:.3f}. "
        + (
            "`view.units: raw` learns nothing from Chinese, which has no spaces: take `characters`"
            if settings.view.units == "raw"
            else "Give examples that differ in what is to be learnt, more of them, or more epochs"
        )
    )


def _described(table: pa.Table, held: Flags) -> dict[str, Any]:
    """What it learnt from: counts, and one hash over every content, its class and its side."""
    digest = xxhash.xxh3_128()
    rows = zip(table["content_hash"].to_pylist(), table["good"].to_pylist(), held, strict=True)
    for key, good, is_held in rows:
        digest.update(key + bytes([int(good), int(is_held)]))
    counts: dict[str, dict[str, int]] = {}
    for source, lang, good, is_held in zip(
        *(table[name].to_pylist() for name in ("source", "lang", "good")), held, strict=True
    ):
        side = f"{POSITIVE if good else NEGATIVE}, {'held out' if is_held else 'trained on'}"
        of_source = counts.setdefault(f"{source} ({lang})", {})
        of_source[side] = of_source.get(side, 0) + 1
    return {"hash": digest.hexdigest(), "sources": dict(sorted(counts.items()))}
