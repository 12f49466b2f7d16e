"""Objects of a store: whole or absent, one winner, tried again where that helps."""

from __future__ import annotations

import errno
import os
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from botocore.exceptions import ClientError
from gs_server import gs_bucket
from s3_server import s3_bucket

from pipeline import objects
from pipeline.config import ConfigError
from pipeline.ranges import open_file
from pipeline.retries import is_transient


@pytest.fixture(scope="module")
def s3() -> Iterator[str]:
    with s3_bucket() as bucket:
        yield bucket


@pytest.fixture(scope="module")
def gs() -> Iterator[str]:
    with gs_bucket() as bucket:
        yield bucket


@pytest.fixture(params=["memory", "file", "s3", "gs"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An empty folder of each store that can be tried here."""
    if request.param in ("s3", "gs"):
        return f"{request.getfixturevalue(request.param)}/{uuid.uuid4().hex}"
    return f"file://{tmp_path}" if request.param == "file" else f"memory://{uuid.uuid4().hex}"


def test_objects_come_back_as_they_were(url: str, tmp_path: Path) -> None:
    (tmp_path / "a.bin").write_bytes(bytes(range(256)) * 100)
    objects.upload(tmp_path / "a.bin", f"{url}/t/a.bin")
    objects.write(f"{url}/t/b.json", b"{}")
    assert objects.names(f"{url}/t") == ["a.bin", "b.json"]
    assert objects.exists(f"{url}/t/b.json")
    objects.download(f"{url}/t/a.bin", tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == (tmp_path / "a.bin").read_bytes()
    with open_file(f"{url}/t/a.bin") as file:
        assert file.seek(255) == 255
        assert file.read(2) == b"\xff\x00"
    objects.delete(f"{url}/t/a.bin")
    objects.delete(f"{url}/t/a.bin")
    assert objects.names(f"{url}/t") == ["b.json"]
    assert objects.names(f"{url}/nothing") == []
    with pytest.raises(FileNotFoundError):
        objects.read(f"{url}/t/a.bin")


def test_of_many_that_create_one_wins(url: str) -> None:
    writers = [f"writer {n}".encode() for n in range(8)]
    with ThreadPoolExecutor(8) as pool:
        won = list(pool.map(lambda data: objects.create(f"{url}/record", data), writers))
    assert sum(won) == 1
    assert objects.read(f"{url}/record") == writers[won.index(True)]
    assert not objects.create(f"{url}/record", b"late")
    assert objects.create(f"{url}/record", writers[won.index(True)]), "the answer got lost"


def test_what_is_created_or_written_locally_is_never_seen_half(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A kill between the file and its bytes would leave an empty record that stands for good."""

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    url = f"file://{tmp_path}/lease"
    objects.write(f"{url}/1.json", b"old")
    monkeypatch.setattr(os, "fsync", killed)
    with pytest.raises(KeyboardInterrupt):
        objects.create(f"{url}/2.json", b"new")
    with pytest.raises(KeyboardInterrupt):
        objects.write(f"{url}/1.json", b"new")
    assert objects.names(url) == ["1.json"]
    assert objects.read(f"{url}/1.json") == b"old"


def test_a_store_without_put_if_absent_is_refused() -> None:
    with pytest.raises(ConfigError, match="cannot be written to hf://, which has no put-if-absent"):
        objects.require_writable("hf://datasets/me/corpus")
    objects.require_writable("s3://bucket/corpus")


def test_a_missing_bucket_is_named(s3: str) -> None:
    with pytest.raises(OSError, match="nobucket"):
        objects.create("s3://nobucket/corpus/lease/1.json", b"x")


def refused(code: str, message: str, kind: int = errno.EINVAL) -> OSError:
    """As s3fs says it: the words of the server, the code in the cause."""
    error = OSError(kind, message)
    error.__cause__ = ClientError({"Error": {"Code": code, "Message": message}}, "PutObject")
    return error


def test_a_refusal_goes_by_its_code_not_by_words() -> None:
    assert objects._is_taken(refused("PreconditionFailed", "At least one of the pre-conditions"))
    assert not objects._is_taken(
        refused("InvalidArgument", "stats/tokens/part-00412.json: Conflict")
    )
    met = refused("ConditionalRequestConflict", "two puts at once")
    assert is_transient(met)
    assert not objects._is_taken(met)
