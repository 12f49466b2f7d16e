from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from pipeline.readers import Bad, Record
from pipeline.readers.formats import cut, read
from pipeline.settings import Input


def of(tmp_path: Path, data: bytes, name: str = "a.json") -> list[Record | Bad]:
    path = tmp_path / name
    path.write_bytes(data)
    source = Input(source="t", files="*", keep=("n",))
    pieces = cut(str(path), name, 1_000)
    assert pieces is not None
    return [item for piece in pieces for item in read(piece, source, "resiliparse")]


def brief(found: list[Record | Bad]) -> list[tuple[int, str]]:
    return [(i.offset, i.text if isinstance(i, Record) else i.reason) for i in found]


ROWS = [{"text": "天气" * 300, "n": 1.5}, {"text": "b", "n": 2**70, "id": 7}, {"n": 1}, "text"]


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("name", ["a.json", "a.json.gz"])
def test_an_array(tmp_path: Path, indent: int | None, name: str) -> None:
    data = b"\xef\xbb\xbf" + json.dumps(ROWS, ensure_ascii=False, indent=indent).encode()
    found = of(tmp_path, gzip.compress(data) if name.endswith("gz") else data, name)
    assert found[:2] == [
        Record(0, 1800, "天气" * 300, {"meta": {"n": "1.5"}}),
        Record(1, 1, "b", {"source_id": "7", "meta": {"n": str(2**70)}}),
    ]
    assert brief(found)[2:] == [(2, "missing_text"), (3, "missing_text")]


def test_objects_over_several_lines(tmp_path: Path) -> None:
    data = "\n".join(json.dumps({"text": text}, indent=1) for text in "ab").encode()
    assert brief(of(tmp_path, data)) == [(0, "a"), (1, "b")]


def test_json_lines_stay_json_lines(tmp_path: Path) -> None:
    data = b'{"text": "a"}\n{broken\n{"text": "b"}\n'
    assert brief(of(tmp_path, data)) == [(0, "a"), (14, "bad_json"), (22, "b")]
    assert of(tmp_path, b"") == []


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b'[{"text": "a"}, {"text": "\xff"}, {"text": "c"}]', [(0, "a"), (1, "\ufffd"), (2, "c")]),
        (b'[{"text": "a"}, {"text": "b', [(0, "a"), (1, "bad_json")]),
        (b'[{"text": "a"}, {text: "b"}, {"text": "c"}]', [(0, "a"), (1, "bad_json")]),
        (b"[]", []),
    ],
)
def test_faults(tmp_path: Path, data: bytes, expected: list[tuple[int, str]]) -> None:
    assert brief(of(tmp_path, data)) == expected


def test_a_packed_array_that_ends_early(tmp_path: Path) -> None:
    packed = gzip.compress(json.dumps(ROWS[1:2] * 50).encode(), 0)
    found = brief(of(tmp_path, packed[:200], "a.json.gz"))
    assert found[0] == (0, "b")
    assert found[-1] == (len(found) - 1, "truncated_gzip")
