"""How far the detectors can be trusted: recall and false alarms of every score, numbers only.

    python benchmarks/detectors.py [FOLDER ...] [--groups broken generated] [--parts written human]

A detector is a column between 0 and 1 of a signal group of `GROUPS`. Printed of each, at its
threshold and as AUC (the chance that a positive text scores above a human one of its language):

    written    recall on benchmarks/data/written.jsonl and written_second.jsonl, by kind, language
               and genre; no cut was chosen on the second set
    human      false alarms on what people wrote, by genre and source, of documents as they are and
               of pieces as long as the written texts
    labelled   the share flagged of what its makers labelled as unsound, and of the rest
    breakage   recall on human text that real codecs broke, by kind and share of the lines

FOLDER: corpora of JSONL, Parquet or WARC; default $ASSAY_SAMPLE and $ASSAY_CORPUS, else the data of
the quickstart. No text is ever printed.
"""

from __future__ import annotations

import argparse
import json
import os
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from breakage import CHINESE, ENGLISH, broken
from human_texts import LABELLED, Human, documents, pieces
from texts import QUICKSTART

from filters.normalize import normalize
from filters.presets import CUTS
from filters.segments import Texts
from filters.shipped import CATEGORIES
from filters.signals import GROUPS

DATA = Path(__file__).parent / "data"
WRITTEN = {"first": DATA / "written.jsonl", "second": DATA / "written_second.jsonl"}
# The score from which a text counts as found. Each category of `unsafe` has that of the whole.
THRESHOLDS: dict[str, float] = {signal: cut for signal, (cut, _) in CUTS.items()} | {
    f"unsafe.{name}": CUTS["unsafe.score"][0] for name in CATEGORIES
}
SOURCE_BYTES = 2_000_000  # of a source: enough for a rate, and few wait
PIECE_BYTES = {"zh": 1_200, "en": 1_500}  # about the mean of the written texts
NUM_BROKEN = 100  # documents of a language that are broken in each way
MAX_BROKEN_BYTES = 20_000
SHARES = (1.0, 0.3, 0.05)  # of their lines
BATCH = 2_000
ALARMS = (0.01, 0.05)  # of human pieces

Scores = dict[str, npt.NDArray[np.float64]]  # of each detector, one number a text
Rows = list[Sequence[object]]


def detectors(groups: Iterable[str]) -> list[str]:
    """`<group>.<column>` of the scores of these groups."""
    return [
        f"{group}.{name}"
        for group in groups
        for name in GROUPS[group].columns
        if f"{group}.{name}" in THRESHOLDS
    ]


def measure(texts: Sequence[str], groups: Sequence[str]) -> tuple[list[str], Scores]:
    """The language of each text, and its scores; a missing one is 0: nothing is flagged."""
    languages: list[str] = []
    found: dict[str, list[npt.NDArray[np.float64]]] = {name: [] for name in detectors(groups)}
    for first in range(0, len(texts), BATCH):
        batch = Texts(pa.array(texts[first : first + BATCH], pa.string()))
        nothing = pa.array([""] * len(batch), pa.string())
        lang = pa.array(GROUPS["language"].measure(batch, {"lang": nothing})["lang"])
        columns = {"lang": lang, "kind": pa.array(["web"] * len(batch), pa.string())}
        languages += lang.to_pylist()
        for group in groups:
            reads = {name: columns.get(name, nothing) for name in ("lang", *GROUPS[group].reads)}
            measured = GROUPS[group].measure(batch, reads)
            for name in detectors([group]):
                column = pa.array(measured[name.partition(".")[2]]).cast(pa.float64())
                found[name].append(column.fill_null(0).to_numpy(zero_copy_only=False))
    return languages, {name: np.concatenate([np.empty(0), *parts]) for name, parts in found.items()}


def auc(positive: npt.NDArray[np.float64], negative: npt.NDArray[np.float64]) -> float:
    """The chance that one of the first is larger than one of the second; a tie counts half."""
    if not len(positive) or not len(negative):
        return float("nan")
    ordered = np.sort(negative)
    below = np.searchsorted(ordered, positive, "left")
    upto = np.searchsorted(ordered, positive, "right")
    return float((below + upto).mean() / 2 / len(ordered))


def by(keys: Iterable[Any]) -> dict[Any, npt.NDArray[np.int64]]:
    """Key -> where it stands, keys in order."""
    places: dict[Any, list[int]] = defaultdict(list)
    for place, key in enumerate(keys):
        places[key].append(place)
    return {key: np.array(places[key]) for key in sorted(places)}


def table(title: str, heads: Sequence[str], rows: Rows) -> None:
    print(f"\n### {title}\n")
    print(f"| {' | '.join(heads)} |")
    print("|" + " --- |" * len(heads))
    for row in rows:
        cells = (f"{cell:.3f}" if isinstance(cell, float) else str(cell) for cell in row)
        print(f"| {' | '.join(cells)} |")


def per_detector(
    title: str, keys: Mapping[tuple[str, ...], npt.NDArray[np.int64]], scores: Scores, heads: str
) -> None:
    """A row a key: how many texts, and of each detector the share that it flags."""
    rows: Rows = [
        (*key, len(at), *(float((scores[name][at] >= THRESHOLDS[name]).mean()) for name in scores))
        for key, at in keys.items()
    ]
    table(title, [*heads.split(), "texts", *(f"{n} ≥ {THRESHOLDS[n]:g}" for n in scores)], rows)


class Ground:
    """Human pieces as long as the written texts: what an AUC compares with."""

    def __init__(self, people: Sequence[Human], groups: Sequence[str]) -> None:
        self.people = people
        self.languages, self.scores = measure([human.text for human in people], groups)
        cut = [
            (human.genre, piece)
            for human, language in zip(people, self.languages, strict=True)
            if language in PIECE_BYTES
            for piece in pieces(human.text, PIECE_BYTES[language])
        ]
        self.piece_genres = [genre for genre, _ in cut]
        self.piece_languages, self.pieces = measure([piece for _, piece in cut], groups)

    def of(self, language: str, detector: str) -> npt.NDArray[np.float64]:
        return self.pieces[detector][[found == language for found in self.piece_languages]]


def _known(language: str) -> str:
    return language if language in PIECE_BYTES else "other"


def written(ground: Ground, groups: Sequence[str]) -> None:
    texts = [
        {"set": name, **json.loads(line)}
        for name, path in WRITTEN.items()
        for line in path.read_text(encoding="utf-8").splitlines()
    ]
    _, scores = measure([normalize(text["text"])[0] for text in texts], groups)
    kinds = by((text["set"], text["kind"], text["language"], text["genre"]) for text in texts)
    per_detector("Written texts, by genre", kinds, scores, "set kind lang genre")
    rows: Rows = []
    wholes = by((text["set"], text["kind"], text["language"]) for text in texts)
    for (given, kind, language), at in wholes.items():
        for name in scores:
            flagged = float((scores[name][at] >= THRESHOLDS[name]).mean())
            others = ground.of(language, name)
            alarms = float((others >= THRESHOLDS[name]).mean()) if len(others) else float("nan")
            at_alarms = [
                float((scores[name][at] > np.quantile(others, 1 - share)).mean())
                for share in (ALARMS if len(others) else ())
            ]
            area = auc(scores[name][at], others)
            rows.append((name, given, kind, language, flagged, alarms, *at_alarms, area))
    table(
        "Written texts against human pieces",
        (
            *("detector", "set", "kind", "lang", "recall", "human pieces flagged"),
            *(f"recall where {share:.0%} of them are" for share in ALARMS),
            "AUC",
        ),
        rows,
    )


def human(ground: Ground, groups: Sequence[str]) -> None:
    del groups
    whole = by(
        (_known(language), one.genre, one.source)
        for language, one in zip(ground.languages, ground.people, strict=True)
    )
    per_detector("Human documents", whole, ground.scores, "lang genre source")
    cut = by(
        (_known(language), genre)
        for language, genre in zip(ground.piece_languages, ground.piece_genres, strict=True)
    )
    per_detector("Human pieces", cut, ground.pieces, "lang genre")


def labelled(ground: Ground, groups: Sequence[str]) -> None:
    del groups
    rows: Rows = []
    for source, unsound in LABELLED.items():
        at = [i for i, one in enumerate(ground.people) if one.source == source]
        if not at:
            continue
        marked = [i for i in at if ground.people[i].label in unsound]
        rest = [i for i in at if ground.people[i].label not in unsound]
        for name, found in ground.scores.items():
            shares = (float((found[side] >= THRESHOLDS[name]).mean()) for side in (marked, rest))
            rows.append((source, "/".join(unsound), name, *shares, auc(found[marked], found[rest])))
    heads = ("source", "label", "detector", "flagged of it", "flagged of the rest", "AUC")
    table("Labelled sets", heads, rows)


def breakage(ground: Ground, groups: Sequence[str]) -> None:
    if "broken" not in groups:
        return
    rows: Rows = []
    for language, kinds in (("zh", CHINESE), ("en", ENGLISH)):
        sound = [
            one.text
            for one, found in zip(ground.people, ground.languages, strict=True)
            if found == language and 1_000 <= len(one.text.encode()) <= MAX_BROKEN_BYTES
        ]
        sound = sound[:: max(1, len(sound) // NUM_BROKEN)][:NUM_BROKEN]
        _, before = measure(sound, ["broken"])
        for kind, how in kinds.items():
            row: list[object] = [language, kind, len(sound)]
            for share in SHARES:
                texts = [
                    normalize(broken(kind, how, text, share, seed))[0]
                    for seed, text in enumerate(sound)
                ]
                _, after = measure(texts, ["broken"])
                found = after["broken.score"]
                row += [
                    float((found >= THRESHOLDS["broken.score"]).mean()),
                    auc(found, before["broken.score"]),
                ]
            rows.append(row)
    heads = ["lang", "kind", "texts"]
    for share in SHARES:
        heads += [f"recall, {share:.0%} of lines", "AUC"]
    table(f"Breakage, at broken.score ≥ {THRESHOLDS['broken.score']:g}", heads, rows)


PARTS: dict[str, Callable[[Ground, Sequence[str]], None]] = {
    "written": written,
    "human": human,
    "labelled": labelled,
    "breakage": breakage,
}


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    present = list(dict.fromkeys(name.partition(".")[0] for name in THRESHOLDS))
    given = [os.environ[name] for name in ("ASSAY_SAMPLE", "ASSAY_CORPUS") if name in os.environ]
    parser.add_argument("folders", nargs="*", default=given or [str(QUICKSTART)], metavar="FOLDER")
    parser.add_argument("--groups", nargs="+", choices=present, default=present)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--source-bytes", type=int, default=SOURCE_BYTES, help="text of a source")
    options = parser.parse_args(arguments)
    missing = [folder for folder in options.folders if not Path(folder).is_dir()]
    if missing:
        parser.error(
            f"no folder {missing[0]}: name one with a corpus, set ASSAY_SAMPLE or ASSAY_CORPUS, or "
            "make the quickstart's data: python examples/quickstart/data.py"
        )
    ground = Ground(documents(options.folders, options.source_bytes), options.groups)
    for part in options.parts:
        PARTS[part](ground, options.groups)


if __name__ == "__main__":
    main()
