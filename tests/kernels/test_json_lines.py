from __future__ import annotations

import json
from typing import Any

import numpy as np
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernels.json_lines import ABSENT, BLANK, LITERAL, LOOK, ROW, STRING, column, scan
from kernels.json_strings import PADDING

NAMES = ("text", "id", "名")


def scanned(data: bytes, padding: bytes = bytes(PADDING)) -> list[Any]:
    """Of each line BLANK, LOOK, or (text, its characters, values of the other names)."""
    names = [name.encode() for name in NAMES]
    lines = scan(
        np.frombuffer(data + padding, np.uint8),
        len(data),
        np.frombuffer(b"".join(names), np.uint8),
        np.cumsum([len(name) for name in names]),
    )
    found: list[Any] = []
    for line, kind in enumerate(lines.kinds.tolist()):
        if kind != ROW:
            found.append(kind)
            continue
        text = lines.texts[lines.text_begins[line] : lines.text_ends[line]].tobytes().decode()
        values = {}
        for name in range(1, len(NAMES)):
            begin, end = lines.other_begins[line, name], lines.other_ends[line, name]
            value = lines.others[begin:end].tobytes().decode()
            kind = lines.other_kinds[line, name]
            if kind != ABSENT:
                values[NAMES[name]] = (int(kind), value)
        found.append((text, int(lines.text_chars[line]), values))
    splits = data.split(b"\n")[:-1]
    assert [data[a:b] for a, b in zip(lines.begins, lines.ends, strict=True)] == splits
    return found


def as_parsed(line: bytes) -> tuple[str, int, dict[str, tuple[int, str]]]:
    """What orjson makes of a line that is a row.

    Raises:
        ValueError: it makes nothing of it.
    """
    row = orjson.loads(line)
    values = {}
    for name in NAMES[1:]:
        value = row.get(name)
        if isinstance(value, str):
            values[name] = (STRING, value)
        elif value is not None:
            values[name] = (LITERAL, json.dumps(value))
    return row["text"], len(row["text"]), values


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ('{"text":"a"}', ("a", 1, {})),
        (' { "text" :\t"" , "x": null } \r', ("", 0, {})),
        (
            '{"id":7,"text":"水。","名":"b"}',
            ("水。", 2, {"id": (LITERAL, "7"), "名": (STRING, "b")}),
        ),
        ('{"text":"a","id":null,"名":true}', ("a", 1, {"名": (LITERAL, "true")})),
        (r'{"text":"\u6c34\ud83d\ude00\/\\\"\n\u0000"}', ('水😀/\\"\n\0', 7, {})),
        ('{"text":"é😀ｱ","x":-1.5}', ("é😀ｱ", 3, {})),
        ("", BLANK),
        (" \t\r", BLANK),
        *((line, LOOK) for line in ("{}", "[1]", "3", "{", '{"id":1}', '{"text":null}')),
        ('{"text":"a","text":"b"}', LOOK),
        ('{"text":"a"} x', LOOK),
        ('{"text":"a",}', LOOK),
        ('{"text":"a" "id":1}', LOOK),
        ('{"text":"a","id":1.50}', LOOK),
        ('{"text":"a","id":-0}', LOOK),
        ('{"text":"a","x":1e400}', LOOK),
        ('{"text":"a","x":01}', LOOK),
        ('{"text":"a","x":-}', LOOK),
        ('{"text":"a","x":1.}', LOOK),
        ('{"text":"a","x":NaN}', LOOK),
        ('{"text":"a","x":tru}', LOOK),
        ('{"text":"a","x":1234567890123456789}', LOOK),
        ('{"text":"a","x":[1]}', LOOK),
        ('{"text":"a\tb"}', LOOK),
        (r'{"text":"\ud800"}', LOOK),
        (r'{"text":"\ud800\u0041"}', LOOK),
        (r'{"text":"\udc00"}', LOOK),
        (r'{"text":"\u12g4"}', LOOK),
        (r'{"text":"\x41"}', LOOK),
        ('{"text":"a', LOOK),
        ('{"text":"a\\', LOOK),
        ('{"text":"a\\u12', LOOK),
        ("\ufeff{}", LOOK),
    ],
)
def test_lines(line: str, found: object) -> None:
    around = '{"text":"before"}\n' + line + '\n{"text":"after"}\n'
    assert scanned(around.encode()) == [("before", 6, {}), found, ("after", 5, {})]
    assert scanned(line.encode() + b"\n", b'"}]\n,:1e') == [found]


@pytest.mark.parametrize(
    "bad",
    "ff 80 c080 c1bf e08080 eda080 edbfbf f0808080 f4908080 f5808080 e6b0 e6 f09f98 c328".split(),
)
def test_no_bytes_that_are_no_utf8(bad: str) -> None:
    for line in (b'{"text":"%b"}', b'{"text":"a","x":"12345678%b"}', b'{"text":"a","%b":1}'):
        for before in (b"", "水水".encode(), b"a"):
            assert scanned(line % (before + bytes.fromhex(bad)) + b"\n") == [LOOK]


VALUES = st.one_of(
    st.text(st.characters(codec="utf-8"), max_size=30),
    st.text('水火aé\r\n 😀\\"', max_size=20),
    st.integers(-(10**19), 10**19),
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from([None, True, False, "x" * 300, "好" * 70, [], {"a": 1}, -0.0, 1e300]),
)
ROWS = st.dictionaries(st.sampled_from([*NAMES, "x", "text2", "", "值"]), VALUES, max_size=6)


@given(ROWS, st.booleans(), st.booleans(), st.data())
def test_a_row_is_what_a_parser_says(
    row: object, plain: bool, wide: bool, data: st.DataObject
) -> None:
    """Also with a few bytes put in or taken away."""
    line = json.dumps(row, ensure_ascii=plain, separators=None if wide else (",", ":")).encode()
    at = data.draw(st.integers(0, len(line)))
    gone = data.draw(st.integers(0, 3))
    piece = data.draw(
        st.binary(max_size=3)
        | st.sampled_from(['"', "\\", "水", ",", "{", "}", ":", " ", "0", "\\u"])
    )
    changed = (
        line[:at] + (piece if isinstance(piece, bytes) else piece.encode()) + line[at + gone :]
    )
    for candidate in (line, changed):
        if b"\n" in candidate:
            continue
        (found,) = scanned(candidate + b"\n")
        if found == BLANK:
            assert not candidate.strip(b" \t\r")
        elif found != LOOK:
            assert found == as_parsed(candidate)


@given(st.lists(st.tuples(st.text(max_size=20), st.booleans()), max_size=20))
def test_columns(texts: list[tuple[str, bool]]) -> None:
    encoded = [text.encode() for text, _ in texts]
    ends = np.cumsum([0, *map(len, encoded)])
    data = np.frombuffer(b"".join(encoded) + bytes(PADDING), np.uint8)
    rows = np.flatnonzero([wanted for _, wanted in texts])
    offsets, found = column(data, rows, ends[:-1], ends[1:])
    kept = [text for text, wanted in texts if wanted]
    assert found[: offsets[-1]].tobytes().decode() == "".join(kept)
    assert np.diff(offsets).tolist() == [len(text.encode()) for text in kept]
