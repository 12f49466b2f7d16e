from __future__ import annotations

import gzip
import os
import random
from pathlib import Path

import pytest

from pipeline.readers import Bad, Piece, Record, jsonl
from pipeline.readers.formats import read
from pipeline.readers.spill import spill
from pipeline.readers.streams import chunks
from pipeline.settings import Input

SOURCE = Input(source="t", files="*.jsonl")
RANDOM = random.Random(5)
ROWS = b"".join(b'{"text":"%d"}\n' % RANDOM.randrange(10**9) for _ in range(1000))


def _gz(tmp_path: Path) -> Path:
    path = tmp_path / "in.jsonl.gz"
    path.write_bytes(gzip.compress(ROWS, mtime=0))
    return path


def _read(pieces: list[Piece]) -> list[Record | Bad]:
    return [item for piece in pieces for item in read(piece, SOURCE, "resiliparse")]


@pytest.mark.parametrize("cut_off", [0, 400])
def test_spill_gives_the_same_records(tmp_path: Path, cut_off: int) -> None:
    path = _gz(tmp_path)
    path.write_bytes(path.read_bytes()[: path.stat().st_size - cut_off])
    whole = _read([Piece(str(path), path.name)])
    assert jsonl.cut(str(path), path.name, path.stat().st_size, 3_000) is None
    pieces = spill(str(path), "in.jsonl.gz", tmp_path / "spilled", 3_000)
    sizes = [len(b"".join(chunks(p.path))) for p in pieces]
    assert all(3_000 <= size < 3_100 for size in sizes[:-1])
    assert [p.num_bytes for p in pieces] == sizes
    assert [p.base for p in pieces] == [sum(sizes[:i]) for i in range(len(sizes))]
    assert Path(pieces[1].path).name == f"{sizes[0]:015d}-{sizes[0] + sizes[1]:015d}.zst"
    assert _read(pieces) == whole
    assert {p.file for p in pieces} == {"in.jsonl.gz"}


@pytest.mark.parametrize("cut_off", [0, 400])
def test_spill_goes_on_after_the_last_finished_shard(tmp_path: Path, cut_off: int) -> None:
    path = _gz(tmp_path)
    path.write_bytes(path.read_bytes()[: path.stat().st_size - cut_off])
    pieces = spill(str(path), "f.jsonl.gz", tmp_path / "s", 3_000)
    expected = [Path(p.path).read_bytes() for p in pieces]
    (tmp_path / "s" / "done.json").unlink()
    for gone in pieces[4:]:
        Path(gone.path).unlink()
    kept = Path(pieces[3].path).stat().st_mtime_ns
    assert spill(str(path), "f.jsonl.gz", tmp_path / "s", 3_000) == pieces
    assert [Path(p.path).read_bytes() for p in pieces] == expected
    assert Path(pieces[3].path).stat().st_mtime_ns == kept


def test_a_damaged_shard_is_no_reject_and_comes_again_when_deleted(tmp_path: Path) -> None:
    path = _gz(tmp_path)
    pieces = spill(str(path), "f.jsonl.gz", tmp_path / "s", 3_000)
    shard = Path(pieces[2].path)
    expected = bytearray(shard.read_bytes())
    shard.write_bytes(expected[:-1] + bytes([expected[-1] ^ 1]))  # its checksum
    with pytest.raises(
        OSError, match=r"this shard of f\.jsonl\.gz is damaged .*; delete it and call"
    ):
        _read(pieces)
    shard.unlink()
    assert spill(str(path), "f.jsonl.gz", tmp_path / "s", 3_000) == pieces
    assert shard.read_bytes() == expected


def test_spill_of_a_stream_that_breaks_at_once(tmp_path: Path) -> None:
    path = tmp_path / "in.jsonl.gz"
    path.write_bytes(gzip.compress(ROWS)[:5])
    pieces = spill(str(path), "in.jsonl.gz", tmp_path / "s", 3_000)
    found = _read(pieces)
    assert [(i.offset, i.reason) for i in found if isinstance(i, Bad)] == [(0, "truncated_gzip")]


def test_a_changed_file_is_spilled_again(tmp_path: Path) -> None:
    path = _gz(tmp_path)
    spill(str(path), "in.jsonl.gz", tmp_path / "s", 3_000)
    path.write_bytes(gzip.compress(ROWS.replace(b"1", b"2"), mtime=0))
    os.utime(path, (5, 5))
    pieces = spill(str(path), "in.jsonl.gz", tmp_path / "s", 3_000)
    assert _read(pieces) == _read([Piece(str(path), path.name)])
    assert spill(str(path), "in.jsonl.gz", tmp_path / "s", 30_000)[0].base == 0
    assert len(list((tmp_path / "s").glob("*.zst"))) == 1
