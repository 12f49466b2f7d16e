"""A corpus of eight documents, written by hand as docs/formats.md says: two sources, two parts.

row  source  text                          lang  notes
0.0  web     the cat sat on the mat        en
0.1  web     the cat sat on the mat        en    exact copy of 0.0
0.2  web     the cat sat on a mat          en    near duplicate of 0.0
0.3  web     今天天气很好                  zh
0.4  web     (empty)                       und
1.0  qa      what is held out stays out    en    held out
1.1  qa      what is held out stays out !  en    verified copy of 1.0
1.2  qa      你好，世界 😀                 zh
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from filters.gopher import COLUMNS
from pipeline import schema
from pipeline.files import file_hash, write_json

TEXTS = {
    "web": [
        "the cat sat on the mat",
        "the cat sat on the mat",
        "the cat sat on a mat",
        "今天天气很好",
        "",
    ],
    "qa": ["what is held out stays out", "what is held out stays out !", "你好，世界 😀"],
}
LANGUAGES = {"web": ["en", "en", "en", "zh", "und"], "qa": ["en", "en", "zh"]}
NUM_WORDS = {"web": [6, 6, 6, 6, 0], "qa": [6, 6, 4]}
NUM_TOKENS = {"web": [7, 7, 7, 7, 1], "qa": [7, 8, 5]}
FILES = {"web": "a.jsonl", "qa": "b.jsonl"}
TOKENIZER_HASH = "0123456789abcdef"


def content(text: str) -> bytes:
    return schema.text_hash(text.encode())


def identity(source: str, row: int) -> bytes:
    return schema.document_id(source, FILES[source], row * 100)


def write(root: Path, *, inputs: str = "") -> Path:
    """Write the corpus into the folder `root`; `inputs` is the folder of its input files."""
    for part, (source, texts) in enumerate(TEXTS.items()):
        name = f"part-{part:05d}.parquet"
        _table(root / "documents" / name, [_document(source, i) for i in range(len(texts))])
        commit(root, part)
        languages = [
            {
                "lang": lang,
                "lang_score": 0.9,
                "lang_variant": "",
                "han_share": float(lang == "zh"),
            }
            for lang in LANGUAGES[source]
        ]
        _table(root / "signals/language" / name, languages)
        _table(root / "signals/gopher" / name, [_gopher(n) for n in NUM_WORDS[source]], GOPHER)
        counts = [{"num_tokens": n, "num_special_literals": 0} for n in NUM_TOKENS[source]]
        _table(root / "tokens" / TOKENIZER_HASH / "counts" / name, counts, schema.TOKEN_COUNTS)
    reject = {
        "id": schema.document_id("web", "a.jsonl", 700),
        "source": "web",
        "file": "a.jsonl",
        "offset": 700,
        "num_bytes": 8,
        "stage": "ingest",
        "reason": "bad_json",
        "detail": "expected a value",
        "excerpt": "{broken}",
    }
    _table(root / "rejects/part-00000.parquet", [reject], schema.REJECTS)
    a, b = sorted([content(TEXTS["web"][0]), content(TEXTS["web"][2])])
    _table(root / "pairs/part-00000.parquet", [{"a": a, "b": b, "jaccard": 0.75}], schema.PAIRS)
    clusters = [{"content_hash": h, "cluster": a, "size": 2, "large": False} for h in (a, b)]
    _table(root / "clusters/part-00000.parquet", clusters, schema.CLUSTERS)
    held = content(TEXTS["qa"][0])
    heldout = {
        "set": "tiny/en/qa",
        "content_hash": held,
        "language": "en",
        "source": "qa",
        "text": TEXTS["qa"][0],
    }
    _table(root / "heldout/documents.parquet", [heldout], schema.HELDOUT)
    match = {
        "content_hash": content(TEXTS["qa"][1]),
        "heldout": held,
        "jaccard": 0.9,
        "containment": 1.0,
    }
    _table(root / "heldout/matches/part-00001.parquet", [match], schema.HELDOUT_MATCHES)
    write_json(root / "corpus.json", manifest(inputs))
    return root


def commit(root: Path, part: int) -> None:
    """The commit record of a part of the documents as they stand."""
    name = f"documents/part-{part:05d}.parquet"
    output = {"bytes": (root / name).stat().st_size, "xxh3": file_hash(root / name)}
    found = {
        "stage": "ingest",
        "part": part,
        "fingerprint": "",
        "counters": {},
        "outputs": {name: output},
        "seconds": 0.5,
        "cpu_seconds": 0.25,
    }
    write_json(root / f"stats/ingest/part-{part:05d}.json", found)


def manifest(inputs: str = "") -> dict[str, Any]:
    return {
        "format": schema.FORMAT_VERSION,
        "name": "tiny",
        "settings": {
            "inputs": [
                {"source": source, "files": f"{inputs}/{file}", "kind": "web"}
                for source, file in FILES.items()
            ],
            "languages": ["zh", "en"],
            "extractor": "resiliparse",
            "near": {"threshold": 0.7},
            "tokenizer": {"file": "tokenizer.json"},
        },
        "tokenizer": {
            "hash": TOKENIZER_HASH,
            "dtype": "uint16",
            "vocab_size": 8000,
            "bos_id": None,
            "eos_id": 0,
        },
        "signals": ["language", "gopher"],
        "meta": ["author"],
        "stages": {"ingest": {"fingerprint": "f1", "totals": {"documents": 8}, "seconds": 1.5}},
        "finished": True,
    }


GOPHER = pa.schema([(name, signal.type) for name, signal in COLUMNS.items()])


def _gopher(num_words: int) -> dict[str, Any]:
    return dict.fromkeys(COLUMNS, 0) | {"num_words": num_words, "mean_word_length": 4.0}


def _document(source: str, row: int) -> dict[str, Any]:
    text = TEXTS[source][row]
    return {
        "id": identity(source, row),
        "content_hash": content(text),
        "source": source,
        "source_id": f"{source}-{row}",
        "kind": "web",
        "file": FILES[source],
        "offset": row * 100,
        "url": f"https://example.org/{source}/{row}",
        "text": text,
        "num_bytes": len(text.encode()),
        "num_chars": len(text),
        "meta": [("author", "李")] if row == 0 else [],
    }


def _table(path: Path, rows: list[dict[str, Any]], columns: pa.Schema | None = None) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.parent.name == "documents":
        columns = schema.DOCUMENTS
    pq.write_table(pa.Table.from_pylist(rows, columns), path)
