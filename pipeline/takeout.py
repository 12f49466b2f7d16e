"""Take out of a corpus what it was told to forget: its text, and all that was made from it.

Readers need no copy of the state before: what goes is out of every view from the moment it is
listed (forgotten.py), and no other row moves (rewriting.py). Killed anywhere, the next call goes
on. Windows that mixtures packed are masked by mixtures/masking.py.
"""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pipeline import (
    accounts,
    attach,
    commits,
    embeddings,
    finished,
    forgotten,
    frozen,
    linked,
    merged,
    objects,
    publish,
    rewriting,
    store,
    timings,
)
from pipeline.corpus import CorpusError, manifest
from pipeline.files import (
    file_hash,
    read_json,
    read_sealed,
    remove_temporaries,
    replacing,
    write_sealed,
)
from pipeline.readers.spill import DONE
from pipeline.shards import load_shards

# Of what the stages of a corpus count, what becomes less.
COUNTED = ("ingest", "nominees", "tokens")


def take_out(root: Path, calls: list[forgotten.Listed]) -> list[int]:
    """Write again what holds text of documents of these calls; returns the parts that did. Call it
    while holding the corpus, and again if it was killed.

    Raises:
        CorpusError: a run of `prepare` is not finished: names the remedy.
    """
    if not (root / "corpus.json").exists():
        raise CorpusError(
            f"{root}: a run of `assay prepare` was stopped here. What is listed is out of every "
            "reader's sight, but its text goes when the corpus is whole: call `assay prepare` "
            "again, then `assay forget` with the corpus alone"
        )
    remove_temporaries(root)
    rows = forgotten.documents(calls)
    parts = []
    for part, gone in rewriting.touched(root, rows):
        rewriting.rewrite(root, part, gone)
        parts.append(part)
    contents = rows["content_hash"].combine_chunks().drop_null()
    _heldout(root, contents)
    for part in parts:
        for edited in root.glob(f"edited/*/part-{part:05d}.*.arrow"):  # made again when asked for
            edited.unlink()
    # Named by records that changed; what a kill left in it may link to documents as they were.
    shutil.rmtree(root / linked.FOLDER, ignore_errors=True)
    shutil.rmtree(root / embeddings.UNFINISHED, ignore_errors=True)
    if (root / "inputs.json").exists():
        uncut(root)
    attach.forget(root, pa.concat_arrays([rows["id"].combine_chunks(), contents]))
    found = manifest(root)
    attach.renew(root, found.get("parts", []))
    merged.renew_parts(root, found.get("merged", []), found.get("parts", []), parts)
    timings.write(root)
    for stage in found["stages"]:
        if stage in COUNTED or stage.startswith(("edits/", "tokens/")):
            found["stages"][stage]["totals"] |= _totals(root, stage, found["tokenizer"]["hash"])
    write_sealed(root / "corpus.json", found)
    finished.drop(root)  # what a killed run left: it links to files as they were
    return parts


def publish_without(root: Path) -> None:
    """Of a corpus on a store: publish it as it stands here, and delete what is named no more."""
    mirror = store.of(root)
    if mirror is None:
        return
    publish.begin(root)
    publish.finish(root)
    for name in publish.orphans(mirror.url):
        objects.delete(f"{mirror.url}/{name}")


def _heldout(root: Path, contents: pa.Array) -> None:
    """The texts of held-out contents become null; their rows stay, which the index counts."""
    path, documents = frozen.paths(root)
    record = read_sealed(commits.record_path(root, "heldout", 0))
    if record is None:
        return
    if (mirror := store.of(root)) is not None:
        store.fetch(mirror, record["outputs"])
    table = pq.read_table(documents)
    known = read_json(path)
    if not pc.any(pc.is_in(table["content_hash"], value_set=contents)).as_py():
        return
    file = pq.ParquetFile(documents)
    with (
        replacing(documents) as temporary,
        pq.ParquetWriter(temporary, file.schema_arrow, compression="zstd") as writer,
    ):
        for number in range(file.num_row_groups):
            rows = file.read_row_group(number)
            out = pc.is_in(rows["content_hash"], value_set=contents)
            at = rows.schema.get_field_index("text")
            writer.write_table(rows.set_column(at, "text", pc.if_else(out, None, rows["text"])))
    table = pq.read_table(documents)
    for name, entry in known["sets"].items():
        mine = table.filter(pc.equal(table["set"], name))["text"]
        entry["documents"] = len(mine) - mine.null_count
        entry["bytes"] = pc.sum(pc.binary_length(mine), min_count=0).as_py()
    known.pop("seal", None)
    known["matched"] = known.get("matched", known["hash"])
    known["hash"] = file_hash(documents)
    write_sealed(path, known)
    commits.amend(root, record, [path, documents])


def uncut(root: Path) -> None:
    """Delete the shards cut from compressed inputs that hold forgotten documents; planning.py cuts
    them again when the part has to be made again."""
    gone: list[str] = []
    for shard in load_shards(root):
        spilled = [Path(piece.path) for piece in shard.pieces if piece.spilled]
        if not spilled or not forgotten.num_forgotten(root, shard.part):
            continue
        gone += [str(path.relative_to(root)) for path in spilled]
        for path in spilled:
            path.unlink(missing_ok=True)
            done = path.with_name(DONE)
            if (known := read_sealed(done)) is not None and path.name in known["files"]:
                del known["files"][path.name]
                write_sealed(done, known)
    if gone and (mirror := store.of(root)) is not None:  # which the workers of a run had read
        begun = store.last_state(mirror, "begun") or {"files": {}}
        for name in begun["files"].keys() & set(gone):
            objects.delete(f"{mirror.url}/{begun['files'][name]['key']}")


def _totals(root: Path, stage: str, tokenizer: str) -> dict[str, Any]:
    folder = root / "stats" / (f"tokens/{tokenizer}" if stage == "tokens" else stage)
    totals, files = Counter[str](), dict[str, Counter[str]]()
    for path in sorted(folder.glob("part-*.json")):
        record = read_json(path)
        totals.update({k: v for k, v in record["counters"].items() if isinstance(v, int)})
        if stage == "ingest":
            accounts.add_files(files, record)
    if stage == "ingest":
        fates = ("records", *accounts.FATES)
        return dict(totals) | {key: sum(counts[key] for counts in files.values()) for key in fates}
    return dict(totals)
