from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from pipeline.readers import Bad, Record, formats, pdf
from pipeline.readers.formats import cut, format_of, read
from pipeline.settings import Input


def made(pages: list[list[str]], information: str = "", encryption: str = "") -> bytes:
    """A PDF with lines of Helvetica on its pages."""
    kids = " ".join(f"{4 + 2 * i} 0 R" for i in range(len(pages)))
    objects = [
        "<</Type/Catalog/Pages 2 0 R>>",
        f"<</Type/Pages/Kids[{kids}]/Count {len(pages)}>>",
        "<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
    ]
    for number, lines in enumerate(pages):
        text = "".join(f"({line}) Tj T* " for line in lines)
        content = f"BT /F1 12 Tf 14 TL 50 700 Td {text}ET"
        objects += [
            f"<</Type/Page/Parent 2 0 R/MediaBox[0 0 600 800]/Contents {5 + 2 * number} 0 R"
            "/Resources<</Font<</F1 3 0 R>>>>>>",
            f"<</Length {len(content)}>>stream\n{content}\nendstream",
        ]
    objects += [f"<<{information}>>", f"<<{encryption}>>"]
    out = b"%PDF-1.7\n"
    places = []
    for number, body in enumerate(objects, 1):
        places.append(len(out))
        out += f"{number} 0 obj{body}endobj\n".encode("latin-1")
    table = "".join(f"{place:010d} 00000 n \n" for place in places)
    last = len(objects)
    encrypt = f"/Encrypt {last} 0 R/ID[(a)(a)]" if encryption else ""
    trailer = f"<</Size {last + 1}/Root 1 0 R/Info {last - 1} 0 R{encrypt}>>"
    end = f"xref\n0 {last + 1}\n0000000000 65535 f \n{table}trailer{trailer}\n"
    return out + f"{end}startxref\n{len(out)}\n%%EOF".encode()


def of(tmp_path: Path, data: bytes, name: str = "a.pdf") -> list[Record | Bad]:
    path = tmp_path / name
    path.write_bytes(data)
    source = Input(source="t", files="*", keep=("Author",))
    pieces = cut(str(path), name, 100)
    assert pieces is not None
    return [item for piece in pieces for item in read(piece, source, "resiliparse")]


PAGES = [
    ["Book", "The first line of a long", "sentence ends here."],
    ["Book", "Another page.", "Page 2"],
    [],
    ["Book", "The last words", "of it.", "Page 4"],
]
TEXT = """Book
The first line of a long
sentence ends here.

Book
Another page.
Page 2

Book
The last words
of it.
Page 4"""


@pytest.mark.parametrize("name", ["a.pdf", "a.pdf.gz"])
def test_pages_and_what_is_measured_on_them(tmp_path: Path, name: str) -> None:
    data = made(PAGES, "/Title(Book)/Author(A. Uthor)")
    packed = gzip.compress(data) if name.endswith("gz") else data
    assert of(tmp_path, packed, name) == [
        Record(
            0,
            len(data),
            TEXT,
            {
                "title": "Book",
                "meta": {"Author": "A. Uthor"},
                "num_pages": 4,
                "num_empty_pages": 1,
                "num_running_lines": 3,  # `Book`; `Page 2` and `Page 4` are too few
                "wrapped_line_share": 5 / 7,  # all but `Another page.` and `of it.`
            },
        )
    ]


def test_page_numbers_are_set_aside() -> None:
    pages = [[f"Chapter {page // 10} · {page}", "text", "text", "text."] for page in range(20)]
    assert pdf.num_running_lines(pages) == 20 + 20 + 20  # heads; and the same text on every page
    assert pdf.num_running_lines([["head x", "a"], ["head xi", "b"], ["head xiv", "c"]]) == 3
    assert pdf.num_running_lines(pages[:2]) == 0


def test_lines_inside_sentences() -> None:
    lines = ["天气很好，", "我们去公", "园。", "walk-", "ing", "end."]
    assert pdf.wrapped_line_share([lines]) == 4 / 5
    assert pdf.wrapped_line_share([["one line"], []]) == 0


ENCRYPTION = f"/Filter/Standard/V 1/R 2/P -4/O<{'41' * 32}>/U<{'42' * 32}>"


@pytest.mark.parametrize(
    ("data", "reason", "detail"),
    [
        (made([[], []]), "no_text_layer", "no text on any of 2 pages: a scan?"),
        (made(PAGES, encryption=ENCRYPTION), "encrypted", "the file asks for a password"),
        (b"%PDF-1.7 and nothing", "bad_pdf", "Data format error"),
    ],
)
def test_what_is_no_document(tmp_path: Path, data: bytes, reason: str, detail: str) -> None:
    (bad,) = of(tmp_path, data)
    assert isinstance(bad, Bad)
    assert (bad.offset, bad.num_bytes, bad.reason) == (0, len(data), reason)
    assert detail in bad.detail


def test_without_pdfium(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(formats.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ValueError, match=r"a\.pdf: needs pypdfium2; pip install 'assay\[pdf\]'"):
        format_of("a.pdf")
    assert format_of("a.txt") == "text"
