"""Packed windows without what a corpus was told to forget, in place: same windows, same order.

Every id of a forgotten document becomes that of the end of a document, and the manifest names the
document: the loader gives each of these positions a document of its own, so that nothing looks at
it and nothing is predicted from it or at it (the mask of the trainer, with no second kind). Starts,
names and number of ids stay, so a step, a checkpoint and a plan mean what they meant, and it can
still be told which step saw what.

A mixture selects fewer documents from now on. `stands_for` of the manifest holds the hash of what
is left of its selection, so that a plan of the same mixture finds these windows and a run goes on
where it was (packed.py). `fingerprints` are those of the bytes, the first ones first.

The manifest is written before each file takes its place, with the hash of what stands and of what
comes, so a kill leaves a folder that is whole; the next call goes on.

A folder that is not as it was written is refused before anything in it is masked: what its files
hold cannot be told, and the text may stand in it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import xxhash

from mixtures.dealing import Documents, selection_hash
from mixtures.packed import DOCUMENTS, Packing, packing_held, require_whole
from pipeline.files import file_hash, read_sealed, replacing, write_sealed


@dataclass(frozen=True)
class Masked:
    """A packed selection of which documents were forgotten."""

    selection: str  # hash; names the folder
    documents: list[str]  # of it, these (hex ids)
    fingerprints: list[str]  # of its bytes, before and after
    stands_for: list[str]  # selections that are what is left of it


def mask(root: Path, ids: pa.Array) -> list[Masked]:
    """Mask these documents in all packed selections of a corpus; returns those that hold one.

    Call it while holding the corpus, and again if it was killed.

    Raises:
        ValueError: a packed folder is not as it was written; names the file and the remedy.
    """
    found = []
    with packing_held(root):
        for path in sorted((root / "packed").glob("[!.]*/manifest.json")):
            masked = _mask(root, path.parent, ids)
            if masked is not None:
                found.append(masked)
    return found


def _mask(root: Path, folder: Path, ids: pa.Array) -> Masked | None:
    # A damaged part may hide a document, and its new hash would say that it is whole
    known = require_whole(folder)
    packing = Packing(**known["packing"])
    windows = []
    for path in sorted(folder.glob("part-*.arrow")):
        if path.name not in known["files"]:
            path.unlink()  # of a killed process: it was never sealed, and holds text
        elif _holds(path, ids):
            windows.append(path)
    listed = folder / DOCUMENTS
    if listed.exists():
        selected = pa.ipc.open_file(pa.memory_map(str(listed))).read_all()
        mine = selected.filter(pc.is_in(selected["id"], value_set=ids))["id"].to_pylist()
    else:  # packed by an earlier version, which did not say what it selected
        selected, mine = None, sorted({name for path in windows for name in _held(path, ids)})
    if not mine:
        return None
    known.setdefault("fingerprints", [_fingerprint(known["files"])])
    known["forgotten"] = sorted({*known.get("forgotten", ()), *(name.hex() for name in mine)})
    if selected is not None:
        left = selection_hash(_left(selected, known["forgotten"]), packing)
        known["stands_for"] = sorted({*known.get("stands_for", ()), left})
    policy = read_sealed(root / "tokens" / packing.tokenizer / "policy.json") or {}
    for path in windows:
        with replacing(path) as temporary:
            _write(path, temporary, ids, policy.get("eos_id") or 0)
            entry, after = known["files"][path.name], file_hash(temporary)
            if entry["xxh3"] != after:
                entry |= {"xxh3": after, "before": entry["xxh3"]}
            write_sealed(folder / "manifest.json", known)
    for entry in known["files"].values():
        entry.pop("before", None)
    if _fingerprint(known["files"]) != known["fingerprints"][-1]:
        known["fingerprints"].append(_fingerprint(known["files"]))
    write_sealed(folder / "manifest.json", known)
    return Masked(
        selection=known["selection"],
        documents=sorted(name.hex() for name in mine),
        fingerprints=known["fingerprints"],
        stands_for=known.get("stands_for", []),
    )


def _left(selected: pa.Table, forgotten: list[str]) -> Documents:
    """The selected documents without the forgotten ones, as far as `selection_hash` reads them."""
    gone = pa.array([bytes.fromhex(name) for name in forgotten], selected["id"].type)
    left = selected.filter(pc.invert(pc.is_in(selected["id"], value_set=gone)))
    columns = {
        name: np.frombuffer(b"".join(left[name].to_pylist()), "V16")
        for name in ("id", "content_hash", "edits", "group")
        if name in left.column_names
    }
    if "rank" in left.column_names:
        columns["rank"] = np.asarray(left["rank"])
    nothing = np.zeros(len(left), np.int64)
    return Documents(**columns, part=nothing, row=nothing, num_tokens=nothing, num_bytes=nothing)


def _fingerprint(files: dict[str, Any]) -> str:
    hashes = sorted((name, entry["xxh3"]) for name, entry in files.items())
    return xxhash.xxh3_128_hexdigest(json.dumps(hashes).encode())


# --- one file of windows --------------------------------------------------------------------------


def _holds(path: Path, ids: pa.Array) -> bool:
    return bool(_held(path, ids))


def _held(path: Path, ids: pa.Array) -> set[bytes]:
    """Which of these documents windows of this file hold."""
    reader = pa.ipc.open_file(pa.memory_map(str(path)))
    found: set[bytes] = set()
    for number in range(reader.num_record_batches):
        names = reader.get_batch(number)["documents"].flatten()
        found.update(names.filter(pc.is_in(names, value_set=ids)).to_pylist())
    return found


def _write(path: Path, target: Path, ids: pa.Array, end_id: int) -> None:
    reader = pa.ipc.open_file(pa.memory_map(str(path)))
    with pa.OSFile(str(target), "wb") as sink, pa.ipc.new_file(sink, reader.schema) as writer:
        for number in range(reader.num_record_batches):
            writer.write_batch(_masked(reader.get_batch(number), ids, end_id))


def _masked(batch: pa.RecordBatch, ids: pa.Array, end_id: int) -> pa.RecordBatch:
    tokens, starts, documents, *others = batch.columns
    width = tokens.type.list_size
    row_of_ids = np.asarray(tokens.flatten()).reshape(-1, width).copy()
    begins, offsets = np.asarray(starts.flatten()), np.asarray(starts.offsets)
    (hits,) = np.nonzero(np.asarray(pc.is_in(documents.flatten(), value_set=ids)))
    rows = np.searchsorted(offsets, hits, side="right") - 1
    for hit, row in zip(hits.tolist(), rows.tolist(), strict=True):
        end = begins[hit + 1] if hit + 1 < offsets[row + 1] else width
        row_of_ids[row, begins[hit] : end] = end_id
    flat = pa.array(row_of_ids.reshape(-1))
    arrays = [pa.FixedSizeListArray.from_arrays(flat, width), starts, documents, *others]
    return pa.RecordBatch.from_arrays(arrays, schema=batch.schema)
