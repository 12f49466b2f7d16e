"""A row of JSONL or Parquet to a `Record` or a `Bad`: the checks that both share."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any
from urllib.parse import urlsplit

from pipeline.readers import Bad, Record, excerpt
from pipeline.settings import Input


def from_row(row: Mapping[str, Any], offset: int, num_bytes: int, source: Input) -> Record | Bad:
    """Check the text field of `row` and take the id, the address and the kept fields along."""
    try:
        return _from_row(row, offset, num_bytes, source)
    except RecursionError:  # orjson reads 1,024 levels, more than Python writes
        return Bad(offset, num_bytes, "bad_json", "a field is nested too deeply to be kept")


def _from_row(row: Mapping[str, Any], offset: int, num_bytes: int, source: Input) -> Record | Bad:
    if source.text not in row:
        detail = f"no field {source.text!r}; the record has {', '.join(map(repr, row)) or 'none'}"
        return Bad(offset, num_bytes, "missing_text", detail, excerpt(as_text(dict(row))))
    text = row[source.text]
    if text is None:
        detail = f"field {source.text!r} is null"
        return Bad(offset, num_bytes, "null_text", detail, excerpt(as_text(dict(row))))
    if not isinstance(text, str):
        detail = f"field {source.text!r} is {type(text).__name__}, not a string"
        return Bad(offset, num_bytes, "bad_text_type", detail, excerpt(as_text(text)))
    fields: dict[str, Any] = {}
    if row.get(source.id) is not None:
        fields["source_id"] = as_text(row[source.id])
    if isinstance(row.get(source.url), str) and row[source.url].strip():
        fields["url"] = as_text(row[source.url])
        fields["domain"] = domain(row[source.url])
    if source.keep:
        fields["meta"] = {k: as_text(row[k]) for k in source.keep if row.get(k) is not None}
    return Record(offset, num_bytes, text, fields)


def as_text(value: Any) -> str:
    """A string as it is (lone surrogates as `?`), anything else as compact JSON."""
    if not isinstance(value, str):
        value = json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)
    return str(value).encode("utf-8", "replace").decode()


@lru_cache(maxsize=1)  # documents of one page or file often follow each other
def domain(url: str) -> str | None:
    """The host of an address, lower case, without port and final dot."""
    try:
        host = urlsplit(url.strip()).hostname
    except ValueError:  # brackets that hold no IPv6 address
        return None
    return as_text(host.rstrip(".")) if host else None
