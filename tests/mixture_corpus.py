"""A corpus written by hand, as docs/formats.md says, of any documents and any shard size."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import xxhash

from dedup.shingles import folded_shingles
from mixtures.dealing import Documents
from pipeline import schema
from pipeline.commits import commit
from pipeline.files import part_name, write_json
from pipeline.readers.rows import domain
from pipeline.transforms.near import copy_hashes

TOKENIZER = "0123456789abcdef"
VOCAB_SIZE = 60_000
QUALITY = pa.schema([("score", pa.float32())])
LANGUAGE = pa.schema([("lang", pa.string())])


@dataclass(frozen=True)
class Doc:
    """One document; tokens are its UTF-8 bytes + 1, then eos 0."""

    text: str
    lang: str = "en"
    source: str = "web"
    score: float | None = 0.5
    url: str | None = None

    @property
    def content(self) -> bytes:
        return schema.text_hash(self.text.encode())

    @property
    def tokens(self) -> list[int]:
        return [byte + 1 for byte in self.text.encode()] + [0]


@dataclass(frozen=True)
class Tiny:
    """What a corpus holds. Documents are named by their number in `docs`."""

    docs: list[Doc]
    pairs: list[tuple[int, int]] = field(default_factory=list)
    heldout: list[int] = field(default_factory=list)
    matches: list[int] = field(default_factory=list)
    kept: list[Doc] = field(default_factory=list)  # held-out text of other corpora
    name: str = "tiny"
    translation_group: dict[str, Any] | None = None

    def id(self, number: int) -> str:
        return schema.document_id(self.docs[number].source, self.name, number).hex()

    def numbers(self, ids: np.ndarray) -> list[int]:
        """Documents (V16 ids), ascending."""
        known = {self.id(number): number for number in range(len(self.docs))}
        return sorted(known[i.tobytes().hex()] for i in ids)


def write_corpus(root: Path, tiny: Tiny, shard_rows: int = 100) -> Path:
    write_json(
        root / "corpus.json",
        {
            "format": schema.FORMAT_VERSION,
            "name": tiny.name,
            "settings": {
                "near": {"threshold": 0.8},
                "translation_group": tiny.translation_group,
            },
            "tokenizer": {"hash": TOKENIZER},
            "signals": ["language", "quality"],
            "meta": [],
            "stages": {"tokens": {"fingerprint": "made so", "totals": {}, "seconds": 0.5}},
        },
    )
    for part, first in enumerate(range(0, len(tiny.docs), shard_rows)):
        numbers = range(first, min(first + shard_rows, len(tiny.docs)))
        docs = [tiny.docs[n] for n in numbers]
        name = part_name(part)
        rows = [_row(tiny, number) for number in numbers]
        _write(root / "documents" / name, rows, schema.DOCUMENTS)
        _write(root / "signals/language" / name, [{"lang": d.lang} for d in docs], LANGUAGE)
        _write(root / "signals/quality" / name, [{"score": d.score} for d in docs], QUALITY)
        folded = folded_shingles(pa.array([d.text for d in docs], pa.string()))[2]
        copies = copy_hashes(folded, pa.array([d.url for d in docs], pa.string()))
        _write(root / "copies" / name, copies.to_pylist(), schema.COPIES)
        counts = [{"num_tokens": len(d.tokens), "num_special_literals": 0} for d in docs]
        _write(root / "tokens" / TOKENIZER / "counts" / name, counts, schema.TOKEN_COUNTS)
    write_tokens(root, [doc.tokens for doc in tiny.docs], shard_rows)
    content = [doc.content for doc in tiny.docs]
    pairs = [dict(zip("ab", sorted((content[i], content[j])), strict=True)) for i, j in tiny.pairs]
    _write(root / "pairs" / part_name(0), [p | {"jaccard": 0.9} for p in pairs], schema.PAIRS)
    held = [
        {
            "set": f"{tiny.name}/{doc.lang}/{doc.source}",
            "content_hash": doc.content,
            "language": doc.lang,
            "source": doc.source,
            "text": doc.text,
        }
        for doc in (*(tiny.docs[n] for n in tiny.heldout), *tiny.kept)
    ]
    held.sort(key=lambda row: (row["set"], row["content_hash"]))
    _write(root / "heldout/documents.parquet", held, schema.HELDOUT)
    matches: list[dict[str, Any]] = [{"content_hash": content[n]} for n in tiny.matches]
    path = root / "heldout/matches" / part_name(0)
    _write(path, matches, schema.HELDOUT_MATCHES)
    commit(root, "matches", 0, "made so", [path], {"documents": len(tiny.docs)}, 0.5, 0.5)
    return root


def _row(tiny: Tiny, number: int) -> dict[str, Any]:
    doc = tiny.docs[number]
    return {
        "id": bytes.fromhex(tiny.id(number)),
        "content_hash": doc.content,
        "source": doc.source,
        "url": doc.url,
        "domain": domain(doc.url) if doc.url else None,
        "text": doc.text,
        "num_bytes": len(doc.text.encode()),
        "num_chars": len(doc.text),
    }


def _write(path: Path, rows: list[dict[str, Any]], columns: pa.Schema) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist(rows, columns), path)


def write_tokens(
    root: Path, texts: list[list[int]], shard_rows: int, batch_rows: int = 3
) -> Documents:
    """Token shards of `shard_rows` documents; the id of a document follows from its number."""
    folder = root / "tokens" / TOKENIZER
    policy = {"hash": TOKENIZER, "dtype": "uint16", "vocab_size": VOCAB_SIZE}
    write_json(folder / "policy.json", policy | {"bos_id": None, "eos_id": 0})
    table = schema.tokens(pa.uint16())
    for part, first in enumerate(range(0, len(texts), shard_rows)):
        shard = texts[first : first + shard_rows]
        with pa.ipc.new_file(str(folder / part_name(part, "arrow")), table) as writer:
            for begin in range(0, len(shard), batch_rows):
                ids = pa.array(shard[begin : begin + batch_rows], pa.large_list(pa.uint16()))
                writer.write_batch(pa.record_batch([ids], schema=table))
        made = [folder / part_name(part, "arrow")]
        commit(
            root, f"tokens/{TOKENIZER}", part, "made so", made, {"documents": len(shard)}, 0.5, 0.5
        )
    number = np.arange(len(texts))
    names = [xxhash.xxh3_128_digest(str(n).encode()) for n in number]
    documents = Documents(
        id=np.frombuffer(b"".join(names), "V16"),
        content_hash=np.frombuffer(
            b"".join(xxhash.xxh3_128_digest(np.array(t, np.int64).tobytes()) for t in texts), "V16"
        ),
        part=number // shard_rows,
        row=number % shard_rows,
        num_tokens=np.array([len(text) for text in texts], np.int64),
        num_bytes=np.array([2 * len(text) for text in texts], np.int64),
        edits=np.zeros(len(texts), "V16"),
    )
    return documents.take(np.array(sorted(range(len(texts)), key=names.__getitem__), np.int64))
