"""Tokens of edited documents, kept beside the corpus in `edited/<hash of tokens and rules>/`.

A file holds those documents of one part that were missing when a selection asked for them, and is
named by the hash of its own bytes. So nothing is ever rewritten, arms of a study that start at once
do each other no harm, a killed attempt leaves nothing, and a damaged file is not what its name
says: it goes, and its documents are made again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import xxhash

from mixtures.tokens import TokenShards, tokens_fingerprint
from pipeline import schema
from pipeline.added_tokenizers import listed
from pipeline.commits import CHANGED
from pipeline.corpus import CorpusError, manifest
from pipeline.encoder import Encoder
from pipeline.files import hash_once, replacing
from pipeline.fingerprint import fingerprint
from pipeline.finished import home
from pipeline.settings import Tokenizer
from pipeline.tokenizer import load

FOLDER = "edited"


def folder_of(root: Path, tokenizer: str, names: Sequence[str]) -> Path:
    """Where the tokens of documents that these rules edited stand."""
    return home(root) / FOLDER / fingerprint(tokens_fingerprint(root, tokenizer), list(names))


class EditedTokens(TokenShards):
    """As the tokens of a corpus; the row of a document is that of `places`, by its key."""

    def __init__(self, root: Path, tokenizer: str, names: Sequence[str]) -> None:
        super().__init__(root, tokenizer)
        self.tokenizer = tokenizer
        self.folder = folder_of(root, tokenizer, names)

    def made(
        self, part: int, keys: np.ndarray, texts: Callable[[np.ndarray], pa.Array]
    ) -> np.ndarray:
        """Tokens of each of these documents of a part; 0: its text is white space, or nothing.

        Args:
            keys: V16 of each document: of its content and its edits.
            texts: gives the edited texts of some of them, by their numbers; asked for those that
                are not kept yet.
        """
        for path in self._files(part):
            if not _is_whole(path):
                path.unlink(missing_ok=True)
        (missing,) = np.nonzero(self.places(part, keys) < 0)
        if len(missing):
            self._write(part, keys[missing], texts(missing))
        lengths: np.ndarray = self.lengths(part)[self.places(part, keys)]
        return lengths

    def rows(self, part: np.ndarray, keys: np.ndarray) -> np.ndarray:
        """Row of each document, for `gather`.

        Raises:
            CorpusError: they are gone.
        """
        rows = np.zeros(len(part), np.int64)
        for number in np.unique(part).tolist():
            mine = part == number
            rows[mine] = self.places(number, keys[mine])
        if (rows < 0).any():
            raise CorpusError(f"{self.folder}: edited documents went meanwhile; call again")
        return rows

    def places(self, part: int, keys: np.ndarray) -> np.ndarray:
        """Where among the documents of `batches` each stands, int64; -1: it is not there."""
        known = [_read(path)["key"] for path in self._files(part)]
        stored = pa.chunked_array([c for column in known for c in column.chunks], schema.HASH)
        found = pc.fill_null(pc.index_in(_hashes(keys), value_set=stored), -1)
        return np.asarray(found).astype(np.int64)

    def batches(self, part: int) -> list[tuple[np.ndarray, np.ndarray]]:
        ids = [chunk for path in self._files(part) for chunk in _read(path)["ids"].chunks]
        return [(i.offsets.to_numpy(), i.values.to_numpy(zero_copy_only=True)) for i in ids]

    def _files(self, part: int) -> list[Path]:
        return sorted(self.folder.glob(f"part-{part:05d}.*.arrow"))

    def _require_whole(self, part: int) -> None:
        for path in self._files(part):
            if not _is_whole(path):
                raise CorpusError(f"{path} {CHANGED}; call again: it is made again")

    def _document(self, part: int, row: int) -> str:
        return f"edited document {row}"  # rows are those of its files

    def _write(self, part: int, keys: np.ndarray, texts: pa.Array) -> None:
        text = np.array([bool(text.strip()) for text in texts.to_pylist()])
        with ThreadPoolExecutor(1) as thread:  # see pipeline/transforms/tokenize.py
            encode = self._encoder.encode
            ids, offsets, _ = thread.submit(encode, texts.filter(pa.array(text))).result()
        lengths = np.zeros(len(texts), np.int64)
        lengths[text] = np.diff(offsets)
        lists = pa.LargeListArray.from_arrays(np.append(0, np.cumsum(lengths)), pa.array(ids))
        table = schema.edited_tokens(pa.from_numpy_dtype(ids.dtype))
        sink = pa.BufferOutputStream()
        with pa.ipc.new_file(sink, table) as writer:
            writer.write_batch(pa.RecordBatch.from_arrays([_hashes(keys), lists], schema=table))
        data = sink.getvalue()
        path = self.folder / f"part-{part:05d}.{xxhash.xxh3_128_hexdigest(data)}.arrow"
        with replacing(path) as temporary:
            temporary.write_bytes(data)

    @cached_property
    def _encoder(self) -> Encoder:
        """What made the tokens of the corpus."""
        found = manifest(self.root)
        if self.tokenizer != found["tokenizer"]["hash"]:
            (own,) = (a for a in listed(self.root) if a.hash == self.tokenizer)
            return load(own.settings(self.root), own.engine)
        settings = Tokenizer(**found["settings"]["tokenizer"])
        file = self.root / "tokens" / self.tokenizer / "tokenizer.json"
        return load(settings.model_copy(update={"file": str(file)}), found["tokenizer"]["engine"])


def _is_whole(path: Path) -> bool:
    return hash_once(path) == path.name.split(".")[1]


def _read(path: Path) -> pa.Table:
    return pa.ipc.open_file(pa.memory_map(str(path))).read_all()


def _hashes(keys: np.ndarray) -> pa.Array:
    return pa.Array.from_buffers(schema.HASH, len(keys), [None, pa.py_buffer(keys.tobytes())])
