"""Documents to windows: the packed side of a selection, made once and shared by all mixtures.

The documents of a selection are ordered by hash(seed, id) and dealt into parts, each a range of
that order. So they are shuffled before packing, a prefix of a part is a fair sample, a smaller
sample lies within a larger one, and the bytes do not depend on how the corpus was sharded.

A part is one row of ids, cut into windows of `sequence_length + 1`; the last id of a window is the
first of the next and is counted once. What is left at the end of a part is counted as remainder:

    tokens in = tokens out + remainder

It buys random access and no padding; it costs documents cut at window borders. Memory: the ids of
one part and their document table; the tokens of the corpus are memory-mapped.
"""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import xxhash

from mixtures.edited_tokens import EditedTokens
from mixtures.packed import DOCUMENTS, Packed, Packing, folder_of, read_packed
from mixtures.tokens import TokenShards
from pipeline import finished, schema
from pipeline.files import file_hash, part_name, replacing, write_sealed
from pipeline.tables import write_batch

# Version of the rules of this file: part of the hash, so a change packs anew. 2: only of token
# shards whose bytes are those that were written; what was packed before may hold damage.
POLICY = 2
WINDOWS_PER_BATCH = 256
Shards = tuple[
    TokenShards, EditedTokens | None
]  # of documents as they came, and as edits left them


@dataclass(frozen=True)
class Documents:
    """The selected documents of one source: columns of equal length, ordered by id. One that is
    repeated stands several times."""

    id: np.ndarray  # V16
    content_hash: np.ndarray  # V16
    part: np.ndarray  # int64: shard of the corpus
    row: np.ndarray  # int64: row in that shard
    num_tokens: np.ndarray  # int64
    num_bytes: np.ndarray  # int64
    edits: np.ndarray  # V16: of content and edits where edits are made, else zeros: see edited.py

    def __len__(self) -> int:
        return len(self.id)

    @property
    def is_edited(self) -> np.ndarray:
        """bool: of which the edited text counts."""
        return np.asarray(self.edits.view(np.uint64).reshape(-1, 2).any(axis=1))

    def take(self, index: np.ndarray) -> Documents:
        return Documents(**{name: column[index] for name, column in vars(self).items()})


def selection_hash(documents: Documents, packing: Packing) -> str:
    """32 hex digits over the selected documents and all that decides their windows.

    The predicate is not part of it: two predicates that select the same documents share a folder.
    The content hash is, because an id names a place in a file, whose text may have changed.
    """
    digest = xxhash.xxh3_128(repr((POLICY, asdict(packing))).encode())
    digest.update(documents.id.tobytes())
    digest.update(documents.content_hash.tobytes())
    if documents.is_edited.any():
        digest.update(documents.edits.tobytes())
    return str(digest.hexdigest())


def deal(documents: Documents, packing: Packing) -> list[Documents]:
    """The documents of each part, in packing order.

    The number of parts follows from the number of tokens; at most about `part_tokens` a part.
    """
    digest, seed = xxhash.xxh3_64_intdigest, packing.seed
    ids, turns = documents.id.tobytes(), _turns(documents.id).tolist()
    key = np.fromiter(
        (
            digest(ids[16 * at : 16 * at + 16] + (b"%d" % turn if turn else b""), seed)
            for at, turn in enumerate(turns)
        ),
        dtype=np.uint64,
        count=len(documents),
    )
    order = np.argsort(key, kind="stable")  # ties, at 2**-64 a pair, stay in the order of ids
    num_parts = max(1, -(-int(documents.num_tokens.sum()) // packing.part_tokens))
    borders = [(part << 64) // num_parts for part in range(1, num_parts)]
    cuts = np.searchsorted(key[order], np.array(borders, dtype=np.uint64))
    return [documents.take(index) for index in np.split(order, cuts)]


def _turns(ids: np.ndarray) -> np.ndarray:
    """Of each of the ordered `ids` how often it stood before."""
    names = ids.view("S16")  # V16 does not compare
    is_new = np.append(True, names[1:] != names[:-1])[: len(names)]
    firsts = np.flatnonzero(is_new)
    return np.arange(len(names)) - np.repeat(firsts, np.diff(np.append(firsts, len(names))))


def num_windows(num_tokens: int, sequence_length: int) -> int:
    """Windows of a part: each consumes `sequence_length` ids, and the last one needs one more."""
    return max(0, num_tokens - 1) // sequence_length


def measure(documents: Documents, packing: Packing) -> Packed:
    """What packing will give, without packing."""
    return _measure(documents, deal(documents, packing), packing)


def _measure(documents: Documents, parts: list[Documents], packing: Packing) -> Packed:
    length = packing.sequence_length
    tokens = [int(part.num_tokens.sum()) for part in parts]
    windows = tuple(num_windows(num, length) for num in tokens)
    tokens_out = sum(num * length + 1 for num in windows if num)
    return Packed(
        selection=selection_hash(documents, packing),
        packing=packing,
        num_documents=len(documents),
        tokens_in=sum(tokens),
        tokens_out=tokens_out,
        remainder=sum(tokens) - tokens_out,
        windows=windows,
    )


def pack(
    root: Path,
    documents: Documents,
    packing: Packing,
    state: finished.State = None,
    edits: Sequence[str] = (),
) -> Packed:
    """Write `packed/<selection hash>` of the corpus at `root`, unless it stands.

    Args:
        state: of the corpus when it was asked where the documents stand.
        edits: the rules whose edits were made.

    Raises:
        ChangedError: it is in another one.
        CorpusError: a token shard is damaged.
        ValueError: a token id that the tokenizer does not have; names shard, row and remedy. Or
            what stands is not what was written.
    """
    parts = deal(documents, packing)
    packed = _measure(documents, parts, packing)
    folder = folder_of(root, packed.selection)
    attempt = folder.with_name(f".{folder.name}.attempt")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with open(folder.parent / ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # arms of a study may start at once: one packs, all share
        if (folder / "manifest.json").exists():
            return read_packed(folder)
        shutil.rmtree(attempt, ignore_errors=True)  # of a killed process
        try:
            with finished.unchanged(root, state):
                shards = TokenShards(root, packing.tokenizer)
                edited = EditedTokens(root, packing.tokenizer, edits) if edits else None
                _write(attempt, parts, packed, (shards, edited))
            os.rename(attempt, folder)
        finally:
            shutil.rmtree(attempt, ignore_errors=True)
    return packed


def _write(folder: Path, parts: list[Documents], packed: Packed, shards: Shards) -> None:
    folder.mkdir()
    for number, part in enumerate(parts):
        with replacing(folder / part_name(number, "arrow")) as temporary:
            num = write_part(temporary, part, shards, packed.packing)
        assert num == packed.windows[number], (num, packed.windows[number])
    _write_documents(folder / DOCUMENTS, parts)
    files = {
        path.name: {"bytes": path.stat().st_size, "xxh3": file_hash(path)}
        for path in sorted(folder.glob("*.arrow"))
    }
    write_sealed(folder / "manifest.json", asdict(packed) | {"files": files})


def _write_documents(path: Path, parts: list[Documents]) -> None:
    """What is packed, ordered by id: what is left of it when some are forgotten has a hash too."""
    columns = []
    for name in schema.SELECTED.names:
        values = np.concatenate([getattr(part, name) for part in parts])
        columns.append(
            pa.Array.from_buffers(schema.HASH, len(values), [None, pa.py_buffer(values.tobytes())])
        )
    table = pa.RecordBatch.from_arrays(columns, schema=schema.SELECTED)
    write_batch(path, table.take(pc.sort_indices(table["id"])))


def write_part(path: Path, part: Documents, shards: Shards, packing: Packing) -> int:
    """Write the windows of one part; returns their number."""
    part = part.take(np.flatnonzero(part.num_tokens))  # an empty document has no place in a row
    ends = np.cumsum(part.num_tokens)
    begins = ends - part.num_tokens
    ids = row_of_ids(part, *shards)
    windows_schema = schema.windows(pa.from_numpy_dtype(ids.dtype), packing.sequence_length)
    num = num_windows(len(ids), packing.sequence_length)
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, windows_schema) as writer:
        for first in range(0, num, WINDOWS_PER_BATCH):
            windows = np.arange(first, min(first + WINDOWS_PER_BATCH, num))
            batch = _window_batch(ids, begins, part.id, windows, packing.sequence_length)
            writer.write_batch(pa.record_batch(batch, schema=windows_schema))
    return num


def row_of_ids(part: Documents, shards: TokenShards, edited: EditedTokens | None) -> np.ndarray:
    """The ids of these documents, one behind the other."""
    begins = np.cumsum(part.num_tokens) - part.num_tokens
    ids = np.zeros(int(part.num_tokens.sum()), shards.dtype)
    is_edited = part.is_edited
    plain = part.take(~is_edited)
    shards.gather(plain.part, plain.row, plain.num_tokens, begins[~is_edited], ids)
    if edited is not None:
        other = part.take(is_edited)
        rows = edited.rows(other.part, other.edits)
        edited.gather(other.part, rows, other.num_tokens, begins[is_edited], ids)
    return ids


def _window_batch(
    ids: np.ndarray, begins: np.ndarray, names: np.ndarray, windows: np.ndarray, length: int
) -> list[pa.Array]:
    """The columns of schema.windows for consecutive windows of a part."""
    at = windows * length
    row = ids[at[0] : at[-1] + length + 1]
    view = np.lib.stride_tricks.sliding_window_view(row, length + 1)[::length]
    flat = pa.array(np.ascontiguousarray(view).reshape(-1))

    # documents of window w: from the one that holds its first id to the one that holds its last
    first = np.searchsorted(begins, at, side="right") - 1
    counts = np.searchsorted(begins, at + length, side="right") - first
    offsets = np.concatenate([[0], np.cumsum(counts)])
    document = np.arange(offsets[-1]) + np.repeat(first - offsets[:-1], counts)
    starts = np.maximum(begins[document] - np.repeat(at, counts), 0)
    lists = pa.array(offsets.astype(np.int32))
    hashes = pa.Array.from_buffers(
        schema.HASH, len(document), [None, pa.py_buffer(names[document].tobytes())]
    )
    return [
        pa.FixedSizeListArray.from_arrays(flat, length + 1),
        pa.ListArray.from_arrays(lists, pa.array(starts.astype(np.int32))),
        pa.ListArray.from_arrays(lists, hashes),
    ]
