"""`assay attach CORPUS scores.parquet --on id`: anyone's columns, as a signal group.

The columns are kept once, under their keys, in `attached/<name>.parquet`. The group is made from
them: row-aligned with the documents like any other, and seen by SQL, mixtures and `assay inspect`
as `<name>.<column>`. Whenever documents come or stand in other rows, `assay prepare` joins again,
so that a value never meets another document. What the file does not name is NULL, counted.
"""

from __future__ import annotations

import argparse
import functools
import re
import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from filters.presets import PRESETS
from filters.signals import GROUPS
from pipeline import forgotten, publish, schema, store, timings
from pipeline.amounts import counted
from pipeline.commits import once, record, record_path
from pipeline.corpus import CorpusError, locked, manifest, part_paths
from pipeline.files import (
    DAMAGED,
    file_hash,
    part_name,
    part_number,
    read_json,
    read_sealed,
    replacing,
    write_sealed,
)
from pipeline.fingerprint import fingerprint
from pipeline.keyed import read_keyed
from pipeline.relations import LANGUAGES
from pipeline.tables import column, names_of
from pipeline.views import DERIVED

KEYS = ("id", "content_hash")
RESERVED = {
    *schema.DOCUMENTS.names,
    *schema.TOKEN_COUNTS.names,
    *(name for group, found in GROUPS.items() for name in (group, *found.columns)),
    *PRESETS,
    *DERIVED,
    LANGUAGES,
    *("normalize", "part", "corpus"),
}
EXAMPLE = """examples:
  assay attach runs/web scores.parquet --on id --name quality
  assay sql runs/web "select avg(quality.score) from documents"
  assay attach runs/web --drop quality

The key column holds 32 hex digits, as `assay sql` shows them."""


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="assay attach", epilog=EXAMPLE, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("corpus", help="folder or URL of a corpus")
    parser.add_argument(
        "file", type=Path, nargs="?", help="Parquet, CSV or JSONL with the key and columns"
    )
    parser.add_argument("--on", choices=KEYS, help="key column")
    parser.add_argument("--name", help="of the group (default: the file's name)")
    parser.add_argument("--replace", action="store_true", help="replace a group attached before")
    parser.add_argument("--drop", metavar="NAME", help="remove a group attached before")
    options = parser.parse_args(argv)
    root = store.folder(options.corpus)
    if options.drop:
        drop(root, options.drop)
        print(f"removed {root / 'signals' / options.drop}")
        return 0
    if options.file is None or options.on is None:
        parser.error("give a file and its key column (--on), or a group to --drop")
    name = options.name or options.file.stem
    counts = attach(root, options.file, options.on, name, replace=options.replace)
    print(
        f"wrote {root / 'signals' / name}: {counted(counts['documents'], 'document')}, "
        f"{counts['missing']:,} of them NULL (not in the file); "
        f"{counted(counts['unused'], 'key')} of the file in no document"
    )
    return 0


def attach(
    root: Path, file: Path, on: str, name: str, *, replace: bool = False, by: str = ""
) -> dict[str, int]:
    """Keep the columns of `file`, make `signals/<name>` of them, and name it in corpus.json.

    Args:
        by: what made them, kept beside them; of a file of the user's nothing is known.

    Returns: documents; missing, those of them that the file does not name; unused, keys of the
    file that no document has.

    Raises:
        CorpusError: the file, its keys or a name cannot be used.
    """
    with locked(root):
        found = manifest(root)
        _check_name(name, found["signals"], replace)
        table = _without_forgotten(root, read_keyed(file, on), on)
        paths = part_paths(root, "documents")
        used = pa.chunked_array(
            [chunk for path in paths for chunk in pq.read_table(path, columns=[on])[on].chunks],
            schema.HASH,
        ).unique()
        unused = table.num_rows - pc.sum(pc.is_in(table[on], value_set=used)).as_py()
        if unused == table.num_rows:
            raise CorpusError(
                f"{file}: {counted(unused, 'key')}, none the {on} of a document of {root} "
                f"(the first: {table[on][0].as_py().hex()}); "
                f"is the key {'content_hash' if on == 'id' else 'id'}, or another corpus meant?"
            )
        _list(root, found["signals"], name, listed=False)  # not while old parts meet new ones
        kept = attached_path(root, name)
        kept.with_suffix(".json").unlink(missing_ok=True)
        with replacing(kept) as temporary:
            pq.write_table(table, temporary)
        made_by = {"by": by} if by else {}
        write_sealed(kept.with_suffix(".json"), {"files": {kept.name: file_hash(kept)}} | made_by)
        parts = [part_number(path) for path in paths]
        renew(root, parts)
        timings.write(root)
        _list(root, found["signals"], name, listed=True)
        publish.finish(root)
    counters = [read_json(record_path(root, f"signals/{name}", p))["counters"] for p in parts]
    return {
        "documents": sum(c["documents"] for c in counters),
        "missing": sum(c["missing"] for c in counters),
        "unused": unused,
    }


def _without_forgotten(root: Path, table: pa.Table, on: str) -> pa.Table:
    """What is said of documents that the corpus was told to forget is not taken in again."""
    gone = forgotten.documents(forgotten.listed(root))[on]
    return table.filter(pc.invert(pc.is_in(table[on], value_set=gone.combine_chunks())))


def drop(root: Path, name: str) -> None:
    """Remove an attached group.

    Raises:
        CorpusError: no such group was attached.
    """
    with locked(root):
        names = attached_groups(root)
        if name not in names:
            raise CorpusError(
                f"{root}: no group {name!r} is attached; there are: {', '.join(names) or 'none'}"
            )
        _list(root, manifest(root)["signals"], name, listed=False)
        for suffix in (".json", ".parquet"):
            attached_path(root, name).with_suffix(suffix).unlink(missing_ok=True)
        for folder in ("signals", "stats/signals"):
            shutil.rmtree(root / folder / name, ignore_errors=True)
        timings.write(root)
        publish.finish(root)


# --- the group, from what is kept -----------------------------------------------------------------


def attached_path(root: Path, name: str) -> Path:
    """The columns of a group under their keys, sorted by key; the key is the first column."""
    return root / "attached" / f"{name}.parquet"


def attached_groups(root: Path) -> list[str]:
    """Names of the groups that were attached to this corpus."""
    return sorted(path.stem for path in (root / "attached").glob("*.parquet"))


def renew(root: Path, parts: list[int]) -> list[str]:
    """Join every attached group to the documents of `parts`, where they came or changed since.

    Call it while holding the corpus. Returns the names of the groups.

    Raises:
        CorpusError: the columns that were attached are damaged.
    """
    names = attached_groups(root)
    for name in names:
        stage, path = f"signals/{name}", attached_path(root, name)
        kept = file_hash(path)
        vouched = read_sealed(path.with_suffix(".json"))
        if vouched is not None and vouched["files"] != {path.name: kept}:
            raise CorpusError(
                f"{path} {DAMAGED}; put it back, or attach the "
                f"group again: `assay attach {root} FILE --on KEY --name {name} --replace`"
            )
        given = vouched.get("given", kept) if vouched else kept  # before keys of it were forgotten
        prints = {part: fingerprint(given, _documents_hash(root, part)) for part in parts}
        stale = [part for part in parts if record(root, stage, part, prints[part]) is None]
        for gone in (root / "stats" / stage).glob("part-*"):
            if part_number(gone) not in prints:
                gone.unlink()
        table = pq.read_table(path) if stale else None
        for part in stale:
            output = root / stage / part_name(part)
            work = functools.partial(_join, root, part, table, output)
            documents = read_json(record_path(root, "ingest", part))
            reads = [("ingest", part, documents["fingerprint"])]
            once(root, stage, part, prints[part], [output], work, reads)
    return names


def forget(root: Path, hashes: pa.Array) -> None:
    """Take the rows of these ids and contents out of what was attached; `renew` follows."""
    for name in attached_groups(root):
        path = attached_path(root, name)
        record = path.with_suffix(".json")
        known = read_sealed(record) or {"files": {path.name: file_hash(path)}}
        table = pq.read_table(path)
        out = pc.is_in(table.column(0), value_set=hashes)
        if not pc.any(out).as_py():
            continue
        with replacing(path) as temporary:
            pq.write_table(table.filter(pc.invert(out)), temporary)
        given = known.get("given", known["files"][path.name])
        write_sealed(record, known | {"files": {path.name: file_hash(path)}, "given": given})


def _documents_hash(root: Path, part: int) -> str:
    """Of the bytes of a part of `documents`: which of them stands in which row."""
    outputs = read_json(record_path(root, "ingest", part))["outputs"]
    return str(outputs[f"documents/{part_name(part)}"]["xxh3"])


def _join(root: Path, part: int, table: pa.Table, output: Path) -> dict[str, int]:
    """One part of the group, in the row groups of its documents."""
    on, *columns = table.column_names
    keys, values = names_of(table[on]), table.select(columns)
    missing = 0
    documents = pq.ParquetFile(root / "documents" / part_name(part))
    with replacing(output) as temporary, pq.ParquetWriter(temporary, values.schema) as writer:
        for group in range(documents.num_row_groups):
            wanted = names_of(column(documents, group, on))
            at = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
            rows = pa.array(at, mask=keys[at] != wanted)
            missing += rows.null_count
            writer.write_table(values.take(rows), row_group_size=max(len(rows), 1))
    return {"documents": documents.metadata.num_rows, "missing": missing}


def _list(root: Path, signals: list[str], name: str, *, listed: bool) -> None:
    """Name the group in corpus.json, or no more."""
    if (name in signals) != listed:
        signals.append(name) if listed else signals.remove(name)
        write_sealed(root / "corpus.json", manifest(root) | {"signals": signals})


def _check_name(name: str, signals: list[str], replace: bool) -> None:
    if re.fullmatch(r"[a-z][a-z0-9_]*", name) is None:
        raise CorpusError(
            f"group name {name!r}: give one of lower-case letters, digits and _ with --name"
        )
    if name in RESERVED:
        raise CorpusError(f"group name {name!r} is taken by assay itself; give another with --name")
    if name in signals and not replace:
        raise CorpusError(
            f"group {name!r} is attached already; give another --name, or --replace it"
        )
