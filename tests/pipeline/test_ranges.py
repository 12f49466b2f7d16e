"""Inputs of a web server: with ranges and without, with faults that pass and others that do not."""

from __future__ import annotations

import gzip
import io
import json
import os
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from web_server import CUT, Web, web_server

from pipeline import objects, ranges, retries
from pipeline.readers.files import file_version, list_files
from pipeline.readers.formats import cut, read
from pipeline.readers.streams import chunks
from pipeline.settings import Input

pytest.importorskip("aiohttp", reason="aiohttp is not installed: `pip install 'assay[stores]'`")
SOURCE = Input(source="s", files="", kind="web")
TEXTS = [f"{n} {random.Random(n).randbytes(300).hex()}" for n in range(200)]
LINES = "".join(json.dumps({"text": text}) + "\n" for text in TEXTS).encode()


@pytest.fixture
def web(monkeypatch: pytest.MonkeyPatch) -> Iterator[Web]:
    monkeypatch.setattr(ranges, "RANGE_BYTES", 10_000)  # so that a small file takes many
    monkeypatch.setattr(retries, "FIRST_WAIT_SECONDS", 0.001)
    ranges._has_ranges.cache_clear()
    with web_server() as served:
        served.files = {"/a.jsonl": LINES, "/a.jsonl.gz": gzip.compress(LINES)}
        yield served


def texts(url: str) -> list[str]:
    name = url.rsplit("/", 1)[1]
    pieces = cut(url, name, 30_000)
    assert pieces is not None
    found = [record for piece in pieces for record in read(piece, SOURCE, "")]
    return [record.text for record in found]  # type: ignore[union-attr]


@pytest.mark.parametrize("name", ["a.jsonl", "a.jsonl.gz"])
@pytest.mark.parametrize("with_ranges", [True, False])
def test_all_records_come(web: Web, name: str, with_ranges: bool) -> None:
    web.ranges = with_ranges
    url = f"{web.url}/{name}"
    assert list_files(url) == [(url, name)]
    assert b"".join(chunks(url)) == LINES
    if name == "a.jsonl":
        assert texts(url) == TEXTS
    bodies = [asked for method, asked in web.asked if method == "GET"]
    assert ("" in bodies) != with_ranges, "a whole file is asked for only where it must be"


@pytest.mark.parametrize("with_ranges", [True, False])
def test_faults_that_pass_are_tried_again(web: Web, with_ranges: bool) -> None:
    web.ranges = with_ranges
    faults = random.Random(1)
    web.fault = lambda method, number: (
        faults.choice([503, CUT, None, None]) if method == "GET" else None
    )
    for _ in range(3):
        assert b"".join(chunks(f"{web.url}/a.jsonl.gz")) == LINES
    web.fault = lambda method, number: 503 if number % 3 else None
    assert b"".join(chunks(f"{web.url}/a.jsonl")) == LINES


@pytest.mark.parametrize(
    ("status", "kind", "said"),
    [
        (404, FileNotFoundError, "/b.jsonl"),
        (403, PermissionError, "check the credentials' rights"),
        (503, OSError, "6 times; call again later"),
    ],
)
def test_what_does_not_pass_is_told_with_its_url(
    web: Web, status: int, kind: type[Exception], said: str
) -> None:
    web.fault = lambda method, number: status
    url = f"{web.url}/b.jsonl"
    for call in (lambda: list_files(url), lambda: list(chunks(url))):
        with pytest.raises(kind) as caught:
            call()
        assert said in str(caught.value)
        assert url in str(caught.value)


def test_what_must_be_read_in_pieces_needs_ranges(web: Web) -> None:
    table = io.BytesIO()
    pq.write_table(pa.table({"text": TEXTS}), table)
    web.files["/a.parquet"] = table.getvalue()
    assert texts(f"{web.url}/a.parquet") == TEXTS
    ranges._has_ranges.cache_clear()
    web.ranges = False
    with pytest.raises(
        ranges.ReadError, match="sends whole files only, .*download it and name the local"
    ):
        texts(f"{web.url}/a.parquet")


def test_a_file_without_a_size_is_refused(web: Web) -> None:
    web.sized = False
    with pytest.raises(OSError, match="does not say how large it is; download it"):
        list_files(f"{web.url}/a.jsonl")


def test_an_empty_file(web: Web) -> None:
    web.files["/a.jsonl"] = b""
    assert list(chunks(f"{web.url}/a.jsonl")) == []


def test_a_changed_file_is_told(web: Web) -> None:
    before = file_version(f"{web.url}/a.jsonl")
    assert file_version(f"{web.url}/a.jsonl") == before
    web.files["/a.jsonl"] += b"{}\n"
    assert file_version(f"{web.url}/a.jsonl") != before


def test_stores_are_asked_for_large_ranges(monkeypatch: pytest.MonkeyPatch) -> None:
    """datatrove #497: 340 bytes a request made an hour of a minute."""
    data = random.Random(0).randbytes(20_000_000)
    objects.write("memory://ranges/x", data)
    store, _ = objects.open_store("memory://ranges/x")
    asked: list[int] = []
    fetch = store.cat_file

    def counted(path: str, start: int, end: int) -> bytes:
        asked.append(end - start)
        found: bytes = fetch(path, start, end)
        return found

    monkeypatch.setattr(store, "cat_file", counted)
    assert b"".join(chunks("memory://ranges/x")) == data
    assert asked == [8 << 20, 8 << 20, 20_000_000 - (16 << 20)]


def test_a_glob_over_a_server_that_lists_its_folders(web: Web) -> None:
    links = "".join(f'<a href="{name}">{name}</a>' for name in ("a.jsonl", "a.jsonl.gz", "b.txt"))
    web.files["/"] = web.files[""] = links.encode()
    assert list_files(f"{web.url}/*.jsonl") == [(f"{web.url}/a.jsonl", "a.jsonl")]


HUB = """
from pipeline.readers.files import file_version, list_files
from pipeline.readers.streams import chunks
[(path, file)] = list_files("hf://datasets/me/x/data/*.jsonl")
text = b"".join(chunks(path))
print(path, file, file_version(path) != "", text.count(b"\\n"), sep="|")
"""


def test_a_data_set_of_the_hub(web: Web, tmp_path: Path) -> None:
    """A stand-in for huggingface.co, whose address is read when the package is loaded."""
    pytest.importorskip("huggingface_hub")
    api = "/api/datasets/me/x"
    listed = {"type": "file", "path": "data/a.jsonl", "size": len(LINES), "oid": "0" * 40}
    folder = {"type": "directory", "path": "data", "size": 0, "oid": "0" * 40}
    for name, answer in {
        api: {"id": "me/x", "sha": "c" * 40, "siblings": [], "tags": [], "private": False},
        f"{api}/tree/main?recursive=false&expand=false": [folder],
        f"{api}/tree/main/data?recursive=false&expand=false": [listed],
    }.items():
        web.files[name] = json.dumps(answer).encode()
    web.files["/datasets/me/x/resolve/main/data/a.jsonl"] = LINES
    asked = [sys.executable, "-c", HUB]
    home = {"HF_ENDPOINT": web.url, "HF_HOME": str(tmp_path)}
    done = subprocess.run(asked, capture_output=True, text=True, env=os.environ | home, check=False)
    assert done.stdout == "hf://datasets/me/x/data/a.jsonl|a.jsonl|True|200\n", done.stderr
    assert ("GET", f"bytes=0-{len(LINES) - 1}") in web.asked
