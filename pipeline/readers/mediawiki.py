"""Dumps of Wikipedia and its sisters (`*-pages-articles*.xml.bz2`): one page a record.

Offset = the page's id. Articles only: redirects, pages of other namespaces and what is no wikitext
are rejects. Of several revisions the last counts. The title, the date of that revision and, from a
name such as `zhwiki-20261001-pages-articles.xml.bz2`, the address become columns.

Pages are framed here (`<page>` cannot stand in a text, which is escaped) and parsed one at a time,
so a page that is broken costs itself. A second dump in one file is refused: ids would stand twice.
Plain files are cut anywhere, bzip2 of many streams, as Wikimedia's `multistream` and pbzip2 make
it, at streams; other packed files are one piece.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from datetime import date
from itertools import pairwise
from typing import NamedTuple
from urllib.parse import quote
from xml.etree import ElementTree

import xxhash

from pipeline.pages.wikitext import BadWikitext, plain_text
from pipeline.ranges import open_file
from pipeline.readers import Bad, Piece, Record, RefusedFileError, excerpt, place_of
from pipeline.readers.streams import BrokenStream, chunks, compression
from pipeline.settings import Input

EXPANSION = 4  # bytes of XML in a byte of a compressed dump, about
MAX_PAGE_BYTES = 256_000_000  # of all its revisions in the dump
SCAN_BYTES = 1 << 20
BEGIN, END, ROOT = b"<page>", b"</page>", b"<mediawiki"

_STREAM = re.compile(rb"BZh[1-9]1AY&SY")  # 79 bits: none of them stands there by chance
_ID = re.compile(rb"<id>(\d{1,18})</id>")
_NAME = re.compile(
    r"(?:.*/)?(simple|[a-z]{2,3}(?:_[a-z_]+)?)(wiki|wiktionary|wikisource|wikibooks|wikinews"
    r"|wikiquote|wikiversity|wikivoyage)-(?:\d{8}|latest)-"
)


class Raw(NamedTuple):
    data: bytes  # from <page> to </page>; of a faulty one its beginning
    num_bytes: int
    fault: str = ""  # reason: truncated_xml, too_long, truncated_bzip2 ...
    detail: str = ""


def cut(path: str, file: str, size: int, shard_bytes: int) -> list[Piece]:
    kind = compression(path)
    text = size * (EXPANSION if kind else 1)
    if kind not in (None, "bzip2") or text <= shard_bytes:
        return [Piece(path, file, num_bytes=text)] if size else []
    if kind is None:
        borders = list(range(0, size, shard_bytes))
    else:
        borders = [0]
        for begin in _streams(path):
            if (begin - borders[-1]) * EXPANSION >= shard_bytes:
                borders.append(begin)
    ends = [end for _, end in pairwise([*borders, size])]
    weights = [(end - begin) * text // size for begin, end in zip(borders, ends, strict=True)]
    return [
        Piece(path, file, begin, end if end < size else None, num_bytes=weight)
        for begin, end, weight in zip(borders, ends, weights, strict=True)
    ]


def read(piece: Piece, source: Input, extractor: str) -> Iterator[Record | Bad]:
    """The articles of a piece; an empty file holds none."""
    del source, extractor
    for raw in frame(piece):
        yield _item(raw, piece)


def frame(piece: Piece) -> Iterator[Raw]:
    """The pages whose `<page>` begins in the piece; the last may end behind it."""
    stream = _Stream(piece)
    found_any = False
    while stream.to_next_page():
        found_any = True
        end, searched = -1, 0
        while (end := stream.buffer.find(END, searched)) < 0:
            searched = max(0, len(stream.buffer) - len(END) + 1)
            if searched > MAX_PAGE_BYTES or not stream.fill():
                break
        if end >= 0:
            yield Raw(stream.take(end + len(END)), end + len(END))
        elif searched > MAX_PAGE_BYTES:
            detail = f"a page of more than {MAX_PAGE_BYTES:,} bytes, its history included"
            yield Raw(stream.take(1000), 0, "too_long", detail)
        else:
            detail = stream.fault.detail if stream.fault else "the file ends inside a page"
            reason = stream.fault.reason if stream.fault else "truncated_xml"
            size = len(stream.buffer)
            yield Raw(stream.take(size)[:1000], size, reason, detail)
            return
    if stream.fault and stream.border is None:  # behind the border, the next piece tells of it
        yield Raw(b"", 0, stream.fault.reason, stream.fault.detail)
    elif piece.begin == 0 and not found_any:
        head = next(chunks(piece.path), b"")[:1000]
        if ROOT not in head and head.strip():
            detail = "no <mediawiki> at its beginning: of XML, exports of MediaWiki are read"
            yield Raw(head, 0, "bad_xml", detail)


class _Stream:
    """What was read of a piece, and behind it, and not yet taken."""

    def __init__(self, piece: Piece) -> None:
        self.piece = piece
        self.chunks = chunks(piece.path, piece.begin, piece.end)
        self.buffer = bytearray()
        self.position = 0  # of buffer[0], counted from the beginning of the piece
        self.border: int | None = None  # the position where the piece ends, once it is known
        self.fault: BrokenStream | None = None
        self.roots = 0

    def fill(self) -> bool:
        """One more chunk; False at the end of the file, or at a fault."""
        try:
            chunk = next(self.chunks, None)
            if chunk is None and self.border is None and self.piece.end is not None:
                self.border = self.position + len(self.buffer)
                self.chunks = chunks(self.piece.path, self.piece.end)
                chunk = next(self.chunks, None)
        except BrokenStream as error:
            chunk, self.fault = None, error
        self.buffer += chunk or b""
        return chunk is not None

    def take(self, size: int) -> bytes:
        taken = bytes(self.buffer[:size])
        del self.buffer[:size]
        self.position += size
        return taken

    def to_next_page(self) -> bool:
        """Drop all before the next `<page>`; False: none begins in the piece any more."""
        while (begin := self.buffer.find(BEGIN)) < 0:
            self._pass_over(max(0, len(self.buffer) - len(ROOT) + 1))
            if self.border is not None and self.position >= self.border:
                return False
            if not self.fill():
                return False
        self._pass_over(begin)
        return self.border is None or self.position < self.border

    def _pass_over(self, size: int) -> None:
        """Drop what stands before a page.

        Raises:
            RefusedFileError: a second dump begins there; its pages have the ids of the first's.
        """
        found = self.buffer.count(ROOT, 0, size + len(ROOT) - 1)
        self.take(size)
        self.roots += found
        if self.roots > 1 or (found and _begins_before(self.piece)):
            raise RefusedFileError(
                f"{self.piece.file}: a second <mediawiki> begins in it (dumps joined with `cat`?), "
                "so that ids of pages stand twice; give each dump as a file of its own: "
                "`csplit FILE '/<mediawiki/' '{*}'`"
            )


def _begins_before(piece: Piece) -> bool:
    """Does a dump begin before the piece? Where it should, in the first bytes of the file."""
    head = b""
    with contextlib.suppress(BrokenStream):
        for chunk in chunks(piece.path, 0, piece.begin) if piece.begin else ():
            head += chunk
            if ROOT in head or len(head) > SCAN_BYTES:
                break
    return ROOT in head


def _item(raw: Raw, piece: Piece) -> Record | Bad:
    named = _ID.search(raw.data.partition(b"<revision")[0])
    offset = int(named[1]) if named else place_of(piece) if raw.fault else _unnamed(raw.data)

    def bad(reason: str, detail: str, shown: bytes | str = b"") -> Bad:
        return Bad(offset, raw.num_bytes, reason, detail, excerpt(shown))

    if raw.fault:
        return bad(raw.fault, raw.detail, raw.data)
    try:
        page = ElementTree.fromstring(raw.data)
    except ElementTree.ParseError as error:
        return bad("bad_xml", f"the page is not XML: {error}", raw.data)
    title = page.findtext("title") or ""
    revision = ([None, *page.findall("revision")])[-1]
    text = revision.findtext("text") if revision is not None else None
    if named is None or page.findtext("id") != named[1].decode():
        return bad("bad_xml", "the page has no <id>", raw.data)
    if page.find("redirect") is not None:
        return bad("redirect", f"{title}: a redirect")
    if page.findtext("ns", "0") != "0":
        return bad("namespace", f"{title}: namespace {page.findtext('ns')}, no article")
    if revision is None or text is None or not text.strip():
        return bad("no_main_text", f"{title}: no text")
    if (model := revision.findtext("model", "wikitext")) != "wikitext":
        return bad("not_wikitext", f"{title}: its content is {model}", text)
    try:
        plain = plain_text(text)
    except BadWikitext as error:
        return bad("bad_wikitext", f"{title}: {error}", text)
    fields = {
        "source_id": named[1].decode(),
        "title": title,
        "published_date": _date(revision.findtext("timestamp", "")),
        **_address(piece.file, title),
    }
    return Record(offset, raw.num_bytes, plain, {k: v for k, v in fields.items() if v is not None})


def _unnamed(data: bytes) -> int:
    """Offset of a page without an id: by what it holds, so that it is the same wherever a dump is
    cut; far below those of `place_of`. Equal pages without an id share it."""
    return -1 - (1 << 62 | xxhash.xxh3_64_intdigest(data) >> 2)


def _date(timestamp: str) -> date | None:
    try:
        return date.fromisoformat(timestamp[:10])
    except ValueError:
        return None


def _address(file: str, title: str) -> dict[str, str]:
    match = _NAME.match(file)
    if match is None:
        return {}
    project = "wikipedia" if match[2] == "wiki" else match[2]
    host = f"{match[1].replace('_', '-')}.{project}.org"
    return {
        "url": f"https://{host}/wiki/{quote(title.replace(' ', '_'), safe='/:,()')}",
        "domain": host,
    }


def _streams(path: str) -> Iterator[int]:
    """Where the streams of a bzip2 file begin."""
    with open_file(path) as file:
        at, rest = 0, b""
        while block := file.read(SCAN_BYTES):
            data = rest + block
            for match in _STREAM.finditer(data):
                yield at + match.start()
            # Nine bytes back: too few for a stream's mark, enough for all but its last byte.
            at, rest = at + max(0, len(data) - 9), data[-9:]
