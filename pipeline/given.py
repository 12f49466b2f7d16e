"""Held-out text that the user gives: corpora whose sets are kept, files of evaluation text."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from filters import language, normalize
from filters.segments import Texts
from pipeline import schema, store
from pipeline.amounts import counted
from pipeline.config import ConfigError
from pipeline.objects import is_url
from pipeline.readers import Bad, Piece
from pipeline.readers.files import file_size, file_version, list_files
from pipeline.readers.formats import read
from pipeline.settings import Input

if TYPE_CHECKING:
    from pipeline.heldout_settings import Heldout

Rows = list[dict[str, Any]]
READ = Input(source="independent", files="", kind="web")  # how the files are read


def kept_folders(heldout: Heldout) -> list[Path]:
    """The corpora of `heldout.keep`, a heldout.json each; of a corpus on a store its URL."""
    name = "/heldout.json"
    return [
        store.folder(path.removesuffix(name)) if is_url(path) else Path(path).parent
        for path in heldout.keep
    ]


def independent_version(heldout: Heldout) -> list[tuple[str, int, str]]:
    """File, bytes and state of each file of `heldout.independent`: part of the fingerprint."""
    files = [path for pattern in heldout.independent for path, _ in list_files(pattern)]
    return [(path, file_size(path), file_version(path)) for path in files]


def independent(heldout: Heldout, root: Path) -> tuple[pa.Table, Rows]:
    """Documents of `heldout.independent`, one set a file named by its stem; and what was rejected.

    Args:
        root: the corpus: there is room for what must be unpacked.

    Raises:
        ConfigError: no record of a file is text.
    """
    rows: Rows = []
    rejected: Rows = []
    for pattern in heldout.independent:
        for path, file in list_files(pattern):
            texts, bad = _texts(Piece(path, file, room=str(root)))
            if not texts:
                reasons = sorted({row["reason"] for row in bad})
                raise ConfigError(
                    f"key `heldout.independent`: {counted(len(bad), 'record')} in {path}, none of "
                    f"them text; reasons: {', '.join(reasons) or 'an empty file'}; the text is "
                    f"expected in the field {READ.text!r}"
                )
            rejected += bad
            stem = Path(file).name.split(".")[0]
            measured = language.measure(Texts(pa.array(texts, pa.string())), {})
            for text, lang in zip(texts, pa.array(measured["lang"]).to_pylist(), strict=True):
                rows.append(
                    {
                        "set": f"independent/{stem}",
                        "content_hash": schema.text_hash(text.encode()),
                        "language": lang,
                        "source": stem,
                        "text": text,
                    }
                )
    return pa.Table.from_pylist(rows, schema.HELDOUT), rejected


def _texts(piece: Piece) -> tuple[list[str], Rows]:
    texts = []
    rejected = []
    for record in read(piece, READ, ""):
        if isinstance(record, Bad):
            bad = record
        else:
            text = normalize.normalize(record.text)[0]
            if text.strip():
                texts.append(text)
                continue
            bad = Bad(record.offset, record.num_bytes, "empty", "no text but white space")
        rejected.append(
            {
                "file": piece.file,
                "offset": bad.offset,
                "reason": bad.reason,
                "detail": bad.detail,
            }
        )
    return texts, rejected
