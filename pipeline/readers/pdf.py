"""PDF: one file, one document: its text layer, page after page, with what to think of it.

PDFium (of Chrome, through pypdfium2: `pip install 'assay[pdf]'`) finds lines and reading order. The
text stays as it stands on the pages: wrapped lines, running headers and page numbers are measured,
not mended, so that a mixture can decide:

    num_pages            pages of the document
    num_empty_pages      pages without text: pictures, scans
    num_running_lines    lines at the top or bottom of a page that stand there on three pages or
                         more, numbers set aside: headers, footers, page numbers
    wrapped_line_share   of the lines with another below them, those that end inside a sentence:
                         high for prose that is set in lines, low for lists, verse, slides

No text on any page (a scan) is a reject, `no_text_layer`; nothing here recognizes characters.
"""

from __future__ import annotations

import re
import threading
from collections import Counter
from collections.abc import Iterator
from typing import Any

from pipeline.readers import Bad, Piece, Record
from pipeline.readers.document import Refused, read_whole
from pipeline.settings import Input

EDGE_LINES = 2  # at the top and at the bottom of a page that may be a header or footer
MIN_RUNNING_PAGES = 3

# A hyphen at the end of a line, which PDFium runs together with the next one.
_HYPHENS = re.compile("[\ufffe\x02]")
_NUMBERS = re.compile(r"\d+|\b[ivxlc]+\b", re.IGNORECASE)
_INSIDE = re.compile(r"[\w,，、\-‐]$")  # a line ends so inside a sentence; \w holds Han and kana
_PDFIUM = threading.Lock()  # PDFium is not made for threads


def read(piece: Piece, source: Input, extractor: str) -> Iterator[Record | Bad]:
    del extractor
    return read_whole(piece, lambda raw: parse(raw, source.keep))


def parse(raw: bytes, keep: tuple[str, ...] = ()) -> tuple[str, dict[str, Any]]:
    """Text and columns; `keep` names entries of the document's information (Author, Producer ...).

    Raises:
        Refused: encrypted, not readable, or without a text layer.
    """
    with _PDFIUM:
        pages, information = _pages(raw)
    lines = [[line for line in page.split("\n") if line.strip()] for page in pages]
    if not any(lines):
        raise Refused("no_text_layer", f"no text on any of {len(pages):,} pages: a scan?")
    title = information.get("Title", "").strip()
    meta = {name: information[name] for name in keep if information.get(name)}
    fields = {
        **({"title": title} if title else {}),
        **({"meta": meta} if meta else {}),
        "num_pages": len(pages),
        "num_empty_pages": lines.count([]),
        "num_running_lines": num_running_lines(lines),
        "wrapped_line_share": wrapped_line_share(lines),
    }
    return "\n\n".join([page for page in pages if page]), fields


def num_running_lines(pages: list[list[str]]) -> int:
    """Lines that recur at the edges of pages, `Chapter 3 · 17` and `Chapter 4 · 20` being one."""
    edges = Counter[str]()
    for lines in pages:
        places = {*range(min(EDGE_LINES, len(lines))), *range(len(lines))[-EDGE_LINES:]}
        edges.update({_NUMBERS.sub("0", lines[place]).strip() for place in places})
    return sum(number for number in edges.values() if number >= MIN_RUNNING_PAGES)


def wrapped_line_share(pages: list[list[str]]) -> float:
    inner = [line.rstrip() for lines in pages for line in lines[:-1]]
    return sum(_INSIDE.search(line) is not None for line in inner) / max(1, len(inner))


def _pages(raw: bytes) -> tuple[list[str], dict[str, str]]:
    import pypdfium2

    try:
        document = pypdfium2.PdfDocument(raw)
    except pypdfium2.PdfiumError as error:
        if error.err_code == pypdfium2.raw.FPDF_ERR_PASSWORD:
            raise Refused("encrypted", "the file asks for a password") from None
        raise Refused("bad_pdf", str(error)) from None
    try:
        return [_page(document, number) for number in range(len(document))], {
            name: str(value) for name, value in document.get_metadata_dict().items()
        }
    except pypdfium2.PdfiumError as error:
        raise Refused("bad_pdf", str(error)) from None
    finally:
        document.close()


def _page(document: Any, number: int) -> str:
    page = document[number]
    layer = page.get_textpage()
    text = _HYPHENS.sub("-\n", layer.get_text_bounded()).replace("\r\n", "\n")
    layer.close()
    page.close()
    return text.strip("\n")
