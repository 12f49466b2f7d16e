"""Repeated substrings through all of their stages, held to a definition in plain Python."""

from __future__ import annotations

import random
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from corpus_parts import content
from repeated_texts import Row, covered, found, han, left, mixed, repeated, words

from dedup import repeats, winnowing
from pipeline.files import part_name


def require_right(texts: list[str], rows: dict[str, list[Row]], min_bytes: int) -> None:
    """What `substrings` says is true of these texts, and all that is to be found is there."""
    length, window = winnowing.sizes(min_bytes)
    most = repeats.slack(length, window)
    by_key: dict[bytes, list[tuple[bytes, Row, str]]] = {}
    for text, of_text in rows.items():
        data = text.encode()
        for row in of_text:
            assert length - 2 * most - 6 <= row.end - row.start
            data[row.start : row.end].decode()  # borders of characters
            by_key.setdefault(row.key, []).append((content(text), row, text))
    for places in by_key.values():
        places.sort(key=lambda place: (place[0], place[1].start))
        assert [row.first for _, row, _ in places] == [True] + [False] * (len(places) - 1)
        keeper = places[0][2].encode()
        for _, row, text in places:
            assert text.encode()[row.start + most : row.end - most] in keeper
    wanted = repeated(texts, min_bytes, window + most)
    found = repeated(texts, length - 2 * most - 8)
    for text in set(texts):
        gone = covered(rows[text])
        assert gone <= found[text]
        assert wanted[text] <= gone


@pytest.mark.parametrize("seed", range(8))
def test_all_that_repeats_is_found_and_nothing_else(tmp_path: Path, seed: int) -> None:
    texts = mixed(seed)
    rows = found(tmp_path, [texts[:5], texts[5:]])
    require_right(texts, rows, 60)


@pytest.mark.parametrize("seed", range(3))
def test_of_words_at_most_two_are_left_at_either_end(tmp_path: Path, seed: int) -> None:
    pick = random.Random(seed)
    pieces = [words(seed * 9 + n, pick.randrange(15, 60)) for n in range(5)]
    texts = [f"{words(90 + n, 9)} {pick.choice(pieces)} {words(80 + n, 9)}" for n in range(9)]
    rows = found(tmp_path, [texts])
    wanted = repeated(texts, 60, 8)
    assert all(wanted[text] <= covered(rows[text]) for text in texts)


def test_any_parts_and_any_order_of_inputs_give_the_same(tmp_path: Path) -> None:
    texts = [*mixed(50), *mixed(50)[:4]]
    expected = found(tmp_path / "one", [texts], partitions=1)
    assert sum(map(len, expected.values())) > 20
    for turn, num_parts in enumerate((2, 5, 9)):
        shuffled = random.Random(turn).sample(texts, len(texts))
        parts = [shuffled[part::num_parts] for part in range(num_parts)]
        assert found(tmp_path / str(turn), parts, partitions=1 << turn) == expected


def test_nothing_goes_where_nothing_repeats(tmp_path: Path) -> None:
    """Nor where 200 texts share a footer below two thirds of the size."""
    texts = [f"{words(n, 60)}\n{han(n, 40)}\nthe footer of the house, {n}" for n in range(200)]
    assert set(map(len, found(tmp_path, [texts, texts], 60).values())) == {0}


def test_of_pieces_that_overlap_in_a_ring_each_is_left_once(tmp_path: Path) -> None:
    """Each text holds two of three pieces, so each piece has another one to be kept by."""
    pieces = [words(n, 60) for n in range(3)]
    texts = [f"{pieces[n]} | {pieces[(n + 1) % 3]}" for n in range(3)]
    rows = found(tmp_path, [texts])
    rest = "\n".join(left(text, of_text) for text, of_text in rows.items())
    assert [rest.count(piece[9:-9]) for piece in pieces] == [1, 1, 1]


def test_a_piece_that_stands_twice_in_one_text_is_left_in_its_first_place(tmp_path: Path) -> None:
    piece = words(1, 60)
    text = f"{words(2, 9)} ({piece}) {han(3, 30)} [{piece}] end"
    rows = found(tmp_path, [[text]])[text]
    assert left(text, rows) == f"{words(2, 9)} ({piece}) {han(3, 30)} [] end"


@pytest.mark.parametrize("unit", ["a", "ab ", "中", "....\t", "|   |\r\n"])
def test_a_text_of_one_pattern_is_left_once(tmp_path: Path, unit: str) -> None:
    """200,000 bytes, and a second text of them: what is left is one of the pattern."""
    texts = [unit * (200_000 // len(unit)), "x" + unit * (50_000 // len(unit))]
    rows = found(tmp_path, [texts], 300)
    shortened = [left(text, rows[text]) for text in texts]
    assert len(unit) <= len("".join(shortened)) <= 150
    assert sum(map(len, rows.values())) < 8_000


@pytest.mark.parametrize("seed", range(4))
def test_documents_of_two_scripts_are_cut_on_characters(tmp_path: Path, seed: int) -> None:
    """Stretches begin and end inside of characters of two, three and four bytes."""
    pick = random.Random(seed)
    alphabet = "aé中😀 дß"
    pieces = ["".join(pick.choices(alphabet, k=pick.randrange(30, 90))) for _ in range(4)]
    texts = [f"{n}{pick.choice(pieces)}{n}{pick.choice(pieces)}{n}" for n in range(8)]
    require_right(texts, found(tmp_path, [texts]), 60)


def test_signals_tell_shares(tmp_path: Path) -> None:
    piece = words(1, 60)
    texts = [f"{piece} {words(n, 60)}" for n in (2, 3, 4)]
    rows = found(tmp_path, [texts, [words(9, 30)]])
    table = pq.read_table(tmp_path / "signals/substrings" / part_name(0)).to_pylist()
    for text, row in zip(texts, table, strict=True):
        gone, size = len(covered(rows[text])), len(text.encode())
        first = text == min(texts, key=content)
        assert row["score"] == pytest.approx(gone / size, abs=1e-6)
        assert (row["score"] == 0) == first
        assert row["repeated"] == pytest.approx(len(piece.encode()) / size, abs=0.03)
        assert row["most_copies"] == 3
    (other,) = pq.read_table(tmp_path / "signals/substrings" / part_name(1)).to_pylist()
    assert other == {"score": 0, "repeated": 0, "most_copies": 0}
