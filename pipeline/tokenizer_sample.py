"""The text that a tokenizer is trained on, or compared by: the documents of smallest hash, whatever
their order, so that a smaller sample is part of a larger one.

With shares, each language is drawn by itself up to its share of the bytes; within a language, a
source has the weight that it has in the inputs.
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

import pyarrow as pa
import xxhash

from filters import language
from filters.normalize import normalize
from filters.segments import Texts
from pipeline.config import ConfigError
from pipeline.inputs import input_files
from pipeline.readers import Piece, Record
from pipeline.readers.formats import read
from pipeline.schema import document_id
from pipeline.settings import CorpusSettings

MAX_CHARS = 200_000  # of one document: no book may be a large part of a sample
BATCH = 64  # documents whose languages are told at once
OTHER = "other"  # in shares: all languages that they do not name
ANY = "any"  # without shares: all languages are drawn together


class Document(NamedTuple):
    language: str
    source: str
    text: str


class Lowest:
    """The documents of smallest key whose text reaches `num_bytes`. Holds no more than these."""

    def __init__(self, num_bytes: int) -> None:
        self.wanted, self.num_bytes = num_bytes, 0
        self._heap: list[tuple[int, int, Document]] = []  # largest key on top, negated; bytes

    def add(self, key: int, document: Document) -> None:
        size = len(document.text.encode())
        heapq.heappush(self._heap, (-key, size, document))
        self.num_bytes += size
        while self._heap and self.num_bytes - (largest := self._heap[0][1]) >= self.wanted:
            heapq.heappop(self._heap)
            self.num_bytes -= largest

    def keyed(self) -> list[tuple[int, Document]]:
        """In the order of keys."""
        return [(-key, document) for key, _, document in sorted(self._heap, reverse=True)]

    def documents(self) -> list[Document]:
        return [document for _, document in self.keyed()]


def documents(settings: CorpusSettings) -> Iterator[tuple[bytes, str, str]]:
    """(id, source, normalized text) of every readable document of the inputs."""
    sources = {item.source: item for item in settings.inputs}
    for (source, file), path in input_files(settings).items():
        for item in read(Piece(path, file), sources[source], settings.extractor):
            if isinstance(item, Record):
                text, _ = normalize(item.text)
                if text.strip():
                    yield document_id(source, file, item.offset), source, text


def draw(
    found: Iterable[tuple[bytes, str, str]], num_bytes: int, shares: Mapping[str, float] | None
) -> dict[str, Lowest]:
    """What is taken of (id, source, text), by language of `shares` (None: ANY, all in one).

    Args:
        shares: language -> share of `num_bytes`; they add up to 1. A language that they do not
            name is OTHER, and left out where that is not named either.
    """
    groups = {ANY: 1.0} if shares is None else shares
    lowest = {name: Lowest(round(num_bytes * share)) for name, share in groups.items()}
    rest = lowest.get(ANY if shares is None else OTHER)
    for batch in _batches(found):
        languages = _languages([text for *_, text in batch])
        for (identity, source, text), lang in zip(batch, languages, strict=True):
            group = lowest.get(lang, rest)
            if group is not None:
                group.add(xxhash.xxh3_64_intdigest(identity), Document(lang, source, text))
    return lowest


def _batches(
    found: Iterable[tuple[bytes, str, str]],
) -> Iterator[list[tuple[bytes, str, str]]]:
    cut = ((identity, source, text[:MAX_CHARS]) for identity, source, text in found)
    while batch := list(itertools.islice(cut, BATCH)):
        yield batch


def _languages(texts: list[str]) -> list[str]:
    columns = language.measure(Texts(pa.array(texts, pa.string())), {})
    return [str(lang) for lang in pa.array(columns["lang"]).to_pylist()]


def taken(drawn: Mapping[str, Lowest]) -> list[Document]:
    """All documents drawn, in the order of their hashes."""
    keyed = [pair for lowest in drawn.values() for pair in lowest.keyed()]
    return [document for _, document in sorted(keyed)]


def as_lines(drawn: Mapping[str, Lowest]) -> Iterator[str]:
    """What was taken of each language and source, and which language has less than its share."""
    documents = taken(drawn)
    total = sum(len(document.text.encode()) for document in documents)
    groups: dict[tuple[str, str], list[int]] = {}
    for lang, source, text in documents:
        groups.setdefault((lang, source), []).append(len(text.encode()))
    for (lang, source), sizes in sorted(groups.items(), key=lambda item: (-sum(item[1]), item[0])):
        share = sum(sizes) / max(1, total)
        yield f"  {lang:<6} {source:<20} {len(sizes):>9,} {sum(sizes) / 1e6:>9.2f} MB {share:>6.1%}"
    short = {name: one for name, one in drawn.items() if one.num_bytes < one.wanted}
    wanted = sum(one.wanted for one in drawn.values())
    if ANY in drawn:
        return
    for name, one in short.items():
        whole = math.floor(one.num_bytes / (one.wanted / wanted))
        remedy = f"`--sample {whole / 1e6:.3g}MB` has it" if whole else "take it out of --shares"
        yield (
            f"  the inputs have {one.num_bytes / 1e6:.2f} MB of {name}, not {one.wanted / 1e6:.2f}:"
            f" its share is {one.num_bytes / max(1, total):.1%} instead of "
            f"{one.wanted / wanted:.1%}; {remedy}"
        )


def parse_shares(text: str) -> dict[str, float]:
    """'zh=0.5,en=0.5' -> shares that add up to 1; 'zh=2,en=1' are 2/3 and 1/3.

    Raises:
        ConfigError: no language, no number above 0, or one language twice.
    """
    known = [*language.codes(), OTHER]
    shares: dict[str, float] = {}
    for part in text.split(","):
        name, _, number = part.strip().partition("=")
        try:
            weight = float(number)
        except ValueError:
            weight = math.nan
        if not 0 < weight < math.inf:
            raise ConfigError(f"--shares {part!r}: write zh=0.5,en=0.5; each is a number above 0")
        if name not in known:
            raise ConfigError(
                f"--shares: no language {name!r}; write it as column `lang` does: zh, en, ja, "
                f"..., or {OTHER} for all that are not named"
            )
        if name in shares:
            raise ConfigError(f"--shares: {name} stands twice")
        shares[name] = weight
    return {name: weight / sum(shares.values()) for name, weight in shares.items()}
