"""`unique: semantic` on planted groups: `python benchmarks/semantic.py 10000 50000 100000`

Vectors in groups of three around a centre (cosine of a pair some .97), each group a direction of
its own; one of each should stay. Printed: texts, wall and CPU seconds, peak memory, copies that
were missed, and texts that went without a copy.
"""

from __future__ import annotations

import resource
import sys
import time

import numpy as np

from dedup.semantic import keep_unlike, unit

DIMENSIONS = 384
GROUP = 3
NOISE = 0.15
THRESHOLD = 0.9


def main(sizes: list[int]) -> None:
    random = np.random.default_rng(0)
    for num in sizes:
        groups = random.permutation(np.arange(num) // GROUP)
        vectors = unit(random.standard_normal((num // GROUP + 1, DIMENSIONS)).astype(np.float32))[
            groups
        ]
        noise = random.standard_normal(vectors.shape, np.float32) * (NOISE / DIMENSIONS**0.5)
        vectors = unit(vectors + noise)
        first = np.zeros(num, bool)
        first[np.unique(groups, return_index=True)[1]] = True
        wall, cpu = time.perf_counter(), time.process_time()
        keep = keep_unlike(vectors, THRESHOLD)
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
        print(
            f"{num:>9,} texts  {wall:7.1f} s  {cpu:7.1f} CPU s  {peak:.1f} GB  "
            f"{(keep & ~first).sum() / (~first).sum():.4f} of the copies missed, "
            f"{(first & ~keep).sum()} others gone",
            flush=True,
        )


if __name__ == "__main__":
    main([int(size) for size in sys.argv[1:]] or [10_000])
