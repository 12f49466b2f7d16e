"""Documents to windows: the packed side of a selection, made once and shared by all mixtures.

`dealing` puts the documents into parts, `layout` says how those of a part lie in its windows; here
parts are written. Every token is accounted for:

    tokens in = tokens out + remainder

A window has `sequence_length + 1` ids; where it continues a document, its first id is the last of
the window before and is counted once. Where nothing stands, ids are those of the end of a document
and belong to document PADDING, of which the loader makes no target.

Memory: the ids of one part and its documents; the tokens of the corpus are memory-mapped.
"""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Collection, Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from mixtures.dealing import Documents, deal, order_hash, selection_hash, units
from mixtures.edited_tokens import EditedTokens
from mixtures.layout import PADDING, Layout, lay_out, measured, ordered
from mixtures.packed import DOCUMENTS, Loss, Packed, Packing, folder_of, parts_of, read_packed
from mixtures.tokens import TokenShards
from pipeline import finished, schema
from pipeline.files import file_hash, part_name, read_sealed, replacing, write_sealed
from pipeline.tables import write_batch

WINDOWS_PER_BATCH = 256
Shards = tuple[
    TokenShards, EditedTokens | None
]  # of documents as they came, and as edits left them


def measure(documents: Documents, packing: Packing) -> Packed:
    """What packing will give, without packing."""
    return _measure(documents, deal(documents, packing), packing)


def _measure(documents: Documents, parts: list[Documents], packing: Packing) -> Packed:
    windows, tokens_out, loss = [], 0, Loss()
    for part in parts:
        row = in_a_row(part, packing)
        layout = layout_of(row, packing)
        out, lost = measured(layout, row.num_tokens, packing.sequence_length + 1)
        windows.append(layout.num_windows)
        tokens_out, loss = tokens_out + out, loss + lost
    tokens_in = int(documents.num_tokens.sum())
    return Packed(
        selection=selection_hash(documents, packing),
        packing=packing,
        num_documents=len(documents),
        tokens_in=tokens_in,
        tokens_out=tokens_out,
        remainder=tokens_in - tokens_out,
        windows=tuple(windows),
        loss=loss,
        order=order_hash(documents, packing),
    )


def in_a_row(part: Documents, packing: Packing) -> Documents:
    """The documents of a part in the order of its row of ids; an empty one has no place in it."""
    part = part.take(np.flatnonzero(part.num_tokens))
    sizes = units(part)
    firsts = np.cumsum(sizes) - sizes
    tokens = np.add.reduceat(part.num_tokens, firsts) if len(part) else part.num_tokens
    order = ordered(packing.policy, tokens)
    starts = np.repeat(firsts[order], sizes[order])
    inside = np.arange(len(part)) - np.repeat(np.cumsum(sizes[order]) - sizes[order], sizes[order])
    return part.take(starts + inside)


def layout_of(row: Documents, packing: Packing) -> Layout:
    return lay_out(packing.policy, row.num_tokens, units(row), packing.sequence_length)


def pack(
    root: Path,
    documents: Documents,
    packing: Packing,
    state: finished.State = None,
    edits: Sequence[str] = (),
    wanted: Collection[int] | None = None,
) -> Packed:
    """Write `packed/<selection hash>` of the corpus at `root`, unless it stands; what stands stays.

    Args:
        state: of the corpus when it was asked where the documents stand.
        edits: the rules whose edits were made.
        wanted: parts that a run reads; None: all.

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
        stands = (folder / "manifest.json").exists()
        known = read_packed(folder) if stands else packed
        missing = sorted(set(range(len(parts)) if wanted is None else wanted) - parts_of(folder))
        if stands and not missing:
            return known
        shutil.rmtree(attempt, ignore_errors=True)  # of a killed process
        try:
            with finished.unchanged(root, state):
                shards = TokenShards(root, packing.tokenizer)
                edited = EditedTokens(root, packing.tokenizer, edits) if edits else None
                place = folder if stands else attempt
                new = _write(place, {n: parts[n] for n in missing}, packed, (shards, edited))
                if not stands:
                    _write_documents(attempt / DOCUMENTS, parts)
                    new.append(DOCUMENTS)
                _seal(place, packed, new)
            if not stands:
                os.rename(attempt, folder)
        finally:
            shutil.rmtree(attempt, ignore_errors=True)
    return known


def _write(folder: Path, parts: dict[int, Documents], packed: Packed, shards: Shards) -> list[str]:
    """Returns the names of the files."""
    folder.mkdir(exist_ok=True)
    names = {number: part_name(number, "arrow") for number in parts}
    for number, part in parts.items():
        with replacing(folder / names[number]) as temporary:
            num = write_part(temporary, part, shards, packed.packing)
        assert num == packed.windows[number], (num, packed.windows[number])
    return list(names.values())


def _seal(folder: Path, packed: Packed, new: Sequence[str]) -> None:
    """The manifest, with the files that are new; until then a part that was added is not there, and
    is written again after a kill."""
    path = folder / "manifest.json"
    known = read_sealed(path) or asdict(packed) | {"files": {}}
    for name in sorted(new):
        file = folder / name
        known["files"][name] = {"bytes": file.stat().st_size, "xxh3": file_hash(file)}
    write_sealed(path, known)


def _write_documents(path: Path, parts: list[Documents]) -> None:
    """What is packed, ordered by id: what is left of it when some are forgotten has a hash too."""
    columns = []
    known = schema.selected(parts[0].group is not None)
    for field in known:
        values = np.concatenate([getattr(part, field.name) for part in parts])
        columns.append(pa.array(values) if field.name == "rank" else _hashes(values))
    table = pa.RecordBatch.from_arrays(columns, schema=known)
    write_batch(path, table.take(pc.sort_indices(table["id"])))


def write_part(path: Path, part: Documents, shards: Shards, packing: Packing) -> int:
    """Write the windows of one part; returns their number."""
    row = in_a_row(part, packing)
    layout = layout_of(row, packing)
    ids = row_of_ids(row, *shards)
    length, end_id = packing.sequence_length, shards[0].eos_id or 0
    follows = None if row.group is None else _follows(layout, units(row))
    kind = schema.windows(pa.from_numpy_dtype(ids.dtype), length, follows is not None)
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, kind) as writer:
        for first in range(0, layout.num_windows, WINDOWS_PER_BATCH):
            windows = range(first, min(first + WINDOWS_PER_BATCH, layout.num_windows))
            batch = _window_batch(ids, row.id, layout, windows, length + 1, end_id)
            if follows is not None:
                lists, (begin, end) = batch[1].offsets, _pieces(layout, windows)
                batch.append(pa.ListArray.from_arrays(lists, pa.array(follows[begin:end])))
            writer.write_batch(pa.record_batch(batch, schema=kind))
    return layout.num_windows


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


def _follows(layout: Layout, sizes: np.ndarray) -> np.ndarray:
    """bool: which documents of windows are of the unit of the one before, of documents in units."""
    real = layout.document != PADDING
    unit = np.repeat(np.arange(len(sizes)), sizes)
    unit = np.where(real, unit[layout.document], PADDING)
    before = np.append(PADDING, unit[:-1])
    follows: np.ndarray = real & (layout.place > 0) & (unit == before)
    return follows


def _pieces(layout: Layout, windows: range) -> tuple[int, int]:
    """Where in the layout these windows stand."""
    begin, end = np.searchsorted(layout.window, [windows.start, windows.stop]).tolist()
    return begin, end


def _window_batch(
    ids: np.ndarray, names: np.ndarray, layout: Layout, windows: range, width: int, end_id: int
) -> list[pa.Array]:
    """The first columns of schema.windows for consecutive windows of a part."""
    from kernels.ranges import copy_ranges  # loads numba: 0.5 s, to pack alone

    mine = slice(*_pieces(layout, windows))
    window, document = layout.window[mine] - windows.start, layout.document[mine]
    begin, place, real = layout.begin[mine], layout.place[mine], document != PADDING
    flat = np.full(len(windows) * width, end_id, ids.dtype)
    ends = begin + layout.length[mine]
    copy_ranges(ids, begin[real], ends[real], flat, (window * width + place)[real])
    named = np.zeros(len(document), "V16")
    named[real] = names[document[real]]
    offsets = np.searchsorted(window, np.arange(len(windows) + 1))
    lists = pa.array(offsets.astype(np.int32))
    return [
        pa.FixedSizeListArray.from_arrays(pa.array(flat), width),
        pa.ListArray.from_arrays(lists, pa.array(place.astype(np.int32))),
        pa.ListArray.from_arrays(lists, _hashes(named)),
    ]


def _hashes(values: np.ndarray) -> pa.Array:
    return pa.Array.from_buffers(schema.HASH, len(values), [None, pa.py_buffer(values.tobytes())])
