"""`assay tokenizer compare`: what tokenizers make of the same text, by language and source."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import tokenizers

from pipeline.corpus import part_paths
from pipeline.encoder import Encoder
from pipeline.files import part_name
from pipeline.sentencepiece_engine import loaded
from pipeline.settings import Tokenizer
from pipeline.tokenizer import choose_engine, load
from pipeline.tokenizer_engines import controls_special
from pipeline.tokenizer_sample import Document, Lowest

ALL = "all"


@dataclass(frozen=True)
class Row:
    """One tokenizer on the text of one language and source."""

    tokenizer: str
    language: str
    source: str
    documents: int
    bytes: int
    tokens: int
    bytes_per_token: float
    round_trip_failures: int  # documents that decode to another text
    unknown_share: float  # of tokens: the unknown token
    byte_share: float  # of tokens: single bytes, in which a piece that is not known is spelt
    vocabulary_used: float  # share of the vocabulary that stands in this text


@dataclass(frozen=True)
class Speed:
    """Of one tokenizer on all the text."""

    tokenizer: str
    vocabulary: int
    engine: str
    mb_per_cpu_second: float
    ratio: float  # to `tokenizers`, in the same run


def sample(root: Path, num_bytes: int) -> list[Document]:
    """The documents of smallest id that reach `num_bytes`: ids are
    hashes, so they are as good as random."""
    lowest = Lowest(num_bytes)
    for path in part_paths(root, "documents"):
        languages = pq.read_table(
            root / "signals/language" / part_name(int(path.stem[5:])), columns=["lang"]
        )["lang"].to_pylist()
        first = 0
        for batch in pq.ParquetFile(path).iter_batches(500, columns=["id", "source", "text"]):
            rows = batch.to_pydict()
            lang = languages[first : first + len(batch)]
            first += len(batch)
            for i, text in enumerate(rows["text"]):
                if text:
                    document = Document(lang[i] or "und", rows["source"][i], text)
                    lowest.add(int.from_bytes(rows["id"][i], "big"), document)
    return lowest.documents()


def compare(
    files: Sequence[str], documents: Sequence[tuple[str, str, str]], **policy: Any
) -> tuple[list[Row], list[Speed]]:
    """Every tokenizer on every document.

    Raises:
        ConfigError: a tokenizer cannot be read.
    """
    rows: list[Row] = []
    speeds: list[Speed] = []
    texts = pa.array([text for *_, text in documents], pa.string())
    num_bytes = sum(len(text.encode()) for *_, text in documents)
    for file in files:
        encoder = load(Tokenizer(file=file, eos=None, **policy))
        engine = choose_engine(encoder.json, [text for *_, text in documents[:50]])
        fast, plain = loaded(engine, encoder.json), loaded("tokenizers", encoder.json)
        seconds, (ids, offsets) = _timed(fast, texts)
        reference = seconds if engine == "tokenizers" else _timed(plain, texts)[0]
        rows += _rows(file, encoder, documents, ids, offsets)
        rate = num_bytes / 1e6 / seconds
        speeds.append(Speed(file, encoder.vocab_size, engine, rate, reference / seconds))
    return rows, speeds


def _timed(encode: Any, texts: pa.Array) -> tuple[float, Any]:
    encode(texts[:1])  # threads, tables
    began = time.process_time()
    found = encode(texts)
    return max(time.process_time() - began, 1e-9), found


def _rows(
    file: str,
    encoder: Encoder,
    documents: Sequence[tuple[str, str, str]],
    ids: np.ndarray,
    offsets: np.ndarray,
) -> Iterator[Row]:
    spec = json.loads(encoder.json)
    reader = tokenizers.Tokenizer.from_str(controls_special(spec))
    unknown = reader.token_to_id(spec["model"].get("unk_token") or "")
    if unknown is None:
        unknown = spec["model"].get("unk_id", -1)
    names = reader.get_vocab()
    is_byte = np.zeros(encoder.vocab_size, bool)
    byte_level = '"ByteLevel"' in json.dumps(spec.get("decoder"))
    for name, number in names.items():
        # Of a byte-level vocabulary ASCII letters are single bytes too, and no fallback
        spelt = len(name) == 1 and ord(name) > 127 if byte_level else len(name) == 6
        is_byte[number] = spelt and (byte_level or name.startswith("<0x"))
    failures = np.zeros(len(documents), np.int64)
    for i, (*_, text) in enumerate(documents):
        row = ids[offsets[i] : offsets[i + 1]].tolist()
        failures[i] = reader.decode(row, skip_special_tokens=False) != text
    groups: dict[tuple[str, str], list[int]] = {}
    for i, (language, source, _) in enumerate(documents):
        for key in ((ALL, ALL), (language, ALL), (language, source)):
            groups.setdefault(key, []).append(i)
    for (language, source), members in sorted(groups.items()):
        tokens = np.concatenate([ids[offsets[i] : offsets[i + 1]] for i in members])
        num_bytes = sum(len(documents[i][2].encode()) for i in members)
        count = max(1, len(tokens))
        yield Row(
            tokenizer=file,
            language=language,
            source=source,
            documents=len(members),
            bytes=num_bytes,
            tokens=len(tokens),
            bytes_per_token=num_bytes / count,
            round_trip_failures=int(failures[members].sum()),
            unknown_share=float((tokens == unknown).sum() / count),
            byte_share=float(is_byte[tokens].sum() / count),
            vocabulary_used=len(np.unique(tokens)) / len(names),
        )


def as_table(rows: Sequence[Row], speeds: Sequence[Speed]) -> Iterator[str]:
    """Lines for a terminal."""
    head = ("tokenizer", "lang", "source", "documents", "MB", "bytes/token")
    yield _line(*head, "not back", "unknown", "bytes", "vocabulary")
    for row in rows:
        yield _line(
            Path(row.tokenizer).name,
            row.language,
            row.source,
            f"{row.documents:,}",
            f"{row.bytes / 1e6:.2f}",
            f"{row.bytes_per_token:.3f}",
            f"{row.round_trip_failures:,}",
            f"{row.unknown_share:.2%}",
            f"{row.byte_share:.2%}",
            f"{row.vocabulary_used:.1%}",
        )
    for speed in speeds:
        yield (
            f"{Path(speed.tokenizer).name}: vocabulary {speed.vocabulary:,}; {speed.engine}, "
            f"{speed.mb_per_cpu_second:.1f} MB per CPU second, {speed.ratio:.1f} times `tokenizers`"
        )


def _line(*cells: str) -> str:
    widths = (24, 6, 16, 10, 9, 12, 9, 9, 8, 11)
    cut = [cell[:width] for cell, width in zip(cells, widths, strict=True)]
    left = [f"{cell:<{width}}" for cell, width in zip(cut[:3], widths, strict=False)]
    right = [f"{cell:>{width}}" for cell, width in zip(cut[3:], widths[3:], strict=True)]
    return " ".join([*left, *right])


def as_json(rows: Sequence[Row], speeds: Sequence[Speed]) -> str:
    found = {"rows": [asdict(row) for row in rows], "speeds": [asdict(s) for s in speeds]}
    return json.dumps(found, indent=1, ensure_ascii=False)
