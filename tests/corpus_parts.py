"""The documents of a corpus as any parts, for the stages that come after ingest."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from pipeline import schema
from pipeline.files import part_name

ROW_GROUP_ROWS = 7  # small: texts of one part stand in several row groups
LANGUAGE = pa.schema([("lang", pa.string())])


def content(text: str) -> bytes:
    return schema.text_hash(text.encode())


def language(text: str) -> str:
    """By the first character: a function of the text alone, as the real signal is."""
    return "zh" if text[:1] > "\u2fff" else "en"


def write(
    root: Path,
    parts: Iterable[list[str]],
    source: str = "web",
    kind: str | None = None,
    domain: Callable[[str], str | None] = lambda _: None,
    url: Callable[[str], str | None] = lambda _: None,
) -> list[int]:
    """documents/ and signals/language/ of these texts; returns the part numbers."""
    numbers = []
    for part, texts in enumerate(parts):
        rows = [
            {
                "id": schema.document_id(source, f"{part}.jsonl", row),
                "content_hash": content(text),
                "source": source,
                "kind": kind,
                "domain": domain(text),
                "url": url(text),
                "text": text,
                "num_bytes": len(text.encode()),
            }
            for row, text in enumerate(texts)
        ]
        _write(root / "documents" / part_name(part), rows, schema.DOCUMENTS)
        languages = [{"lang": language(text)} for text in texts]
        _write(root / "signals/language" / part_name(part), languages, LANGUAGE)
        numbers.append(part)
    return numbers


def _write(path: Path, rows: list[dict[str, object]], columns: pa.Schema) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    table = pa.Table.from_pylist(rows, columns)
    pq.write_table(table, path, row_group_size=ROW_GROUP_ROWS)
