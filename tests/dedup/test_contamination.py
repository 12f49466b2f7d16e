"""Held-out matching against the plain definition, and the rule for short texts."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dedup.contamination import MIN_SHINGLES, matches
from dedup.postings import build_index
from dedup.shingles import shingles

# Hashes that share top bits, that are extreme, that repeat across sets.
HASHES = st.one_of(st.integers(0, 30), st.integers(2**64 - 5, 2**64 - 1), st.just(2**63))
SETS = st.lists(st.sets(HASHES, max_size=25), max_size=5)


def _flat(sets: list[set[int]]) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.int64]]:
    hashes = np.array([h for s in sets for h in sorted(s)], np.uint64)
    return hashes, np.cumsum([0, *map(len, sets)])


def _defined(
    documents: list[set[int]], heldout: list[set[int]], containment: float, jaccard: float
) -> list[object]:
    rows: list[object] = []
    for d, a in enumerate(documents):
        for t, h in enumerate(heldout):
            smaller = min(len(a), len(h))
            if smaller == 0:
                continue
            similar, contained = len(a & h) / len(a | h), len(a & h) / smaller
            if similar >= jaccard or (smaller >= MIN_SHINGLES and contained >= containment):
                rows.append((d, t, np.float32(similar), np.float32(contained)))
    return rows


THRESHOLDS = st.sampled_from([0.5, 0.8, 1.0])


@given(SETS, SETS, THRESHOLDS, THRESHOLDS)
def test_matches_are_the_definition(
    documents: list[set[int]], heldout: list[set[int]], containment: float, jaccard: float
) -> None:
    index = build_index(*_flat(heldout), min(containment, jaccard))
    found = matches(index, *_flat(documents), containment, jaccard)
    expected = _defined(documents, heldout, containment, jaccard)
    assert list(zip(*found, strict=True)) == expected


@pytest.mark.parametrize("least", [0.05, 0.3, 0.8, 0.97, 1.0])
def test_matches_of_uniform_hashes_are_the_definition(least: float) -> None:
    """Of 1 to 400 shingles, as those of texts: copies that lack some, have more, are cut or mixed,
    so that what is shared lies on both sides of the threshold."""
    random = np.random.default_rng([17, round(100 * least)])

    def some(num: int) -> set[int]:
        return set(random.integers(0, 2**64, num, np.uint64).tolist())

    heldout = [some(int(random.integers(1, 400))) for _ in range(40)]
    documents = [some(100), set[int]()]
    for held in heldout:
        members = np.array(sorted(held), np.uint64)
        for share in (1, least, least - 0.02, random.random()):
            kept = random.choice(members, round(len(members) * max(share, 0)), replace=False)
            documents += [set(kept.tolist()), {*kept.tolist(), *some(int(random.integers(300)))}]
    index = build_index(*_flat(heldout), least)
    found = matches(index, *_flat(documents), least, max(least, 0.8))
    expected = _defined(documents, heldout, least, max(least, 0.8))
    assert list(zip(*found, strict=True)) == expected
    assert len(expected) > 80


def _texts(documents: list[str], heldout: list[str]) -> list[tuple[int, int]]:
    index = build_index(*shingles(pa.array(heldout, pa.string())), 0.8)
    found = matches(index, *shingles(pa.array(documents, pa.string())), 0.8, 0.8)
    return list(zip(found[0].tolist(), found[1].tolist(), strict=True))


HELDOUT = "the quick brown fox jumps over the lazy dog while thirteen crows look on in silence"


def test_quoted_copies_match_whatever_their_dress() -> None:
    page = f"Chapter 1. {'other words stand here ' * 40} {HELDOUT.upper()}! And so on."
    assert _texts([page, HELDOUT, "nothing of it"], [HELDOUT]) == [(0, 0), (1, 0)]


def test_a_piece_of_heldout_text_matches_it() -> None:
    whole = f"{HELDOUT}. " + " ".join(f"word{i}" for i in range(500))
    assert _texts([HELDOUT], [whole]) == [(0, 0)]


def test_a_short_phrase_matches_only_its_copies() -> None:
    assert _texts(
        ["谢谢大家", "谢谢大家！", "他说：谢谢大家，再见。", ""], ["谢谢大家", "", "ok"]
    ) == [
        (0, 0),
        (1, 0),
    ]


def test_no_heldout_texts_no_matches() -> None:
    assert _texts([HELDOUT], []) == []
    assert _texts([], [HELDOUT]) == []


def test_wrong_threshold_is_refused() -> None:
    index = build_index(*_flat([{1}]), 0.5)
    with pytest.raises(ValueError, match="containment = 0: a threshold is above 0, at most 1"):
        matches(index, *_flat([{1}]), 0, 0.8)
    with pytest.raises(ValueError, match=r"jaccard = 1\.1: a threshold is above 0, at most 1"):
        matches(index, *_flat([{1}]), 0.8, 1.1)
    with pytest.raises(ValueError, match=r"jaccard = 0\.4: the index is for 0\.5 and above"):
        matches(index, *_flat([{1}]), 0.8, 0.4)
