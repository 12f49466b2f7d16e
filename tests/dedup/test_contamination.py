"""Held-out matching against the plain definition, and the rule for short texts."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dedup.contamination import MIN_SHINGLES, build_index, matches
from dedup.shingles import shingles

# Hashes that share top bits, that are extreme, that repeat across sets.
HASHES = st.one_of(st.integers(0, 30), st.integers(2**64 - 5, 2**64 - 1), st.just(2**63))
SETS = st.lists(st.sets(HASHES, max_size=25), max_size=5)


def _flat(sets: list[set[int]]) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.int64]]:
    hashes = np.array([h for s in sets for h in sorted(s)], np.uint64)
    return hashes, np.cumsum([0, *map(len, sets)])


def _defined(documents: list[set[int]], heldout: list[set[int]], threshold: float) -> list[object]:
    rows: list[object] = []
    for d, a in enumerate(documents):
        for t, h in enumerate(heldout):
            smaller = min(len(a), len(h))
            if smaller == 0:
                continue
            contained = len(a & h) / smaller
            if a == h or (smaller >= MIN_SHINGLES and contained >= threshold):
                rows.append((d, t, np.float32(len(a & h) / len(a | h)), np.float32(contained)))
    return rows


@given(SETS, SETS, st.sampled_from([0.5, 0.8, 1.0]))
def test_matches_are_the_definition(
    documents: list[set[int]], heldout: list[set[int]], threshold: float
) -> None:
    found = matches(build_index(*_flat(heldout)), *_flat(documents), threshold)
    assert list(zip(*found, strict=True)) == _defined(documents, heldout, threshold)


def _texts(documents: list[str], heldout: list[str]) -> list[tuple[int, int]]:
    index = build_index(*shingles(pa.array(heldout, pa.string())))
    found = matches(index, *shingles(pa.array(documents, pa.string())), 0.8)
    return list(zip(found[0].tolist(), found[1].tolist(), strict=True))


HELDOUT = "the quick brown fox jumps over the lazy dog while thirteen crows look on in silence"


def test_quoted_copies_match_whatever_their_dress() -> None:
    page = f"Chapter 1. {'other words stand here ' * 40} {HELDOUT.upper()}! And so on."
    assert _texts([page, HELDOUT, "nothing of it"], [HELDOUT]) == [(0, 0), (1, 0)]


def test_a_piece_of_heldout_text_matches_it() -> None:
    whole = f"{HELDOUT}. " + " ".join(f"word{i}" for i in range(500))
    assert _texts([HELDOUT], [whole]) == [(0, 0)]


def test_a_short_phrase_matches_only_its_equal() -> None:
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
    with pytest.raises(ValueError, match="threshold = 0: a containment is above 0"):
        matches(build_index(*_flat([{1}])), *_flat([{1}]), 0)
