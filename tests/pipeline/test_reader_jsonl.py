from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline import schema
from pipeline.readers import Bad, Piece, Record, jsonl
from pipeline.readers.formats import read
from pipeline.settings import Input

SOURCE = Input(source="t", files="*.jsonl")


def items(path: Path, source: Input = SOURCE, shard_bytes: int = 1 << 30) -> list[Record | Bad]:
    pieces = jsonl.cut(str(path), path.name, path.stat().st_size, shard_bytes)
    assert pieces is not None
    return [item for piece in pieces for item in read(piece, source, "resiliparse")]


def of(data: bytes, tmp_path: Path, source: Input = SOURCE) -> list[Record | Bad]:
    path = tmp_path / "in.jsonl"
    path.write_bytes(data)
    return items(path, source)


def brief(found: list[Record | Bad]) -> list[tuple[int, str]]:
    """(offset, text or reason) of each item."""
    return [(i.offset, i.text if isinstance(i, Record) else i.reason) for i in found]


def test_fields(tmp_path: Path) -> None:
    source = Input(source="t", files="x", text="content", keep=("n", "who", "none", "gone"))
    row = {"content": "水。", "id": 7, "url": "HTTP://A.example:80/b", "n": [1, 2.5], "who": "李"}
    line = json.dumps({**row, "none": None}).encode()
    assert of(line, tmp_path, source) == [
        Record(
            0,
            len(line),
            "水。",
            {
                "source_id": "7",
                "url": "HTTP://A.example:80/b",
                "domain": "a.example",
                "meta": {"n": "[1,2.5]", "who": "李"},
            },
        )
    ]


@pytest.mark.parametrize(
    ("line", "reason", "detail"),
    [
        (b'{"text":"\xff"}', "bad_utf8", "byte 9 of the line is not UTF-8: invalid start byte"),
        (b'{"text":', "bad_json", "Expecting value: line 1 column 9 (char 8)"),
        (b'{"txt":"a","b":1}', "missing_text", "no field 'text'; the record has 'txt', 'b'"),
        (b"{}", "missing_text", "no field 'text'; the record has none"),
        (b"[1]", "missing_text", "a JSON list, not an object with a field 'text'"),
        (b"null", "missing_text", "a JSON NoneType, not an object with a field 'text'"),
        (b'{"text": null}', "null_text", "field 'text' is null"),
        (b'{"text": 3}', "bad_text_type", "field 'text' is int, not a string"),
        (b'{"text": ["a"]}', "bad_text_type", "field 'text' is list, not a string"),
        (b"\0" * 9, "nul_bytes", "9 NUL bytes and no record: a sparse file after a crash?"),
    ],
)
def test_a_bad_line_costs_that_line_only(
    tmp_path: Path, line: bytes, reason: str, detail: str
) -> None:
    found = of(b'{"text":"a"}\n' + line + b'\n{"text":"b"}\n', tmp_path)
    assert [brief(found)[0], brief(found)[2]] == [(0, "a"), (13 + len(line) + 1, "b")]
    bad = found[1]
    assert isinstance(bad, Bad)
    assert (bad.offset, bad.num_bytes, bad.reason, bad.detail) == (13, len(line), reason, detail)


def test_one_bad_byte_in_line_two_of_a_hundred(tmp_path: Path) -> None:
    """datatrove 0.6.0 reads none of these documents."""
    good = [b'{"text":"%d"}' % i for i in range(100)]
    good[1] = b'{"text":"\xff"}'
    found = brief(of(b"\n".join(good) + b"\n", tmp_path))
    assert [value for _, value in found] == ["0", "bad_utf8", *map(str, range(2, 100))]


@pytest.mark.parametrize(
    ("line", "text"),
    [
        (b'{"text":"\\ud800"}', "\ud800"),  # a lone surrogate: normalization counts it
        (b'{"text":"\\ud83d\\ude00"}', "😀"),
        (b'{"text":"a","x":NaN}', "a"),
        (b'{"text":"a\0b"}', "a\0b"),  # raw NUL inside a string
        (b'\0\0\0{"text":"a"}\0', "a"),  # a NUL run around a record
        (b'{"text":""}', ""),
        (b'{"text":"' + b"[" * 2000 + b'"}', "[" * 2000),
        (b'{"text":"<|endoftext|>"}', "<|endoftext|>"),
        (b'{"text":"' + "好".encode() * 200_000 + b'"}', "好" * 200_000),
    ],
    ids=range(9),
)
def test_odd_lines_are_records(tmp_path: Path, line: bytes, text: str) -> None:
    assert brief(of(line, tmp_path)) == [(0, text)]


def test_numbers_beyond_64_bits_keep_their_digits(tmp_path: Path) -> None:
    source = Input(source="t", files="x", keep=("n",))
    (found,) = of(b'{"text":"a","id":123456789012345678901,"n":1e3}', tmp_path, source)
    assert isinstance(found, Record)
    assert found.fields == {"source_id": "123456789012345678901", "meta": {"n": "1000.0"}}


def test_deep_nesting_is_bad_json(tmp_path: Path) -> None:
    assert brief(of(b"[" * 100_000 + b'\n{"text":"a"}', tmp_path)) == [
        (0, "bad_json"),
        (100_001, "a"),
    ]


def test_bom_crlf_blank_lines_and_no_last_line_end(tmp_path: Path) -> None:
    data = b'\xef\xbb\xbf{"text":"a"}\r\n\r\n  \n\n{"text":"b","id":"x"}\r\n{"text":"b","id":"x"}'
    found = of(data, tmp_path)
    assert brief(found) == [(0, "a"), (23, "b"), (46, "b")]
    assert [i.num_bytes for i in found] == [16, 22, 21]


def test_a_bom_before_any_line_is_passed_over(tmp_path: Path) -> None:
    """Files with one each, joined with `cat`."""
    data = (
        b'\xef\xbb\xbf{"text":"a"}\n\xef\xbb\xbf{"text":"b"}\n\xef\xbb\xbf\n \xef\xbb\xbf{"text":3}'
    )
    assert brief(of(data, tmp_path)) == [(0, "a"), (16, "b"), (36, "bad_text_type")]


def test_of_a_key_that_stands_twice_the_last_counts(tmp_path: Path) -> None:
    source = Input(source="t", files="x", keep=("n",))
    line = b'{"text":"a","id":1,"n":"x","text":"b","id":2,"n":null}'
    found = of(line + b'\n{"text":"a","text":null}', tmp_path, source)
    assert found[0] == Record(0, len(line), "b", {"source_id": "2", "meta": {}})
    assert brief(found[1:]) == [(len(line) + 1, "null_text")]


@pytest.mark.parametrize(
    ("value", "kept"),
    [
        ("NaN", "NaN"),
        ("-Infinity", "-Infinity"),
        ("1e400", "Infinity"),
        ("1.0", "1.0"),
        ("1e5", "100000.0"),
        ("true", "true"),
        ("null", None),
    ],
)
def test_an_id_that_is_no_text_is_kept_as_json_writes_it(
    tmp_path: Path, value: str, kept: str | None
) -> None:
    (found,) = of(b'{"text":"a","id":%s}' % value.encode(), tmp_path)
    assert isinstance(found, Record)
    assert found.fields.get("source_id") == kept


def test_empty_file(tmp_path: Path) -> None:
    assert of(b"", tmp_path) == []
    assert items(_gz(tmp_path, b"")) == []


@pytest.mark.parametrize("size", [1 << 16, 1 << 20])
def test_crlf_on_a_buffer_border(tmp_path: Path, size: int) -> None:
    """Beam 29146: `\\r` last byte of a buffer, `\\n` first of the next."""
    first = b'{"text":"' + b"x" * (size - 12) + b'"}\r'
    assert len(first) == size
    data = first + b'\n{"text":"b"}\r\n'
    expected = [(0, "x" * (size - 12)), (size + 1, "b")]
    assert brief(of(data, tmp_path)) == expected
    assert brief(items(_gz(tmp_path, data))) == expected


def test_a_line_of_50_mb(tmp_path: Path) -> None:
    path = tmp_path / "in.jsonl"
    path.write_bytes(b'{"text":"' + b"x" * 50_000_000 + b'"}\n{"text":"b"}\n')
    found = items(path, shard_bytes=8_000_000)
    assert [(i.offset, i.num_bytes) for i in found] == [(0, 50_000_011), (50_000_012, 12)]


def test_a_line_above_the_limit_is_too_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jsonl, "MAX_LINE_BYTES", 100)
    line = b'{"text":"' + b"x" * 3_000_000 + b'"}'
    found = of(line + b'\n{"text":"b"}\n', tmp_path)
    assert brief(found) == [(0, "too_long"), (len(line) + 1, "b")]
    assert isinstance(found[0], Bad)
    assert found[0].num_bytes == len(line)
    assert found[0].detail == "a line of 3,000,011 bytes; at most 100 are read as one record"
    assert found[0].excerpt == '{"text":"' + "x" * 191


def _gz(tmp_path: Path, *members: bytes) -> Path:
    path = tmp_path / "in.jsonl.gz"
    path.write_bytes(b"".join(gzip.compress(m, mtime=0) for m in members))
    return path


def _zst(tmp_path: Path, *frames: bytes) -> Path:
    path = tmp_path / "in.jsonl.zst"
    path.write_bytes(b"".join(zstandard.compress(f) for f in frames))
    return path


@pytest.mark.parametrize("pack", [_gz, _zst])
def test_several_members_and_a_line_across_them(tmp_path: Path, pack: Callable[..., Path]) -> None:
    path = pack(tmp_path, b'{"text":"a"}\n{"te', b"", b'xt":"b"}\n', b'{"text":"c"}\n')
    assert brief(items(path)) == [(0, "a"), (13, "b"), (26, "c")]


def test_gzip_with_zero_padding(tmp_path: Path) -> None:
    path = _gz(tmp_path, b'{"text":"a"}\n')
    path.write_bytes(path.read_bytes() + b"\0" * 512)
    assert brief(items(path)) == [(0, "a")]


def test_a_gzip_file_named_jsonl_is_decompressed_and_a_plain_one_named_gz_read(
    tmp_path: Path,
) -> None:
    path = tmp_path / "in.jsonl"
    path.write_bytes(gzip.compress(b'{"text":"a"}\n'))
    assert brief(items(path)) == [(0, "a")]
    path = tmp_path / "in.jsonl.gz"
    path.write_bytes(b'{"text":"a"}\n')
    assert brief(items(path)) == [(0, "a")]


ROWS = b"".join(b'{"text":"%d %s"}\n' % (i, bytes(zlib.crc32(b"%d" % i) % 90 + 35 for _ in "abc"))
                for i in range(1000))  # fmt: skip


@pytest.mark.parametrize("keep", [0.1, 0.5, 0.99])
def test_a_truncated_gzip_keeps_all_before_the_cut(tmp_path: Path, keep: float) -> None:
    path = _gz(tmp_path, ROWS)
    whole = items(path)
    packed = path.read_bytes()
    path.write_bytes(packed[: int(len(packed) * keep)])
    *before, last = items(path)
    assert len(before) > 30
    assert before == whole[: len(before)]
    assert isinstance(last, Bad)
    assert (last.reason, last.offset) == ("truncated_gzip", whole[len(before)].offset)
    expected = zlib.decompressobj(31).decompress(packed[: int(len(packed) * keep)])
    assert last.offset + last.num_bytes == len(expected)
    assert last.excerpt == expected[last.offset :].decode()


def test_a_wrong_crc_keeps_every_line_and_is_recorded(tmp_path: Path) -> None:
    path = _gz(tmp_path, ROWS)
    whole = items(path)
    packed = bytearray(path.read_bytes())
    packed[-8] ^= 1
    path.write_bytes(bytes(packed))
    *before, last = items(path)
    assert before == whole
    assert isinstance(last, Bad)
    assert (last.reason, last.offset, last.num_bytes) == ("damaged_gzip", len(ROWS), 0)
    assert last.detail == (
        "corrupt gzip data: Error -3 while decompressing data: incorrect data check"
    )


def test_corrupt_gzip_data_keeps_what_stands_before(tmp_path: Path) -> None:
    path = _gz(tmp_path, ROWS, b'{"text":"second"}\n', ROWS)
    first = len(gzip.compress(ROWS, mtime=0))
    packed = bytearray(path.read_bytes())
    packed[first] = 0  # no gzip member begins here: bytes after a member that are not padding
    packed[first + 1] = 7
    path.write_bytes(bytes(packed))
    *before, last = items(path)
    assert len(before) == 1000
    assert isinstance(last, Bad)
    assert (last.reason, last.offset) == ("damaged_gzip", len(ROWS))


def test_a_truncated_zstd_keeps_its_whole_blocks(tmp_path: Path) -> None:
    rows = ROWS * 40  # several blocks of 128 KiB
    path = _zst(tmp_path, rows)
    whole = items(path)
    path.write_bytes(path.read_bytes()[:-10])
    *before, last = items(path)
    assert len(before) > 20_000
    assert before == whole[: len(before)]
    assert isinstance(last, Bad)
    assert (last.reason, last.detail) == (
        "truncated_zstd",
        "the zstd stream ends inside a frame",
    )


TEXTS = st.one_of(
    st.text(alphabet='水火a\r\n é😀\\"', max_size=12), st.sampled_from(["", "甲", "x" * 300])
)
LINES = st.one_of(
    TEXTS.map(lambda t: json.dumps({"text": t}, ensure_ascii=False).encode()),
    st.sampled_from(
        [b"", b"\r", b"  ", b"{", b'{"text":"\xff"}', b"3", b'{"text":null}', b"\0\0", b'{"a":1}\r']
    ),
)


@settings(max_examples=200, deadline=None)
@given(
    rows=st.lists(LINES, max_size=20),
    last=st.booleans(),
    shard_bytes=st.integers(1, 200),
)
def test_every_line_comes_out_once_for_any_cut(
    tmp_path_factory: pytest.TempPathFactory, rows: list[bytes], last: bool, shard_bytes: int
) -> None:
    path = tmp_path_factory.mktemp("p") / "in.jsonl"
    path.write_bytes(b"\n".join(rows) + (b"\n" if last else b""))
    whole = items(path)
    assert len(whole) == sum(bool(row.strip()) for row in rows)
    offsets = [item.offset for item in whole]
    assert offsets == sorted(set(offsets))
    assert items(path, shard_bytes=shard_bytes) == whole


def test_pieces_of_any_borders(tmp_path: Path) -> None:
    path = tmp_path / "in.jsonl"
    data = b'{"text":"a"}\n\n{"text":"bb"}\n{"text":"c"}'
    path.write_bytes(data)
    whole = items(path)
    for border in range(1, len(data)):
        pieces = [
            Piece(str(path), "in.jsonl", 0, border, 0),
            Piece(str(path), "in.jsonl", border, None, border),
        ]
        assert [i for p in pieces for i in read(p, SOURCE, "resiliparse")] == whole


def test_offsets_above_4_gb() -> None:
    """ray #48236: offsets that 32 bits do not hold."""
    begin = 5 * 10**9
    assert list(jsonl.lines(iter([b'{"a":1}\n{"b"', b":2}\n"]), begin)) == [
        jsonl.Line(begin, 7, b'{"a":1}'),
        jsonl.Line(begin + 8, 7, b'{"b":2}'),
    ]
    assert schema.DOCUMENTS.field("offset").type == pa.int64()
    ids = {schema.document_id("s", "f", at) for at in (begin, begin % 2**32)}
    assert len(ids) == 2


def test_lines_hold_a_bounded_part_of_an_endless_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jsonl, "MAX_LINE_BYTES", 1000)
    (line,) = jsonl.lines(iter([b"x" * 100] * 1000), 0)
    assert (line.num_bytes, len(line.data)) == (100_000, 1100)


@pytest.mark.parametrize("field", ["id", "text", "other"])
def test_a_field_nested_too_deeply_costs_its_record(tmp_path: Path, field: str) -> None:
    deep = "[" * 1015 + "]" * 1015
    other = '"text": "kept"' if field != "text" else '"x": 1'
    path = tmp_path / "a.jsonl"
    path.write_text(f'{{{other}, "{field}": {deep}}}\n{{"text": "next"}}\n')
    source = Input(source="s", files="a.jsonl", text="text" if field != "other" else "gone")
    found = [type(item).__name__ for item in jsonl.read(Piece(str(path), "a.jsonl"), source, "")]
    assert found == ["Bad", "Bad" if field == "other" else "Record"]
