from __future__ import annotations

import csv
import gzip
import io
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.readers import Bad, Record, table
from pipeline.readers.formats import cut, read
from pipeline.settings import Input

Found = list[tuple[int, str]]


def of(tmp_path: Path, data: bytes, name: str = "a.csv", **keys: object) -> list[Record | Bad]:
    path = tmp_path / name
    path.write_bytes(data)
    source = Input.model_validate({"source": "t", "files": "*", **keys})
    pieces = cut(str(path), name, 100)
    assert pieces is not None
    return [item for piece in pieces for item in read(piece, source, "resiliparse")]


def brief(found: list[Record | Bad]) -> Found:
    return [(i.offset, i.text if isinstance(i, Record) else i.reason) for i in found]


def test_columns_quotes_and_line_ends_in_a_field(tmp_path: Path) -> None:
    data = '\ufeffid,text,author\r\n7,"a ""b"",\nc",水\r\n\r\n8,,x\r\n'.encode()
    assert of(tmp_path, data, keep=["author"]) == [
        Record(
            19,
            19,
            'a "b",\nc',
            {"source_id": "7", "meta": {"author": "水"}, "charset": "utf-8"},
        ),
        Record(41, 5, "", {"source_id": "8", "meta": {"author": "x"}, "charset": "utf-8"}),
    ]


def test_columns_of_one_name_a_second_bom_and_no_number(tmp_path: Path) -> None:
    found = of(tmp_path, "\ufefftext,id,text\na,NaN,b\n\ufeffa,,\ufeffc\n".encode())
    shown = [(r.text, r.fields["source_id"]) for r in found if isinstance(r, Record)]
    assert shown == [("b", "NaN"), ("\ufeffc", "")], "normalization removes and counts U+FEFF"


@pytest.mark.parametrize("delimiter", [",", "\t", ";", "|"])
def test_the_header_tells_the_delimiter(tmp_path: Path, delimiter: str) -> None:
    data = delimiter.join(["n,o", "content"]).replace("n,o", '"n,o"') + "\n"
    data += delimiter.join(["1", "a b"]) + "\n"
    (found,) = of(tmp_path, data.encode(), "a.tsv", text="content")
    assert isinstance(found, Record)
    assert found.text == "a b"


LONG = "天气预报说明天有雨，\n我们不去公园了。" * 20


@pytest.mark.parametrize("codec", ["gb18030", "big5", "utf-16", "utf-8-sig"])
def test_encodings(tmp_path: Path, codec: str) -> None:
    text = LONG if codec != "big5" else "天氣預報說明天有雨，\n我們不去公園了。" * 20
    data = f'n,text\n1,"{text}"\n2,结束\n'.replace("结束", text[:5]).encode(codec)
    found = of(tmp_path, data)
    assert [i.text for i in found if isinstance(i, Record)] == [text, text[:5]]


def test_a_wrong_byte_costs_its_row(tmp_path: Path) -> None:
    good = f'"{LONG}"\n'.encode()
    data = b"text\n" + good + b'"a\n\xff\nb"\n' + b"last\n"
    one, bad, last = of(tmp_path, data)
    assert isinstance(one, Record)
    assert bad == Bad(
        5 + len(good),
        7,
        "bad_utf8",
        "byte 0 of a line is not utf-8: invalid start byte",
        '"a',
    )
    assert isinstance(last, Record)
    assert (last.offset, last.text) == (5 + len(good) + 8, "last")


def test_a_wrong_byte_among_english_rows_does_not_change_the_encoding(tmp_path: Path) -> None:
    """Taken for windows-1250 before, and the Chinese row for garbage."""
    rows = [f"a plain row of English number {n}\n".encode() for n in range(200)]
    chinese = "结束：今天天气很好\n".encode()
    data = b"text\n" + b"".join(rows) + b"caf\xe9 is a word\n" + chinese
    *english, bad, last = of(tmp_path, data)
    assert [i.text + "\n" for i in english if isinstance(i, Record)] == [r.decode() for r in rows]
    assert brief([bad, last]) == [
        (5 + sum(map(len, rows)), "bad_utf8"),
        (5 + sum(map(len, rows)) + 15, "结束：今天天气很好"),
    ]
    assert isinstance(last, Record)
    assert last.fields["charset"] == "utf-8"


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ('1,"open\n2,two\n3,three\n', [(7, "bad_csv"), (15, "two"), (21, "three")]),
        ('1,"a"b\n2,two\n', [(7, "bad_csv"), (14, "two")]),
        ("1,a,b\n2\n3,three\n", [(7, "bad_csv"), (13, "bad_csv"), (15, "three")]),
        ('1,5" x\n2,6" y\n', [(7, '5" x'), (14, '6" y')]),
        # The quote is closed by that of the next line.
        ('1,"a\n2,"b"\n3,c\n', [(7, "bad_csv"), (12, "b"), (18, "c")]),
        ("1,no line end", [(7, "no line end")]),
        ("", []),
    ],
)
def test_a_row_that_is_not_well_formed_costs_its_first_line(
    tmp_path: Path, rows: str, expected: Found
) -> None:
    assert brief(of(tmp_path, f"n,text\n{rows}".encode())) == expected


def test_no_such_column(tmp_path: Path) -> None:
    (bad,) = of(tmp_path, b"a,b\n1,2\n")
    assert isinstance(bad, Bad)
    assert (bad.reason, bad.detail) == (
        "missing_text",
        "no field 'text'; the record has 'a', 'b'",
    )


def test_an_open_quote_holds_so_much(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table, "MAX_ROW_BYTES", 20)
    found = of(tmp_path, b'text\n"open\n' + b"12345\n" * 4)
    assert brief(found) == [
        (5, "bad_csv"),
        *[(at, "12345") for at in (11, 17, 23, 29)],
    ]
    assert brief(of(tmp_path, b"text\n" + b"x" * 30 + b"\ny\n")) == [(5, "bad_csv"), (36, "y")]


def test_a_packed_file_that_ends_early(tmp_path: Path) -> None:
    data = b"text\n" + b'"one\ntwo"\n' + b"three\n"
    packed = gzip.compress(data, 0)
    assert brief(of(tmp_path, packed, "a.csv.gz")) == [(5, "one\ntwo"), (15, "three")]
    at = packed.index(b"wo")
    assert brief(of(tmp_path, packed[:at], "a.csv.gz")) == [(5, "bad_csv"), (10, "truncated_gzip")]


def test_bytes_that_are_no_text(tmp_path: Path) -> None:
    (bad,) = of(tmp_path, b"\0" * 400)
    assert isinstance(bad, Bad)
    assert (bad.reason, bad.num_bytes) == ("bad_charset", 400)


TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r\0\x1b"), max_size=30)


@given(st.lists(TEXT, min_size=1, max_size=8))
def test_what_csv_writes_is_read(texts: list[str]) -> None:
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerows([["n", "text"], ["0", LONG], *(["1", text] for text in texts)])
    with tempfile.TemporaryDirectory() as folder:
        found = of(Path(folder), out.getvalue().encode())
    assert [i.text for i in found if isinstance(i, Record)] == [LONG, *texts]
