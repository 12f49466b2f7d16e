"""A row of JSONL or Parquet to a `Record` or a `Bad`: the checks that both share."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any
from urllib.parse import urlsplit

from pipeline.readers import Bad, Record, excerpt
from pipeline.settings import Input

# An address whose host needs no look: a twentieth of the time.
_PLAIN_URL = re.compile(r"https?://([a-z0-9-]+(?:\.[a-z0-9-]+)*)(?:[/?#]|\Z)")


def from_row(row: Mapping[str, Any], offset: int, num_bytes: int, source: Input) -> Record | Bad:
    """Check the text field of `row` and take the id, the address and the kept fields along."""
    try:
        text = row.get(source.text)
        if not isinstance(text, str):
            return _without_text(row, offset, num_bytes, source)
        fields: dict[str, Any] = {}
        own_id, url = row.get(source.id), row.get(source.url)
        if own_id is not None:
            fields["source_id"] = as_text(own_id)
        if isinstance(url, str) and url.strip():
            fields["url"] = as_text(url)
            fields["domain"] = domain(url)
        if source.keep:
            fields["meta"] = {k: as_text(row[k]) for k in source.keep if row.get(k) is not None}
        return Record(offset, num_bytes, text, fields)
    except RecursionError:  # orjson reads 1,024 levels, more than Python writes
        return Bad(offset, num_bytes, "bad_json", "a field is nested too deeply to be kept")


def _without_text(row: Mapping[str, Any], offset: int, num_bytes: int, source: Input) -> Bad:
    if source.text not in row:
        detail = f"no field {source.text!r}; the record has {', '.join(map(repr, row)) or 'none'}"
        return Bad(offset, num_bytes, "missing_text", detail, excerpt(as_text(dict(row))))
    text = row[source.text]
    if text is None:
        detail = f"field {source.text!r} is null"
        return Bad(offset, num_bytes, "null_text", detail, excerpt(as_text(dict(row))))
    detail = f"field {source.text!r} is {type(text).__name__}, not a string"
    return Bad(offset, num_bytes, "bad_text_type", detail, excerpt(as_text(text)))


def as_text(value: Any) -> str:
    """A string as it is (lone surrogates as `?`), anything else as compact JSON."""
    if not isinstance(value, str):
        value = json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)
    text: str = value
    if text.isascii():  # most ids and addresses: a tenth of the time
        return text
    return text.encode("utf-8", "replace").decode()


@lru_cache(maxsize=1)  # documents of one page or file often follow each other
def domain(url: str) -> str | None:
    """The host of an address, lower case, without port and final dot."""
    if plain := _PLAIN_URL.match(url):
        return plain[1]
    try:
        host = urlsplit(url.strip()).hostname
    except ValueError:  # brackets that hold no IPv6 address
        return None
    return as_text(host.rstrip(".")) if host else None
