"""An index beside a corpus keeps what all documents at once would keep, over random corpora."""

from __future__ import annotations

import random
from pathlib import Path

import corpus_parts
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from corpus_parts import content

from dedup import clusters
from pipeline import commits, copy_index, linked, schema
from pipeline.copy_index import Index, Names
from pipeline.copy_index_writing import Chosen, write
from pipeline.dedup_settings import Near
from pipeline.files import part_name, write_sealed
from pipeline.staleness import signature_print
from pipeline.tables import names_of
from pipeline.transforms import near, near_join
from pipeline.transforms.sweep import sweep
from pipeline.unique import apart_from, clustered, near_unique

NEAR = Near()
WEAK = Near(threshold=0.7, bands=2, rows=6)  # misses so much that what hangs together counts
WORDS = [f"{a}{b}" for a in "ba be bi bo da de di do ka ke ki ko".split() for b in "lmnrst"]
HAN = "的一是不了人我在有他这中大来上个国到说们为子和你地出道也时年得就那要下以生会自着去之过家学对"


def texts(seed: int, num: int) -> list[str]:
    """Families of chains in two scripts, from which any member may miss; copies; short and empty
    texts."""
    pick = random.Random(seed)
    found = []
    for _ in range(num):
        family = pick.randrange(12)
        letters, joint = (WORDS, " ") if family % 2 else (list(HAN), "")
        words = random.Random(family).choices(letters, k=70)
        for change in range(pick.randrange(6)):
            words[(11 * change) % 70] = letters[change]
        found.append(joint.join(words))
    found += pick.choices(["cat", "dog", "", "。", "好", "Cat!"], k=4)
    return found + pick.sample(found, num // 6)


def corpus(root: Path, parts: list[list[str]], settings: Near = NEAR) -> Path:
    """What `prepare` keeps of these texts, as far as near copies go."""
    numbers = corpus_parts.write(root, parts, root.name)
    for part in numbers:
        sweep(root, part, {"sign": near.sign(root, settings, part)}, settings.ngram, ("url",))
        documents = [root / "documents" / part_name(part)]
        commits.commit(root, "ingest", part, "", documents, {}, 0, 0)
        commits.commit(root, "signatures", part, "", near.sign_outputs(root, part), {}, 0, 0)
    near_join.forest(root, settings, numbers, 0, 1)
    near_join.join(root, 1)
    commits.commit(root, "components", 0, "", [near.components_output(root)], {}, 0, 0)
    stages = {name: {"fingerprint": signature_print(settings)} for name in ("signatures", "forest")}
    num_bytes = sum(len(text.encode()) for part in parts for text in part)
    known = {
        "format": schema.FORMAT_VERSION,
        "settings": {"near": settings.model_dump()},
        "stages": {**stages, "pairs": stages["forest"], "ingest": {"totals": {"bytes": num_bytes}}},
    }
    write_sealed(root / "corpus.json", known)
    return root


def hashes(names: list[bytes]) -> pa.Array:
    return pa.array(names, schema.HASH)


def ordered(some: list[str], seed: int) -> list[bytes]:
    """Contents in an order of preference, each once."""
    return random.Random(seed).sample(sorted({content(text) for text in some}), k=len(set(some)))


def kept(pairs: Path, walk: list[bytes]) -> list[bytes]:
    mask = near_unique(pairs, hashes(walk))
    return [name for name, stays in zip(walk, mask.tolist(), strict=True) if stays]


def walked(pairs: Path, stay: list[bytes], walk: list[bytes]) -> list[bytes]:
    """The rule, spelled out: one after another stays unless it forms a pair with one that does."""
    rows = pq.read_table(pairs / "pairs").to_pylist()
    near_to = {(row["a"], row["b"]) for row in rows} | {(row["b"], row["a"]) for row in rows}
    kept: list[bytes] = []
    for name in walk:
        if not any((name, other) in near_to for other in stay + kept):
            kept.append(name)
    return kept


def without(walk: list[bytes], known: list[bytes]) -> list[bytes]:
    return [name for name in walk if name not in set(known)]


def beside(root: Path, indexes: list[Index], walk: list[bytes]) -> list[bytes]:
    pairs = linked.linked([root], indexes)
    known = copy_index.have(indexes, "near", names_of(hashes(walk)))
    walk = [name for name, is_known in zip(walk, known.tolist(), strict=True) if not is_known]
    given = copy_index.verified(indexes, clustered(pairs))
    apart = apart_from(pairs, hashes(walk), given).tolist()
    return kept(pairs, [name for name, stays in zip(walk, apart, strict=True) if stays])


def chosen(root: Path, contents: list[bytes]) -> Chosen:
    """The whole of a corpus, of which these contents stay."""
    table = pq.read_table(root / "documents", columns=["id"])
    return Chosen(root, np.unique(names_of(table["id"])), _names(contents))


def _names(contents: list[bytes]) -> Names:
    return np.unique(names_of(hashes(contents)))


def dealt(some: list[str], num: int) -> list[list[str]]:
    return [some[part::num] for part in range(num)]


@pytest.mark.parametrize("seed", range(4))
def test_what_stays_is_what_would_stay_of_all_at_once(
    tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two corpora had before, one after the other, in one index and in two; parts, partitions and
    sizes of stored clusters as they come."""
    monkeypatch.setattr("os.cpu_count", lambda: 1)
    monkeypatch.setattr(near_join, "PARTITION_BYTES", 5_000 * (1 + seed))
    first, second, new = (texts(10 * seed + n, 30 + 10 * n) for n in range(3))
    settings = WEAK if seed % 2 else NEAR
    walks = [ordered(some, seed) for some in (first, second, new)]
    roots = [
        corpus(tmp_path / name, dealt(some, 1 + (seed + n) % 3), settings)
        for n, (name, some) in enumerate((("first", first), ("second", second), ("new", new)))
    ]
    at_once = []
    for num in (1, 2, 3):
        some = [text for some in (new, second, first)[3 - num :] for text in some]
        at_once.append(linked.linked([corpus(tmp_path / f"{num}", dealt(some, 2), settings)]))
    monkeypatch.setattr(clusters, "MAX_STORED", (1, 3, 1000, 1000)[seed])

    old = walked(at_once[0], [], walks[0])
    one = write(str(tmp_path / "one"), [chosen(roots[0], old)])
    later = beside(roots[1], [one], walks[1])
    assert later == walked(at_once[1], old, without(walks[1], walks[0]))
    two = write(str(tmp_path / "two"), [chosen(roots[1], later)])
    both = write(str(tmp_path / "one"), [chosen(roots[1], later)], add=True)
    wanted = walked(at_once[2], old + later, without(walks[2], walks[0] + walks[1]))
    assert 0 < len(wanted) < len(walks[2])
    assert beside(roots[2], [both], walks[2]) == wanted
    assert [group.parts for group in both.groups] == [one.groups[0].parts, two.groups[0].parts]
    assert [name for name in both.files if name[:7] == "forest/"] == [
        f"forest/part-0000{n}.parquet" for n in range(2)
    ]
    alone = write(str(tmp_path / "alone"), [chosen(roots[0], old)])
    assert beside(roots[2], [two, alone], walks[2]) == wanted


def test_what_is_given_stays_given(tmp_path: Path) -> None:
    """b forms a pair with a2 alone, and a2 with a1: two indexes have both, and b goes."""
    words = random.Random(5).choices(WORDS, k=100)
    a1, a2, b = (" ".join(["x"] * n + words[n:]) for n in (0, 8, 16))
    had = [corpus(tmp_path / f"a{n}", [[text]]) for n, text in enumerate((a1, a2))]
    new = corpus(tmp_path / "b", [[b]])
    indexes = [
        write(str(tmp_path / f"index-{n}"), [chosen(root, [content(text)])])
        for n, (root, text) in enumerate(zip(had, (a1, a2), strict=True))
    ]
    assert beside(new, indexes[:1], [content(b)]) == [content(b)]
    assert beside(new, indexes, [content(b)]) == []


def test_keys_that_stand_in_one_index_alone_join_nothing_new() -> None:
    keys: npt.NDArray[np.uint64] = np.array([1, 1, 2, 2, 3, 3, 4, 4], np.uint64)
    docs = np.array([1, 2, 0, 1, 1, 3, 0, 0], np.uint64) << np.uint64(32)
    met = near_join._met(keys, docs, [range(1, 3), range(3, 4)])
    assert met.tolist() == [False, False, True, True, True, True, True, True]
    assert near_join._met(keys[:0], docs[:0], [range(1, 3)]).tolist() == []
