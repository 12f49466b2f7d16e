"""How many lines of what people wrote the rules of page chrome take, by source; numbers only.

    python benchmarks/boilerplate.py [FOLDER ...]

FOLDER as in detectors.py. Pages of WARC files hold real chrome (titles, links between pages), so
there a line that is taken may be rightly so.
"""

from __future__ import annotations

import os
import sys
from collections import Counter, defaultdict

import numpy as np
import pyarrow as pa
from human_texts import Human, documents

from filters.boilerplate import chrome_lines
from filters.segments import Texts

SOURCE_BYTES = 4_000_000


def main(folders: list[str]) -> None:
    by_source: dict[str, list[Human]] = defaultdict(list)
    for document in documents(folders, SOURCE_BYTES):
        by_source[document.source].append(document)
    print("| source | genre | lines | taken | characters taken | by which rules |")
    print("| --- | --- | ---: | ---: | ---: | --- |")
    for source, found in sorted(by_source.items(), key=lambda item: (item[1][0].genre, item[0])):
        texts = Texts(pa.array([document.text for document in found], pa.string()))
        lines = texts.segments.lines
        rules: Counter[str] = Counter()
        chars = 0
        for line in chrome_lines(texts, pa.array(["web"] * len(texts))):
            rules[line.rule] += 1
            chars += int(lines.chars[line.line])
        num_lines = int(lines.offsets[-1])
        share = chars / max(int(np.sum(lines.chars[:num_lines], dtype=np.int64)), 1)
        named = ", ".join(f"{name} {count}" for name, count in rules.most_common(4))
        row = source, found[0].genre, num_lines, rules.total(), f"{share:.5f}", named
        print("|", " | ".join(map(str, row)), "|", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:] or [os.environ[name] for name in ("ASSAY_SAMPLE", "ASSAY_CORPUS")])
