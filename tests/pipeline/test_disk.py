"""What a disk refuses: the folder that people know, why, and the remedy."""

from __future__ import annotations

import errno
import getpass
import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from pipeline import disk
from pipeline.corpus import locked
from pipeline.disk import DiskError, explained, shortage, told
from pipeline.files import replacing

KEPT = "and call again: what was finished is kept"


class Free(NamedTuple):
    f_files: int
    f_favail: int
    f_bavail: int
    f_frsize: int


def of(code: int, path: Path | str | None) -> OSError:
    return OSError(code, os.strerror(code), None if path is None else str(path))


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (errno.ENOSPC, "its disk is full (4.2 MB left); free some, or choose another disk"),
        (errno.EDQUOT, "your quota of its disk is used up; free some, or choose another disk"),
        (errno.EROFS, "it is mounted read-only; choose another folder, or mount it for writing"),
        (errno.EFBIG, "no file may grow so large there (`ulimit -f`, or the kind of disk); raise"),
    ],
)
def test_the_folder_is_named_that_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int, said: str
) -> None:
    monkeypatch.setattr(os, "statvfs", lambda _: Free(100, 5, 1025, 4096))
    for name in (".part-00000.parquet.77.tmp", ".lock", "not/yet/there/a.csv", ""):
        message = told(of(code, tmp_path / name))
        assert message is not None
        assert message.startswith(f"{tmp_path}: {said}")
        assert message.endswith(KEPT)
    monkeypatch.setattr(os, "statvfs", lambda _: Free(100, 0, 1025, 4096))
    message = told(of(errno.ENOSPC, tmp_path / "a"))
    assert message is not None
    assert "its disk is full (no more files fit: it has no inode left); free some" in message


def test_who_may_not_and_whose_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tmp_path.chmod(0o555)
    me = getpass.getuser()
    assert told(of(errno.EACCES, tmp_path / ".a.7.tmp")) == (
        f"{tmp_path}: {me} may not write there: it belongs to {me}, dr-xr-xr-x; change that "
        f"(chown, chmod), or choose another, {KEPT}"
    )
    tmp_path.chmod(0o755)
    (tmp_path / "a.yaml").touch(0o200)
    monkeypatch.setattr(os, "access", lambda *_: False)  # root may read anything
    message = told(of(errno.EACCES, tmp_path / "a.yaml"))
    assert message is not None
    assert message.startswith(
        f"{tmp_path}/a.yaml: {me} may not read it: it belongs to {me}, --w----"
    )


def test_errors_of_stores_and_of_ours_are_left(tmp_path: Path) -> None:
    assert told(of(errno.EACCES, "s3://bucket/runs")) is None
    assert told(of(errno.ENOENT, tmp_path / "a")) is None
    assert told(of(errno.ENOSPC, None)) is None


def test_at_the_border_of_a_step_a_nameless_error_is_of_the_corpus(tmp_path: Path) -> None:
    with pytest.raises(DiskError, match=f"^{tmp_path}: it is mounted read-only; .*{KEPT}$"):
        with explained(tmp_path):
            raise of(errno.EROFS, None)
    with pytest.raises(PermissionError), explained(tmp_path):  # the folder itself may be written
        raise of(errno.EPERM, None)
    with pytest.raises(FileNotFoundError), explained(tmp_path):
        raise of(errno.ENOENT, tmp_path / "a")


def test_who_holds_a_corpus_is_told_of_its_disk(tmp_path: Path) -> None:
    with pytest.raises(DiskError, match=f"^{tmp_path}/c: its disk is full"):
        with locked(tmp_path / "c"):
            raise of(errno.ENOSPC, None)
    with locked(tmp_path / "c"):
        assert (tmp_path / "c" / ".lock").read_text() == f"{os.getpid()}\n"


def test_what_is_replaced_is_named_and_not_its_temporary_file(tmp_path: Path) -> None:
    for given in (None, "temporary"):
        full = pytest.raises(OSError, match="No space left on device")
        with full as caught, replacing(tmp_path / "a.parquet") as temporary:
            temporary.write_bytes(b"half")
            raise of(errno.ENOSPC, temporary if given else None)
        assert (caught.value.errno, caught.value.filename) == (
            errno.ENOSPC,
            f"{tmp_path}/a.parquet",
        )
    with pytest.raises(PermissionError) as refused, replacing(tmp_path / "a.parquet"):
        raise of(errno.EACCES, "/an/input.jsonl")
    assert refused.value.filename == "/an/input.jsonl", "read in the block, and not ours"
    assert list(tmp_path.iterdir()) == []


def test_a_disk_that_may_be_too_small_is_told_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "part").write_bytes(bytes(4_000_000))
    (tmp_path / ".finished").mkdir()
    (tmp_path / ".finished" / "part").hardlink_to(tmp_path / "part")
    usage = disk.shutil.disk_usage(tmp_path)
    monkeypatch.setattr(disk.shutil, "disk_usage", lambda _: usage._replace(free=6_000_000))
    assert shortage(tmp_path, 5_000_000) is None
    assert shortage(tmp_path, 6_000_000) == (
        f"{tmp_path} may fill its disk: about 8 MB are to be written, 6 MB are left; what is "
        "finished by then is kept"
    )


def test_the_command_line_says_it_in_one_line(tmp_path: Path) -> None:
    """Also where no file is named, as when standard output goes to a full disk."""
    program = (
        "import errno, sys\nfrom trainer import cli\n"
        "def fail(verb, arguments):\n    raise OSError(int(verb), 'x', *arguments)\n"
        "cli._call, cli.VERBS = fail, {'28': '', '30': ''}\n"
        "print(cli.main(['30', sys.argv[1]]), cli.main(['28']))\n"
    )
    command = [sys.executable, "-c", program, str(tmp_path / ".lock")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == "2 2\n"
    lines = done.stderr.splitlines()
    assert lines[0].startswith(f"assay 30: {tmp_path}: it is mounted read-only; choose another")
    assert lines[1:] == ["assay 28: [Errno 28] x"]
