"""How often the segmenter `jieba` of filters/segmenters.py, which is rjieba, cuts Chinese otherwise
than jieba itself, and how fast both are.

    pip install --no-deps --target FOLDER jieba==0.42.1 'setuptools<81'
    PYTHONWARNINGS=ignore PYTHONPATH=.:FOLDER python benchmarks/segmenters.py zh.jsonl.gz [...]
"""

from __future__ import annotations

import gzip
import itertools
import re
import sys
import time
from pathlib import Path

import jieba
import orjson

from filters.segmenters import cutter

HAN_RUN = re.compile("[\u3400-\u9fff]+")
MAX_CHARS = 2_000  # of a document
STEP = 4  # every fourth document


def main(paths: list[Path]) -> int:
    segmenters = {"rjieba": cutter("jieba"), "jieba": jieba.lcut}
    seconds = dict.fromkeys(segmenters, 0.0)
    num_bytes = words = same = 0
    for cut in segmenters.values():
        cut("天气")  # loads the dictionary
    for path in paths:
        with gzip.open(path) as file:
            texts = [orjson.loads(line)["text"][:MAX_CHARS] for line in file.readlines()[::STEP]]
        for run in itertools.chain.from_iterable(map(HAN_RUN.findall, texts)):
            ends = []
            for name, cut in segmenters.items():
                begin = time.process_time()
                pieces = cut(run)
                seconds[name] += time.process_time() - begin
                ends.append(set(itertools.accumulate(map(len, pieces))))
            num_bytes += len(run.encode())
            words += len(ends[1])
            same += len(ends[0] & ends[1])
    print(f"{words:,} words of jieba, {words - same:,} ends of them not among rjieba's")
    for name, total in seconds.items():
        print(f"{name}: {num_bytes / total / 1e6:.2f} MB per CPU second")
    return 0


if __name__ == "__main__":
    sys.exit(main([Path(name) for name in sys.argv[1:]]))
