"""A reject, read again from its file and offset, as it lies there.

Undecodable bytes become U+FFFD, a row of Parquet is JSON.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pipeline.corpus import CorpusError, manifest
from pipeline.readers.files import list_files
from pipeline.readers.formats import READERS, format_of


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
    raw = READERS[format_of(reject["file"])].raw
    if raw is None or reject["offset"] < 0:  # it speaks of no record
        return str(reject["excerpt"] or "")
    found = raw(paths[reject["file"]], reject["offset"], reject["num_bytes"])
    return str(found or reject["excerpt"] or "")
