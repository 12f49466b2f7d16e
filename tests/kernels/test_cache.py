"""What is kept between processes is what would be made anew, and is made anew where it is not."""

from __future__ import annotations

import errno
from pathlib import Path

import numpy as np
import pytest

from kernels import cache


def test_folder_that_cannot_be_made_falls_through_to_the_next(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    good = tmp_path / "good"
    assert cache.cache_folder([blocked, good], "k") == good / "assay" / "k"


def test_error_names_every_folder_and_the_remedy(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    with pytest.raises(OSError, match=r"file/assay/k: .*set NUMBA_CACHE_DIR"):
        cache.cache_folder([blocked], "k")


def test_kept_is_made_once_for_each_source_and_again_when_damaged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache, "cache_bases", lambda: [tmp_path])
    made: list[bytes] = []

    def make() -> bytes:
        made.append(b"x")
        return b"x" * len(made)

    assert cache.find_kept("k", b"a") is None
    assert [cache.kept("k", b"a", make) for _ in range(3)] == [b"x"] * 3
    assert cache.find_kept("k", b"a") == b"x"
    assert cache.kept("k", b"b", make) == b"xx"
    for path in (tmp_path / "assay" / "k").iterdir():
        path.write_bytes(path.read_bytes()[:-1])
    assert cache.find_kept("k", b"a") is None
    assert cache.kept("k", b"a", make) == b"xxx"


def test_kept_needs_no_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("not a folder")
    monkeypatch.setattr(cache, "cache_bases", lambda: [tmp_path / "file"])
    assert cache.kept("k", b"a", lambda: b"made") == b"made"


def test_a_full_disk_is_left_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def half(path: Path, data: bytes) -> int:
        with open(path, "wb") as file:
            file.write(data[: len(data) // 2])
        raise OSError(errno.ENOSPC, "full")

    monkeypatch.setattr(cache, "cache_bases", lambda: [tmp_path])
    monkeypatch.setattr(Path, "write_bytes", half)
    assert cache.kept("k", b"a", lambda: b"made") == b"made"
    assert list((tmp_path / "assay" / "k").iterdir()) == []


def test_kept_arrays_have_their_types_and_can_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache, "cache_bases", lambda: [tmp_path])
    arrays = np.arange(6, dtype=np.int32).reshape(2, 3), np.array(7)
    for _ in range(2):
        found = cache.kept_arrays([__file__], lambda: arrays)
        assert [a.tolist() for a in found] == [[[0, 1, 2], [3, 4, 5]], 7]
        assert [(a.dtype, a.flags.carray) for a in found] == [("int32", True), ("int64", True)]
