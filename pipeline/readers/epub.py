"""EPUB: one book, one document, its chapters in the order of the spine.

Title, author and the rest come from the package file (Dublin Core); `keep: [creator, publisher]`
keeps more of it. A chapter that cannot be read is a reject of its own, at offset 1 + its place in
the spine, and the book goes on without it. Tables of contents (`properties="nav"`) are left out,
and what the HTML extractor takes for no main text. An encrypted (DRM) book is one reject.
"""

from __future__ import annotations

import io
import posixpath
import re
import zipfile
from collections.abc import Iterator
from datetime import date
from typing import IO, Any
from urllib.parse import unquote, urldefrag
from xml.etree import ElementTree

from pipeline.pages.charset import BadCharset
from pipeline.pages.licence import short_name
from pipeline.pages.page import NoText, html_page
from pipeline.ranges import open_file
from pipeline.readers import Bad, Piece, Record, is_of_disk
from pipeline.readers.archive import FAULTS
from pipeline.readers.document import MAX_FILE_BYTES
from pipeline.settings import Input

EXPANSION = 3  # bytes of text in a byte of a book without its pictures, about
PAGES = ("application/xhtml+xml", "text/html", "application/x-dtbook+xml")
DC = "{http://purl.org/dc/elements/1.1/}"

# XML that HTML reads otherwise: `<title/>` would begin a title that swallows the page.
_EMPTY = re.compile(
    rb"<(?!(?:br|hr|img|meta|link|input|col|area|base|wbr)\b)([a-zA-Z:]+)([^<>]*)/>"
)


class BadBook(ValueError):
    """(reason, detail)"""


def cut(path: str, file: str, size: int, shard_bytes: int) -> list[Piece]:
    return [Piece(path, file, num_bytes=size * EXPANSION)] if size else []


def read(piece: Piece, source: Input, extractor: str) -> Iterator[Record | Bad]:
    with open_file(piece.path) as stream:
        size = stream.seek(0, io.SEEK_END)
        if not size:
            return
        try:
            yield from _book(_opened(stream), size, source, extractor)
        except BadBook as error:
            reason, detail = error.args
            yield Bad(0, size, reason, detail)


def _opened(stream: IO[bytes]) -> zipfile.ZipFile:
    try:
        return zipfile.ZipFile(stream)
    except (*FAULTS, OSError) as error:
        if is_of_disk(error):
            raise
        raise BadBook("bad_epub", f"not readable: {error}") from None


def _book(
    archive: zipfile.ZipFile, size: int, source: Input, extractor: str
) -> Iterator[Record | Bad]:
    package_path = _package_path(archive)
    package = _xml(archive, package_path)
    _refuse_encrypted(archive)
    folder = posixpath.dirname(package_path)
    texts: list[str] = []
    faults: list[Bad] = []
    num_bytes = 0
    for place, name in enumerate(dict.fromkeys(_spine(package, folder)), 1):
        try:
            raw = _member(archive, name, MAX_FILE_BYTES - num_bytes)
            num_bytes += len(raw)
            texts.append(html_page(_EMPTY.sub(rb"<\1\2></\1>", raw), None, extractor)[0].strip())
        except NoText:  # a cover is a picture
            continue
        except BadBook as error:
            faults.append(Bad(place, 0, "bad_chapter", error.args[1]))
        except BadCharset as error:
            faults.append(Bad(place, 0, "bad_chapter", f"{name}: {error}"))
    if texts:
        yield Record(0, size, "\n\n".join(texts), _fields(package, source.keep))
    else:
        yield Bad(0, size, "no_main_text", "the book's pages hold no text; is it one of pictures?")
    yield from faults


def _package_path(archive: zipfile.ZipFile) -> str:
    for element in _xml(archive, "META-INF/container.xml").iter():
        if element.tag.endswith("}rootfile") and element.get("full-path"):
            return str(element.get("full-path"))
    raise BadBook("bad_epub", "META-INF/container.xml names no package file")


def _refuse_encrypted(archive: zipfile.ZipFile) -> None:
    """DRM; fonts that are only obfuscated are no matter."""
    if "META-INF/encryption.xml" in archive.namelist():
        for element in _xml(archive, "META-INF/encryption.xml").iter():
            name = element.get("URI") or ""
            if element.tag.endswith("}CipherReference") and re.search(r"html?$", name):
                raise BadBook("encrypted", f"{name} is encrypted (DRM)")


def _spine(package: ElementTree.Element, folder: str) -> Iterator[str]:
    """Names of the chapters' members, in reading order; `a.xhtml#s2` is no page of its own."""
    items = {e.get("id"): e for e in package.iter() if e.tag.endswith("}item")}
    for reference in package.iter():
        if not reference.tag.endswith("}itemref"):
            continue
        item = items.get(reference.get("idref"))
        if item is None:
            yield f"(no item {reference.get('idref')!r})"
        elif (
            item.get("media-type") in PAGES and "nav" not in (item.get("properties") or "").split()
        ):
            href = unquote(urldefrag(item.get("href") or "").url)
            yield posixpath.normpath(posixpath.join(folder, href))


def _fields(package: ElementTree.Element, keep: tuple[str, ...]) -> dict[str, Any]:
    core: dict[str, str] = {}  # of several creators all stand, of the rest the first
    for element in package.iter():
        if element.tag.startswith(DC) and (value := " ".join((element.text or "").split())):
            name = element.tag.removeprefix(DC)
            if name not in core:
                core[name] = value
            elif name == "creator":
                core[name] += f", {value}"
    fields = {
        "title": core.get("title"),
        "source_id": core.get("identifier"),
        "published_date": _date(core.get("date", "")),
        "licence": short_name(core["rights"]) if "rights" in core else None,
        "licence_evidence": f"dc:rights: {core['rights']}"[:500] if "rights" in core else None,
        "meta": {name: core[name] for name in keep if name in core} or None,
    }
    return {name: value for name, value in fields.items() if value is not None}


def _date(text: str) -> date | None:
    try:
        return date.fromisoformat(text[:10])
    except ValueError:
        return None


def _xml(archive: zipfile.ZipFile, name: str) -> ElementTree.Element:
    try:
        return ElementTree.fromstring(_member(archive, name, MAX_FILE_BYTES))
    except ElementTree.ParseError as error:
        raise BadBook("bad_epub", f"{name}: not XML: {error}") from None


def _member(archive: zipfile.ZipFile, name: str, limit: int) -> bytes:
    try:
        info = archive.getinfo(name)
        if info.file_size > limit:
            raise BadBook(
                "too_long", f"{name}: {info.file_size:,} bytes; at most {limit:,} are read"
            )
        if info.flag_bits & 1:
            raise BadBook("encrypted", f"{name}: encrypted")
        return archive.read(info)
    except KeyError:
        raise BadBook("bad_epub", f"{name}: not in the book") from None
    except BadBook:
        raise
    except (*FAULTS, OSError) as error:
        if is_of_disk(error):
            raise
        raise BadBook("bad_epub", f"{name}: not readable: {error}") from None
