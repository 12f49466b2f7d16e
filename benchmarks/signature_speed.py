"""Signatures of 128 values over 5-grams, MB of text a CPU second: ours, datasketch's, rensa's.

Theirs from the same folded words, which are not timed: to make shingles of them, and to sign.
"""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
from measure import cpu_seconds

from dedup.folding import fold
from dedup.minhash import signatures
from dedup.shingles import shingles

TURNS = 3
FEW_BYTES = 400_000  # that the slow ones sign


def speed(real: list[str], language: str) -> None:
    """Print a line for each; they take turns, and the least counts."""
    few: list[str] = []
    left = FEW_BYTES
    for text in sorted(real, key=len)[len(real) // 2 :: 7]:
        few.append(text)
        left -= len(text.encode())
        if left <= 0:
            break
    words = [fold(text).split() for text in few]
    whole, some = pa.array(real), pa.array(few)
    ways: dict[str, tuple[Callable[[], object], float]] = {
        "ours": (lambda: signatures(*shingles(whole)), _size(real)),
        "ours, the few": (lambda: signatures(*shingles(some)), _size(few)),
        "datasketch, its loop": (lambda: _datasketch_loop(words), _size(few)),
        "datasketch, in batches": (lambda: _datasketch_batches(words), _size(few)),
        "rensa": (lambda: _rensa(words), _size(few)),
    }
    signatures(*shingles(some))  # loads what was compiled
    least = dict.fromkeys(ways, float("inf"))
    for _ in range(TURNS):
        for name, (sign, _) in ways.items():
            least[name] = min(least[name], cpu_seconds(sign))
    rates = {name: size / least[name] for name, (_, size) in ways.items()}
    for name, rate in rates.items():
        print(
            f"  {name:<26}{rate:8.2f} MB/CPU-s{rates['ours, the few'] / rate:8.1f} times",
            flush=True,
        )


def _size(texts: list[str]) -> float:
    return sum(len(text.encode()) for text in texts) / 1e6


def _grams(words: list[str]) -> list[bytes]:
    return [" ".join(words[i : i + 5]).encode() for i in range(max(1, len(words) - 4))]


def _datasketch_loop(texts: list[list[str]]) -> None:
    from datasketch import MinHash

    for words in texts:
        sketch = MinHash(128)
        for gram in _grams(words):
            sketch.update(gram)


def _datasketch_batches(texts: list[list[str]]) -> None:
    from datasketch import MinHash

    for words in texts:
        MinHash(128).update_batch(_grams(words))


def _rensa(texts: list[list[str]]) -> None:
    from rensa import RMinHash

    for words in texts:
        sketch = RMinHash(128, 1)
        sketch.update([" ".join(words[i : i + 5]) for i in range(max(1, len(words) - 4))])
        sketch.digest()
