"""`assay prepare --verify`: every byte of a corpus is checked; what is damaged is named.

Each file is vouched for in one of four ways: a commit record under stats/ holds its hash; it is
JSON with a seal of its own; a sealed file beside it holds its hash; or it is written again from the
records, and compared. Windows under packed/ are checked by `assay mix --verify`.
"""

from __future__ import annotations

from fnmatch import fnmatch
from pathlib import Path

from pipeline import publish, store, timings, whole
from pipeline.corpus import CorpusError
from pipeline.files import DAMAGED, SUSPECTS, file_hash, read_sealed

# The id of a process; what happened when, which nothing is computed from; the state of a file that
# was cut, of which a wrong one means that it is cut again.
NOT_CHECKED = (".lock", "stats/log.jsonl", "cut/*/version")
SEALED = (
    *("corpus.json", "inputs.json", "limit.json", "heldout.json", "tokens/*/policy.json"),
    "tokens/*/added.json",
    *("stats/prices.json", "stats/fates.json", "forgotten/*.receipt.json"),
)
# Sealed too; `files` holds the hashes of files beside them, by name.
VOUCHING = (
    *("tokens/*/engine.json", "cut/*/done.json", "attached/*.json"),
    "forgotten/*[0-9].json",
)
# What was given and cannot be made again, with the remedy.
GIVEN = {
    "inputs.json": "put it back, or delete it: shards are then planned anew",
    "heldout.json": "put it back, or delete it and heldout/: every earlier comparison is then void",
    "stats/prices.json": "delete it, and give --prices again",
    "forgotten/*": "put it back, or delete the files of its number and call `assay forget` again",
    "attached/*": "attach the group again: `assay attach --replace`",
    "tokens/*/added.json": "delete it, and add the tokenizer again by `assay tokenize`",
}


def damaged(root: Path) -> list[str]:
    """Files whose bytes are not what they were; they, or the records that vouch for them, are
    deleted, so that the run that follows makes them again. Of a corpus on a store every object is
    read: files that are damaged here alone are fetched again, and are not named.

    Raises:
        CorpusError: files that cannot be made again; names them, and the remedy of each.
    """
    found = _loose(root)
    given = [(name, GIVEN[key]) for name in found for key in GIVEN if fnmatch(name, key)]
    if given:
        lines = "\n".join(f"  {name}: {remedy}" for name, remedy in given)
        raise CorpusError(f"{root}: damaged {SUSPECTS}:\n{lines}")
    for name in found:
        (root / name).unlink(missing_ok=True)
    parts = _parts(root)
    table = timings.path_of(root)
    if not parts and table.exists() and not timings.stands(root):
        found.append(str(table.relative_to(root)))
    return parts + found


def require_whole(root: Path) -> None:
    """Refuse a finished corpus of which a file that readers read is damaged; hashes all of them,
    and changes nothing. Of a corpus on a store those that are here: fetched ones are checked then.

    Raises:
        CorpusError: names the file and the remedy.
    """
    records = sorted((root / "stats").rglob("part-*.json"))
    damaged_records = (path for path in records if read_sealed(path, strict=True) is None)
    for path in (*map(root.joinpath, _loose(root)), *damaged_records):
        raise CorpusError(f"{path} {DAMAGED}; {whole.REMEDY}")
    known = whole.read_by_readers(records)
    for name in known:
        if store.of(root) is None or (root / name).exists():
            whole.require_whole(root, name, known)


def _parts(root: Path) -> list[str]:
    """Damaged commit records, and damaged files that records name."""
    found = []
    mirror = store.of(root)
    for path in sorted((root / "stats").rglob("part-*.json")):
        known = read_sealed(path, strict=True)
        if known is None:
            found.append(str(path.relative_to(root)))
            path.unlink()
            continue
        outputs = known["outputs"]
        if mirror is None:
            bad = [name for name, output in outputs.items() if not _is(root / name, output["xxh3"])]
        else:
            bad = [name for name in outputs if not publish.is_whole(mirror, name, outputs[name])]
        if bad and mirror is not None:
            publish.revoke(mirror, known)
        if bad:
            path.unlink()
        found += bad
    return found


def _loose(root: Path) -> list[str]:
    """Damaged files that no commit record names."""
    found = [path for path in store.matching(root, SEALED) if read_sealed(path, True) is None]
    for path in store.matching(root, VOUCHING):
        known = read_sealed(path, strict=True)
        if known is None:
            found.append(path)
            continue
        beside = {path.with_name(name): digest for name, digest in known["files"].items()}
        found += [path for path, digest in beside.items() if not _is(path, digest)]
    return [str(path.relative_to(root)) for path in found]


def _is(path: Path, digest: str) -> bool:
    return path.exists() and file_hash(path) == digest
