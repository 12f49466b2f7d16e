"""Published windows that runs read, and what they hold of documents that were forgotten.

A copy on a store is not masked with the corpus: publishing the plan again does it. Which runs read
one, their run.json says; a plan that was published and that no run here reads is not seen.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from mixtures.packed import DOCUMENTS, read_manifest
from mixtures.plan import plan_from_dict
from mixtures.published import is_published
from mixtures.shard_cache import Shard, ShardCache
from pipeline.config import check
from pipeline.files import read_json
from pipeline.objects import is_url
from trainer.data import cache_of
from trainer.inventory import Inventory
from trainer.settings import RunSettings


@dataclass(frozen=True)
class Copy:
    """Windows of one selection in a published plan."""

    place: str  # folder or URL
    runs: list[str]
    documents: list[str]  # hex ids of the forgotten ones that are selected there
    masked: bool  # and are masked there
    why: str  # it cannot be told; empty: it can


def copies(found: Inventory, ids: pa.Array) -> list[Copy]:
    """What the published plans that these runs read hold of some documents; none of copies without
    any."""
    runs: dict[str, list[str]] = {}
    caches: dict[str, ShardCache] = {}
    for run, settings in _reading(found):
        for source in plan_from_dict(read_json(run / "plan.json")).sources:
            runs.setdefault(source.folder, []).append(str(run))
            caches[source.folder] = cache_of(settings)
    told = [_copy(place, sorted(set(of)), ids, caches[place]) for place, of in runs.items()]
    return [copy for copy in told if copy.documents or copy.why]


def _reading(found: Inventory) -> Iterator[tuple[Path, RunSettings]]:
    """The runs that read a published plan."""
    for run in found.runs:
        if (run / "plan.json").exists() and (run / "run.json").exists():
            known = read_json(run / "run.json")["settings"]
            settings = check(known, RunSettings, str(run / "run.json"))
            if is_published(settings.mixture):
                yield run, settings


def _copy(place: str, runs: list[str], ids: pa.Array, cache: ShardCache) -> Copy:
    try:
        manifest = read_manifest(place)
        selected = _selected(place, manifest["files"][DOCUMENTS], cache)
    except (OSError, ValueError, LookupError) as error:
        return Copy(place, runs, [], False, str(error) or type(error).__name__)
    held = selected.filter(pc.is_in(selected, value_set=ids)).unique().to_pylist()
    names = sorted(name.hex() for name in held)
    return Copy(place, runs, names, set(names) <= set(manifest.get("forgotten", ())), "")


def _selected(place: str, known: dict[str, object], cache: ShardCache) -> pa.Array:
    """Ids of the documents of a packed folder, with those that were masked."""
    path = f"{place}/{DOCUMENTS}"
    if not is_url(place):
        return _ids(Path(path))
    held = cache.hold(Shard(path, int(str(known["bytes"])), str(known["xxh3"])))
    found = _ids(held.path)
    held.release()
    return found


def _ids(path: Path) -> pa.Array:
    with pa.OSFile(str(path)) as file:
        return pa.ipc.open_file(file).read_all()["id"].combine_chunks()


def told(copy: Copy) -> str:
    """A line of a receipt."""
    of = f"{copy.place} (read by {', '.join(copy.runs)})"
    if copy.why:
        return f"{of}: cannot be told: {copy.why}"
    num = len(copy.documents)
    if copy.masked:
        return f"{of}: {num:,} of these documents, masked there too"
    return (
        f"{of}: still holds {num:,} of these documents. Publish the plan again (`assay mix "
        "mixture.yaml --tokens N --publish`), and delete the caches of machines that read it"
    )
