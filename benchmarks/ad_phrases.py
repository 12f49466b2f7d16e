"""How often the phrases of words/ads.tsv stand in what people wrote: by genre, the share of
documents with a phrase of each kind, and the largest share that any entry of it has.

    python benchmarks/ad_phrases.py [FOLDER ...]

FOLDER as in detectors.py. Numbers only.
"""

from __future__ import annotations

import os
import sys
from collections import defaultdict

import numpy as np
import pyarrow as pa
from human_texts import documents

from filters.ad_phrases import KINDS, phrases
from filters.segments import Texts

SOURCE_BYTES = 2_000_000


def main(folders: list[str]) -> None:
    by_genre: dict[str, list[str]] = defaultdict(list)
    for found in documents(folders, SOURCE_BYTES):
        by_genre[found.genre].append(found.text)
    print("| genre | texts |", " | ".join(KINDS), "|")
    print("| --- | ---: |", " | ".join(["---:"] * len(KINDS)), "|")
    for genre, texts in sorted(by_genre.items()):
        found = phrases(Texts(pa.array(texts, pa.string())))
        cells = []
        for number in range(len(KINDS)):
            of_kind = found.kinds == number
            share = len(np.unique(found.texts[of_kind])) / len(texts)
            _, times = np.unique(found.entries[of_kind], return_counts=True)
            cells.append(f"{share:.3f} / {times.max(initial=0) / len(texts):.3f}")
        print(f"| {genre} | {len(texts)} |", " | ".join(cells), "|", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:] or [os.environ[name] for name in ("ASSAY_SAMPLE", "ASSAY_CORPUS")])
