"""The writing side of a corpus on a store: a lease, uploads, commit records, the manifest.

What stands where, and why nothing that is killed, late or double can spoil it, is in store.py.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pipeline import lease, objects, store
from pipeline.files import file_hash, read_json, read_sealed, write_json

# Of a URL: the records there, while this process alone writes. One list, not a request a part.
_listed: dict[str, set[str]] = {}


@contextmanager
def written(root: Path) -> Iterator[None]:
    """Hold the lease of a corpus on a store while the block writes to it; of a local one nothing.

    Raises:
        LeaseError: another process holds it, or took it over.
    """
    mirror = store.of(root)
    if mirror is None:
        yield
        return
    with lease.held(mirror.url) as held:
        store.write_state(root, mirror.url, held.number)
        store.pull(root)
        pull_records(root)
        try:
            yield
        finally:
            store.write_state(root, mirror.url, 0)
            _listed.pop(mirror.url, None)


def begin(root: Path) -> None:
    """Share what workers read that no stage makes: shards, tokenizer, sets that stand."""
    mirror = store.of(root)
    if mirror is None:
        return
    files = _put_all(mirror, store.matching(root, (*store.DRIVER_FILES[1:], store.SPILLED)))
    _put_state(mirror, "begun", {"files": files})
    _listed.pop(mirror.url, None)  # from here on other machines add records


def finish(root: Path) -> None:
    """Publish a corpus as it stands in its folder; a local one is where it is to be.

    Raises:
        LeaseError: another writer took over.
    """
    mirror = store.of(root)
    if mirror is None:
        return
    paths = sorted((mirror.root / "stats").rglob("part-*.json"))
    records = [found for path in paths if (found := read_sealed(path)) is not None]
    files = {name: entry for found in records for name, entry in found["outputs"].items()}
    own = store.matching(mirror.root, store.DRIVER_FILES)
    # But the held-out sets, which a record names.
    files |= _put_all(mirror, [p for p in own if str(p.relative_to(root)) not in files])
    _put_state(mirror, "manifest", {"files": files, "records": records})
    write_json(mirror.root / store.MANIFEST, {"number": mirror.number, "files": files})


def commit(mirror: store.Mirror, record: dict[str, Any]) -> dict[str, Any]:
    """Upload the outputs of a part, then its record; returns the record that stands, which is
    that of another attempt where it was first.

    Raises:
        LeaseError: another writer took over.
    """
    attempt = secrets.token_hex(6)
    outputs = {
        name: entry | {"key": store.attempt_key(name, attempt)}
        for name, entry in record["outputs"].items()
    }
    record = record | {"outputs": outputs, "attempt": attempt, "lease": mirror.number}
    for name, entry in outputs.items():
        objects.upload(mirror.root / name, f"{mirror.url}/{entry['key']}")
    lease.check(mirror.url, mirror.number)
    name = store.record_key(record["stage"], record["part"], record["fingerprint"])
    _listed.get(mirror.url, set()).add(name)
    if objects.create(f"{mirror.url}/{name}", json.dumps(record, ensure_ascii=False).encode()):
        return record
    for entry in outputs.values():
        objects.delete(f"{mirror.url}/{entry['key']}")
    winner: dict[str, Any] = json.loads(objects.read(f"{mirror.url}/{name}"))
    for name, entry in winner["outputs"].items():
        if entry["xxh3"] != outputs[name]["xxh3"]:
            (mirror.root / name).unlink()  # fetched when it is read
    return winner


def replace(mirror: store.Mirror, record: dict[str, Any], changed: list[Path]) -> dict[str, Any]:
    """Put files and the record of a part in the place of those that stand under its fingerprint;
    returns the record. A kill between leaves none: the part is made again.

    Raises:
        LeaseError: another writer took over.
    """
    attempt = secrets.token_hex(6)
    for path in changed:
        name = str(path.relative_to(mirror.root))
        key = store.attempt_key(name, attempt)
        objects.upload(path, f"{mirror.url}/{key}")
        record["outputs"][name]["key"] = key
    lease.check(mirror.url, mirror.number)
    record = record | {"attempt": attempt, "lease": mirror.number}
    revoke(mirror, record)
    name = store.record_key(record["stage"], record["part"], record["fingerprint"])
    if not objects.create(f"{mirror.url}/{name}", json.dumps(record, ensure_ascii=False).encode()):
        raise lease.LeaseError(f"{mirror.url}/{name} stands already: two writers; call again")
    _listed.get(mirror.url, set()).add(name)
    return record


def committed(
    mirror: store.Mirror, stage: str, part: int, fingerprint: str
) -> dict[str, Any] | None:
    """The commit record of a part on the store; one request, none where it is known not to be."""
    name = store.record_key(stage, part, fingerprint)
    if name not in _listed.get(mirror.url, {name}):
        return None
    try:
        data = objects.read(f"{mirror.url}/{name}")
    except FileNotFoundError:
        return None
    found: dict[str, Any] = json.loads(data)
    return found


def is_whole(mirror: store.Mirror, name: str, entry: store.Entry) -> bool:
    """Whether the object of a file holds its bytes; it is fetched, whatever is here."""
    try:
        store.download(mirror, name, entry)
    except store.StoreError:
        (mirror.root / name).unlink(missing_ok=True)
        return False
    return True


def revoke(mirror: store.Mirror, record: dict[str, Any]) -> None:
    """Delete the record of a part whose objects are damaged, so that it is made again."""
    stage, part, fingerprint = record["stage"], record["part"], record["fingerprint"]
    objects.delete(f"{mirror.url}/{store.record_key(stage, part, fingerprint)}")


def pull_records(root: Path) -> None:
    """Fetch commit records of parts that have none here: made by other machines, or by a run that
    did not finish. A part's others, by fingerprint, are found by `committed`."""
    mirror = store.of(root)
    assert mirror is not None, root
    names = objects.names(f"{mirror.url}/stats")
    there = [f"stats/{name}" for name in names if "/part-" in name]
    _listed[mirror.url] = set(there)
    missing = {}
    for name in there:
        path, _, _ = name.removesuffix(".json").rpartition(".")
        if not (root / f"{path}.json").exists():
            missing[path] = name
    with ThreadPoolExecutor(store.REQUESTS) as pool:
        for data in pool.map(lambda name: objects.read(f"{mirror.url}/{name}"), missing.values()):
            store.keep_record(root, json.loads(data))
    sets = root / "stats" / "heldout" / "part-00000.json"
    if sets.exists():  # those that stand are read before any work
        store.fetch(mirror, read_json(sets)["outputs"])


def gather(root: Path) -> None:
    """After a run: have its records here, also of parts that other machines made."""
    if store.of(root) is not None:
        pull_records(root)


def orphans(url: str) -> list[str]:
    """Objects of a corpus that the last manifest does not name, by key: uploads of killed and
    lost attempts, what was made again since. None where there is no manifest (is it the URL of
    several corpora?), and none where a run did not finish: its parts wait for the next call. Call
    it while holding the lease."""
    mirror = store.Mirror(Path(), url, 0)
    manifest, begun = store.last_state(mirror, "manifest"), store.last_state(mirror, "begun")
    if manifest is None or (begun and begun["number"] > manifest["number"]):
        return []
    kept: set[str] = set()
    for state in (manifest, begun):
        kept |= {entry["key"] for entry in state["files"].values()} if state else set()
        kept |= {f"{kind}/{state['number']:08d}.json" for kind in store.STATES} if state else set()
    kept.add(f"lease/{lease.latest(url):08d}.json")
    records = manifest["records"]
    kept |= {store.record_key(r["stage"], r["part"], r["fingerprint"]) for r in records}
    kept |= {entry["key"] for record in records for entry in record["outputs"].values()}
    return [name for name in objects.names(url) if name not in kept]


def _put_all(mirror: store.Mirror, paths: list[Path]) -> dict[str, store.Entry]:
    """Upload files, but those that the last begun or finished state holds already."""
    known: dict[str, store.Entry] = {}
    for kind in store.STATES:
        state = store.last_state(mirror, kind)
        known |= state["files"] if state else {}

    def put(path: Path) -> tuple[str, store.Entry]:
        name, digest = str(path.relative_to(mirror.root)), file_hash(path)
        if known.get(name, {}).get("xxh3") == digest:
            return name, known[name]
        key = store.attempt_key(name, secrets.token_hex(6))
        objects.upload(path, f"{mirror.url}/{key}")
        return name, {"key": key, "bytes": path.stat().st_size, "xxh3": digest}

    with ThreadPoolExecutor(store.REQUESTS) as pool:
        return dict(pool.map(put, paths))


def _put_state(mirror: store.Mirror, kind: str, state: dict[str, Any]) -> None:
    lease.check(mirror.url, mirror.number)
    state = {"number": mirror.number, **state}
    url = f"{mirror.url}/{kind}/{mirror.number:08d}.json"
    if not objects.create(url, json.dumps(state, ensure_ascii=False).encode()):
        raise lease.LeaseError(f"{url} stands already: two writers with one lease; call again")
