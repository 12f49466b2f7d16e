"""A reject, read again from its file and offset, as it lies there.

Undecodable bytes become U+FFFD, a row of Parquet is JSON.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pipeline.corpus import CorpusError, manifest
from pipeline.readers import parquet
from pipeline.readers.files import list_files
from pipeline.readers.formats import format_of
from pipeline.readers.streams import BrokenStream, chunks


def read_again(root: Path, reject: dict[str, Any]) -> str:
    """The record that a row of `rejects` speaks of; its excerpt where it cannot be read.

    Raises:
        CorpusError: its file is no longer among the inputs.
    """
    settings = manifest(root)["settings"]
    files = [i["files"] for i in settings["inputs"] if i["source"] == reject["source"]]
    paths = {file: path for pattern in files for path, file in list_files(pattern)}
    if reject["file"] not in paths:
        raise CorpusError(
            f"{root}: reject {reject['id']} came from {reject['file']} of source "
            f"{reject['source']}, which is no longer among the inputs; put the file back"
        )
    path = paths[reject["file"]]
    if format_of(reject["file"]) == "parquet":
        raw = parquet.row_text(path, reject["offset"])
    else:
        raw = _bytes_at(path, reject["offset"], reject["num_bytes"]).decode(errors="replace")
    return str(raw or reject["excerpt"] or "")


def _bytes_at(path: str, offset: int, num_bytes: int) -> bytes:
    """A range of the uncompressed stream; what there is of it where the stream is broken."""
    found = bytearray()
    position = 0
    try:
        for chunk in chunks(path):
            found += chunk[max(offset - position, 0) : max(offset + num_bytes - position, 0)]
            position += len(chunk)
            if position >= offset + num_bytes:
                break
    except BrokenStream:
        pass
    return bytes(found)
