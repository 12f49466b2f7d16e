"""A cut that is killed, or that meets a full disk, goes on after its last finished shard."""

from __future__ import annotations

import gzip
import multiprocessing
import os
import resource
from pathlib import Path

import pytest

from pipeline import disk
from pipeline.files import file_hash
from pipeline.readers.spill import spill

SHARD_BYTES = 2_000_000
MEGABYTES = 50 if os.environ.get("ASSAY_SOAK") == "1" else 12
FORK = multiprocessing.get_context("fork")


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One gzip member of JSON lines."""
    path = tmp_path_factory.mktemp("cut") / "a.jsonl.gz"
    line = '{"id": %d, "text": "words that no other line has: %d, 中文 %x"}\n'
    with gzip.open(path, "wt", compresslevel=1, encoding="utf-8") as file:
        for n in range(MEGABYTES * 12_500):
            file.write(line % (n, n * 7_919, n * 104_729))
    return path


def cut(packed: Path, folder: Path) -> list[str]:
    """Hashes of the shards, in order."""
    return [file_hash(Path(p.path)) for p in spill(str(packed), packed.name, folder, SHARD_BYTES)]


def test_kills_every_50_ms(packed: Path, tmp_path: Path) -> None:
    wanted = cut(packed, tmp_path / "whole")
    folder, kills, stood = tmp_path / "killed", 0, set[tuple[str, int]]()
    while True:
        child = FORK.Process(target=cut, args=(packed, folder))
        child.start()
        child.join(0.05 * (kills + 1))
        ended = child.exitcode is not None
        child.kill()
        child.join()
        kills += not ended
        shards = {(path.name, path.stat().st_ino) for path in folder.glob("*-*.zst")}
        assert stood <= shards, "a finished shard is not written again"
        stood = shards
        if ended:
            break
    assert child.exitcode == 0
    print(f"{kills} kills, {len(wanted)} shards")
    assert kills > 0
    assert cut(packed, folder) == wanted


def test_a_disk_that_fills_up(packed: Path, tmp_path: Path) -> None:
    """No file may grow beyond 100 kB: as on a full disk, the cut ends and says so."""
    wanted = cut(packed, tmp_path / "whole")
    folder, told = tmp_path / "full", tmp_path / "told"
    child = FORK.Process(target=_cut_with_little_room, args=(packed, folder, told))
    child.start()
    child.join()
    assert told.read_text().startswith(f"{folder}: no file may grow so large there (`ulimit -f`")
    assert cut(packed, folder) == wanted


def _cut_with_little_room(packed: Path, folder: Path, told: Path) -> None:
    told.touch()
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, hard))
    try:
        cut(packed, folder)
    except OSError as error:
        told.write_text(str(disk.told(error)))
