from __future__ import annotations

import glob
import os
from pathlib import Path

import fsspec
import pytest

from pipeline.readers import Piece, Record
from pipeline.readers.files import fixed_part, list_files
from pipeline.readers.formats import format_of, read
from pipeline.settings import Input


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("a.jsonl", "jsonl"),
        ("s3://b/a.JSONL.zst", "jsonl"),
        ("a.ndjson.gz", "jsonl"),
        ("a.json.zstd", "json"),
    ],
)
def test_format_of(path: str, expected: str) -> None:
    assert format_of(path) == expected


def test_an_unknown_suffix_names_the_file_and_what_is_known() -> None:
    with pytest.raises(ValueError, match=r"a/b\.docx: no reader for this suffix; known: \.jsonl"):
        format_of("a/b.docx")


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("a/b/*.jsonl", "a/b/"),
        ("a/b*/c/*.jsonl", "a/"),
        ("a/**/x.jsonl", "a/"),
        ("*.jsonl", ""),
        ("a/b/c.jsonl", "a/b/"),
        ("c.jsonl", ""),
        ("/a/[bc]/d.jsonl", "/a/"),
    ],
)
def test_fixed_part(pattern: str, expected: str) -> None:
    assert fixed_part(pattern) == expected


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ["b.jsonl", "a.jsonl", "sub/c.jsonl", "sub/deep/[d].jsonl"]:
        (tmp_path / name).parent.mkdir(exist_ok=True, parents=True)
        (tmp_path / name).write_bytes(b'{"text":"%s"}' % name.encode())
    (tmp_path / "folder.jsonl").mkdir()
    return tmp_path


def test_local_globs(folder: Path) -> None:
    assert list_files(f"{folder}/*.jsonl") == [
        (f"{folder}/a.jsonl", "a.jsonl"),
        (f"{folder}/b.jsonl", "b.jsonl"),
    ]
    names = [file for _, file in list_files(f"{folder}/**/*.jsonl")]
    assert names == ["a.jsonl", "b.jsonl", "sub/c.jsonl", "sub/deep/[d].jsonl"]
    assert list_files(f"{folder}/sub/deep/[d].jsonl") == [
        (f"{folder}/sub/deep/[d].jsonl", "[d].jsonl")
    ]


def test_no_match_and_a_folder(folder: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"no file matches .*/x\*\.jsonl; check the path"):
        list_files(f"{folder}/x*.jsonl")
    with pytest.raises(IsADirectoryError, match=r"sub is a folder; name its files, as in"):
        list_files(f"{folder}/sub")


def test_a_store(folder: Path) -> None:
    store = fsspec.filesystem("memory")
    store.put(str(folder), "/assay-globs", recursive=True)
    found = list_files("memory://assay-globs/**/*.jsonl")
    assert [file for _, file in found] == [
        "a.jsonl",
        "b.jsonl",
        "sub/c.jsonl",
        "sub/deep/[d].jsonl",
    ]
    source = Input(source="t", files="memory://assay-globs/**/*.jsonl")
    texts = [
        r.text for p, f in found for r in read(Piece(p, f), source, "") if isinstance(r, Record)
    ]
    assert texts == ["a.jsonl", "b.jsonl", "sub/c.jsonl", "sub/deep/[d].jsonl"]
    assert list_files("memory://assay-globs/a.jsonl") == [
        ("memory:///assay-globs/a.jsonl", "a.jsonl")
    ]
    with pytest.raises(FileNotFoundError, match="no file matches memory://assay-globs/no"):
        list_files("memory://assay-globs/no.jsonl")


def test_a_folder_with_glob_characters_is_fixed_once_escaped(tmp_path: Path) -> None:
    folder = tmp_path / "we[i]rd *"
    folder.mkdir()
    (folder / "a.jsonl").write_text("{}\n")
    (folder / "b.jsonl").write_text("{}\n")
    escaped = glob.escape(str(folder))
    assert [file for _, file in list_files(f"{escaped}/*.jsonl")] == ["a.jsonl", "b.jsonl"]
    assert list_files(f"{escaped}/a.jsonl") == [(str(folder / "a.jsonl"), "a.jsonl")]


def test_a_name_that_is_not_utf8_is_refused(tmp_path: Path) -> None:
    with open(os.fsencode(tmp_path) + b"/\xff.jsonl", "w"):
        pass
    with pytest.raises(ValueError, match="not UTF-8 and cannot be kept; rename it"):
        list_files(f"{tmp_path}/*.jsonl")
