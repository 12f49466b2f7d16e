"""How well near copies are found, on real text: recall and precision against all pairs, copies in
another script, shingles for Chinese, and the speed of signatures beside others'.

    pip install --no-deps --target FOLDER rensa opencc
    PYTHONPATH=.:FOLDER python benchmarks/near_copies.py CORPUS [...] [--parts pairs ...]

CORPUS are folders with *en.jsonl.gz and *zh.jsonl.gz. Truth is the exact join of all texts, real
ones with their own copies, and altered copies of 1,000 of them between .6 and 1 in similarity.
"""

from __future__ import annotations

import argparse
import gzip
import os
import random
import re
import sys
from collections.abc import Callable
from itertools import chain, combinations, pairwise
from pathlib import Path

os.environ["OMP_NUM_THREADS"] = os.environ["RAYON_NUM_THREADS"] = "1"

import numpy as np
import numpy.typing as npt
import orjson
import pyarrow as pa
from signature_speed import speed

from dedup import bands, clusters, minhash, sketches
from dedup.folding import fold
from dedup.join import similarity_join
from dedup.shingles import Hashes, Offsets, shingles
from filters.segmenters import cutter
from pipeline.dedup_settings import Near
from pipeline.seeing.agreement import wilson

LANGUAGES = ("en", "zh")
ALTERED = 1_000  # texts of which there is an altered copy
LONG = 200  # characters, at least, of a text that is altered
HAN = re.compile("[㐀-鿿]")
CLAUSE = re.compile(r"[^，。！？；,!?;\n]*[，。！？；,!?;\n]?")
Pairs = npt.NDArray[np.int64]  # shape (pairs, 2), first below second


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, prog="benchmarks/near_copies.py")
    parser.add_argument("corpora", type=Path, nargs="+")
    parser.add_argument("--megabytes", type=float, default=4, help="of text a language")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    options = parser.parse_args()
    for language in LANGUAGES:
        found = texts(options.corpora, language, int(options.megabytes * 1e6))
        size = sum(len(text.encode()) for text in found) / 1e6
        print(f"\n{language}: {len(found):,} different texts, {size:.1f} MB")
        for part in options.parts:
            PARTS[part](found, language)
    return 0


def texts(folders: list[Path], language: str, num_bytes: int) -> list[str]:
    """Different texts, from each file as many bytes."""
    paths = [p for folder in folders for p in sorted(folder.glob(f"*{language}.jsonl.gz"))]
    found: dict[str, None] = {}
    for path in paths:
        left = num_bytes // len(paths)
        with gzip.open(path) as lines:
            for line in lines:
                text = orjson.loads(line)["text"] or ""
                found[text] = None
                left -= len(text.encode())
                if left <= 0:
                    break
    return list(found)


# --- recall and precision against all pairs -------------------------------------------------------


def pairs(real: list[str], language: str) -> None:
    pick = random.Random(1)
    long = [text for text in real if len(text) >= LONG]
    chosen = pick.sample(long, min(ALTERED, len(long)))
    copies = [altered(text, pick.uniform(0.6, 1.0), pick) for text in chosen]
    hashes, offsets = shingles(pa.array([*real, *copies]))
    print(
        f"  {'threshold':<11}{'bands':<9}{'pairs':>6}{'recall':>9}{'':19}{'precision':>11}"
        f"{'of LSH alone':>14}{'closed':>10}"
    )
    for threshold in (0.7, 0.8, 0.9):
        near = Near(threshold=threshold)
        everyone = np.arange(len(offsets) - 1)
        _, left, right, _ = similarity_join(hashes, offsets, threshold, everyone, greedy=False)
        true = _codes(left, right)
        joined, shared = proposed(hashes, offsets, near)
        found = _codes(*verified(hashes, offsets, joined, threshold))
        hits, closure = len(np.intersect1d(true, found)), sum(n * (n - 1) // 2 for n in joined[1])
        low, high = wilson(hits, len(true))
        alone = len(np.intersect1d(true, shared)) / len(shared)
        print(
            f"  {threshold:<11}{f'{near.bands} x {near.rows}':<9}{len(true):>6}"
            f"{hits / len(true):>9.4f} ({low:.4f} to {high:.4f}){hits / len(found):>11.3f}"
            f"{alone:>13.3f}{hits / closure:>11.3f}",
            flush=True,
        )


def altered(text: str, jaccard: float, pick: random.Random) -> str:
    """A copy of about this similarity: words, or Han characters, are others of the same text."""
    units = list(text) if len(HAN.findall(text)) > len(text) / 4 else re.split(r"(\s+)", text)
    words = [i for i, unit in enumerate(units) if unit.strip()]
    kept = (2 * jaccard / (1 + jaccard)) ** (1 / 5)  # of words, that so many 5-grams stay
    for i in words:
        if pick.random() > kept:
            units[i] = units[pick.choice(words)]
    return "".join(units)


def proposed(
    hashes: Hashes, offsets: Offsets, near: Near
) -> tuple[tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]], npt.NDArray[np.int64]]:
    """As `prepare` does: members of candidate components by component, and their sizes; and the
    pairs that share a band."""
    values = minhash.signatures(hashes, offsets, near.permutations)
    keys = bands.band_keys(values, near.bands, near.rows)
    records = bands.key_records(keys, np.diff(offsets) > 0, part=0)
    most = sketches.most_different(near.permutations, near.threshold)
    bits = sketches.sketches(values)[records[1].astype(np.int64)]
    edges = sketches.similar_edges(*records, bits, most)
    nodes, leaders = clusters.components(edges)
    order = np.argsort(leaders, kind="stable")
    sizes = np.unique(leaders, return_counts=True)[1]
    begins = np.flatnonzero(np.diff(records[0], prepend=records[0][0] ^ np.uint64(1)))
    rows = records[1].astype(np.int64)
    sharing = (rows[first:last] for first, last in pairwise([*begins.tolist(), len(rows)]))
    together = list(chain.from_iterable(combinations(members.tolist(), 2) for members in sharing))
    shared = np.array(together, np.int64).reshape(-1, 2).T
    return (nodes[order].astype(np.int64), sizes), _codes(*shared)


def verified(
    hashes: Hashes,
    offsets: Offsets,
    joined: tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]],
    threshold: float,
) -> Pairs:
    members, sizes = joined
    found = [np.empty((2, 0), np.int64)]
    for component in np.split(members, np.cumsum(sizes)[:-1]):
        sets = [hashes[offsets[i] : offsets[i + 1]] for i in component]
        borders = np.cumsum([0, *map(len, sets)])
        i, j, _ = clusters.verified_pairs(np.concatenate(sets), borders, threshold)
        found.append(np.stack([component[i], component[j]]))
    return np.concatenate(found, axis=1)


def _codes(left: npt.NDArray[np.int64], right: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    return np.unique(np.minimum(left, right) << 32 | np.maximum(left, right))


# --- copies in another script, with other punctuation, other spaces -------------------------------

ASCII = str.maketrans("，。！？：；（）“”、", ',.!?:;()"",')
TYPESET = str.maketrans({"'": "’", '"': "”", "-": "–"})
WIDE = str.maketrans({chr(c): chr(c + 0xFEE0) for c in range(0x21, 0x7F)})


def _converted(name: str) -> Callable[[str], str]:
    from opencc import OpenCC

    return OpenCC(name).convert


def copies(real: list[str], language: str) -> None:
    """Copies that say the same: what similarity is left with and without folding."""
    kinds: dict[str, Callable[[str], str]] = {
        "other line breaks": lambda text: (
            re.sub(r"([㐀-鿿]{9})(?=[㐀-鿿])", r"\1\n", text)
            if language == "zh"
            else "\n".join(text.split())
        ),
        "full width": lambda text: text.translate(WIDE),
    }
    if language == "zh":
        kinds |= {
            "traditional": _converted("s2t"),
            "traditional, words of Taiwan": _converted("s2twp"),
            "ASCII punctuation": lambda text: text.translate(ASCII),
            "a space between all": lambda text: HAN.sub(r" \g<0>", text),
        }
    else:
        kinds |= {"upper case": str.upper, "typeset quotes": lambda text: text.translate(TYPESET)}
    long = [text for text in real if len(text) >= LONG]
    chosen = random.Random(2).sample(long, min(500, len(long)))
    print(f"  copy{'':<28}median Jaccard  lowest 5 %  at .8 and above  unfolded")
    for kind, change in kinds.items():
        changed = [(text, copy) for text in chosen if (copy := change(text)) != text]
        folded = np.array([_jaccard(a, b) for a, b in changed])
        raw = np.array([_raw_jaccard(a, b, language) for a, b in changed])
        print(
            f"  {kind:<32}{np.median(folded):14.3f}{np.quantile(folded, 0.05):12.3f}"
            f"{(folded >= 0.8).mean():17.1%}{np.median(raw):10.3f}",
            flush=True,
        )


def _jaccard(a: str, b: str) -> float:
    hashes, offsets = shingles(pa.array([a, b]))
    return clusters.jaccard(hashes[: offsets[1]], hashes[offsets[1] :])


def _raw_jaccard(a: str, b: str, language: str) -> float:
    """As most tools do: 5-grams of characters (zh) or of what white space separates (en)."""
    left, right = (
        {tuple(units[i : i + 5]) for i in range(max(1, len(units) - 4))}
        for units in ((list(t) if language == "zh" else t.split()) for t in (a, b))
    )
    return len(left & right) / len(left | right)


# --- Chinese: n-grams of characters, or of segmented words ----------------------------------------


def units(real: list[str], language: str) -> None:
    """Which shingle tells copies from other texts: each finds 95 % of the copies in which one
    character in fifty is another; the fewer others it takes for copies, the better."""
    if language != "zh":
        return
    pick = random.Random(3)
    long = [text for text in real if len(text) >= LONG]
    chosen = [text[:5_000] for text in pick.sample(long, min(1_500, len(long)))]
    kinds: dict[str, Callable[[str], str]] = {
        "2 % of characters": lambda text: _replaced(text, 0.02, pick),
        "5 % of characters": lambda text: _replaced(text, 0.05, pick),
        "every tenth clause gone": lambda text: _clauses(text, pick, 0.1, False),
        "clauses in another order": lambda text: _clauses(text, pick, 0.0, True),
    }
    changed = {kind: [change(text) for text in chosen] for kind, change in kinds.items()}
    words = cutter("jieba")
    ways: dict[str, Callable[[str], list[str]]] = {
        "characters": lambda text: fold(text).split(),
        "words": lambda text: [w for w in words(fold(text).replace(" ", "")) if w.strip()],
    }
    print(f"  {'':<14}median Jaccard of copies with{'':<11}finds 95 % of them   texts with another")
    header = "".join(f"{name:>9}" for name in ("2 %", "5 %", "gone", "order"))
    print(f"  {'':<14}{header}{'from':>12}{'there':>16}")
    for way, split in ways.items():
        own, others = (
            [split(t) for t in chosen],
            {k: [split(t) for t in c] for k, c in changed.items()},
        )
        for n in (3, 4, 5, 6, 8) if way == "characters" else (1, 2, 3, 4, 5):
            sets = [_grams(text, n) for text in own]
            found = {
                kind: [_of_sets(a, _grams(b, n)) for a, b in zip(sets, copied, strict=True)]
                for kind, copied in others.items()
            }
            least = float(np.quantile(found[next(iter(kinds))], 0.05))
            medians = "".join(f"{np.median(values):9.3f}" for values in found.values())
            above = _with_another(sets, least)
            print(f"  {f'{n} {way}':<14}{medians}{least:12.3f}{above:16.1%}", flush=True)


def _replaced(text: str, share: float, pick: random.Random) -> str:
    return "".join(pick.choice(text) if pick.random() < share else char for char in text)


def _clauses(text: str, pick: random.Random, gone: float, shuffled: bool) -> str:
    found = [clause for clause in CLAUSE.findall(text) if clause]
    found = [clause for clause in found if pick.random() >= gone]
    if shuffled:
        pick.shuffle(found)
    return "".join(found)


def _grams(units: list[str], n: int) -> set[str]:
    return {"\0".join(units[i : i + n]) for i in range(max(1, len(units) - n + 1))}


def _of_sets(a: set[str], b: set[str]) -> float:
    return len(a & b) / len(a | b)


def _with_another(sets: list[set[str]], threshold: float) -> float:
    """The share of texts that have another one of the sources at the threshold. True copies are
    among them, of every way the same ones; what is more is wrong."""
    names = {gram: i for i, gram in enumerate(set(chain.from_iterable(sets)))}
    hashes = np.concatenate([np.sort([names[g] for g in grams]) for grams in sets])
    offsets = np.cumsum([0, *map(len, sets)])
    everyone = np.arange(len(sets))
    _, left, right, _ = similarity_join(
        hashes.astype(np.uint64), offsets, threshold, everyone, greedy=False
    )
    return len(np.union1d(left, right)) / len(sets)


PARTS: dict[str, Callable[[list[str], str], None]] = {
    "pairs": pairs,
    "copies": copies,
    "units": units,
    "speed": speed,
}

if __name__ == "__main__":
    sys.exit(main())
