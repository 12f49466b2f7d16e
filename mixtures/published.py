"""A plan and its packed windows where other machines can read them: `assay mix --publish PLACE`.

    plan.json                                  the plan, sealed; folders are relative to it
    tokenizer.json
    heldout.parquet                            text of the held-out sets, which a run is scored on
    packed/<selection>/part-00000.arrow ...    windows
    packed/<selection>/manifest.json           hashes of these files

PLACE is a folder or a URL. What is published can be copied as it is: to a web server, to a data set
of Hugging Face. Manifests come after their files and the plan comes last, so a plan that is there
is whole. A second call uploads what is missing or has changed.

A machine without the corpus trains on it: `mixture: PLACE` in run.yaml.
"""

from __future__ import annotations

import io
import re
import tempfile
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import xxhash

from mixtures import heldout
from mixtures.heldout import HeldoutSet
from mixtures.packed import PUBLISH, require_whole
from mixtures.phases import num_windows
from mixtures.plan import Plan, plan_from_dict
from mixtures.shard_cache import DamagedShard, Shard, ShardCache
from pipeline import objects
from pipeline.amounts import counted
from pipeline.config import ConfigError
from pipeline.files import file_hash, unsealed, write_sealed
from pipeline.objects import is_url

PLAN, TOKENIZER, HELDOUT = "plan.json", "tokenizer.json", "heldout.parquet"
TEXTS = "heldout_file"  # key of plan.json: bytes and hash of HELDOUT; None: there is no such text
UPLOADS = 4  # at a time


def publish(plan: Plan, place: str, corpora: Iterable[str | Path] = ()) -> Iterator[str]:
    """Upload a plan and what it reads; yields lines to tell.

    Args:
        corpora: of the mixture, whose held-out text goes with it.

    Raises:
        ConfigError: held-out text of a corpus is damaged.
        ValueError: packed windows here are damaged; nothing of them is uploaded.
        OSError: the store refuses.
    """
    place = place.rstrip("/")
    for source in plan.sources:
        sent, num_bytes = _upload_folder(
            Path(source.folder), f"{place}/{_folder(source.selection)}"
        )
        yield f"{source.name}: {sent} files sent, {num_bytes:,} bytes"
    objects.upload(Path(plan.tokenizer_file), f"{place}/{TOKENIZER}")
    texts, told = _upload_texts(corpora, f"{place}/{HELDOUT}")
    yield told
    sources = tuple(replace(s, folder=_folder(s.selection)) for s in plan.sources)
    moved = replace(plan, sources=sources, tokenizer_file=TOKENIZER)
    objects.write(f"{place}/{PLAN}", _sealed(moved.to_dict() | {TEXTS: texts}))
    yield f"published: {place}/{PLAN}"
    yield (
        f"a reader's cache holds what is shuffled as one, and what comes next: "
        f"{_working_set(plan):,} bytes; less, and parts are fetched more than once (`shuffle` of "
        "the mixture makes it smaller)"
    )


def is_published(mixture: str) -> bool:
    """Whether `mixture` of a run is a published plan, not a mixture.yaml."""
    return is_url(mixture) or Path(mixture).name == PLAN or Path(mixture).is_dir()


def open_plan(place: str | Path, tokens: int | None = None) -> Plan:
    """A plan that was published, with its folders where they are.

    Args:
        tokens: of the run: its beginning, where it was published for more. None: all.

    Raises:
        ConfigError: there is none, it is damaged, or it was published for fewer tokens.
    """
    base, found = _read(place)
    del found[TEXTS]
    plan = plan_from_dict(found)
    _require_inside(plan, base)
    sources = tuple(replace(s, folder=f"{base}/{s.folder}") for s in plan.sources)
    plan = replace(plan, sources=sources, tokenizer_file=f"{base}/{plan.tokenizer_file}")
    return plan if tokens is None else _beginning(plan, tokens, base)


def heldout_sets(place: str | Path, max_bytes: int, cache: ShardCache) -> list[HeldoutSet]:
    """The held-out sets that were published with a plan, as `heldout.sets_of` has them.

    Raises:
        ConfigError: there are none, or they are damaged.
    """
    base, found = _read(place)
    url = f"{base}/{HELDOUT}"
    if found[TEXTS] is None:
        raise ConfigError(
            f"no held-out text was published in {base}: an evaluation needs some; publish the plan "
            f"again, from a corpus with held-out sets: {PUBLISH}"
        )
    shard = Shard(url, found[TEXTS]["bytes"], found[TEXTS]["xxh3"])
    texts = _fetched(shard, cache) if is_url(url) else _standing(shard)
    if texts is None:
        raise ConfigError(f"{url} is missing, or not as it was written; {PUBLISH} writes it again")
    return heldout.sets_of(texts, max_bytes)


def _fetched(shard: Shard, cache: ShardCache) -> pa.Table | None:
    try:
        held = cache.hold(shard)
    except DamagedShard:
        return None
    found = pq.read_table(held.path, memory_map=False)
    held.release()
    return found


def _standing(shard: Shard) -> pa.Table | None:
    path = Path(shard.url)
    return pq.read_table(path) if path.exists() and file_hash(path) == shard.xxh3 else None


def _read(place: str | Path) -> tuple[str, dict[str, Any]]:
    """The folder or URL of a published plan, and what its plan.json holds."""
    base = str(place).rstrip("/").removesuffix(f"/{PLAN}")
    where = f"{base}/{PLAN}"
    found = None
    with suppress(FileNotFoundError):
        found = unsealed(objects.read(where), strict=True)
    if found is None:
        raise ConfigError(
            f"{where} is missing, or not as it was written; `assay mix mixture.yaml --tokens N "
            f"--publish {base}` writes it"
        )
    return base, {TEXTS: None} | found


def _require_inside(plan: Plan, place: str) -> None:
    """Refuse a plan, which may be anybody's, that names files elsewhere than `publish` does."""
    hashes = [plan.tokenizer, *(source.selection for source in plan.sources)]
    names = [(plan.tokenizer_file, TOKENIZER)]
    names += [(source.folder, _folder(source.selection)) for source in plan.sources]
    wrong = [name for name in hashes if not re.fullmatch("[0-9a-f]+", str(name))]
    wrong += [name for name, right in names if name != right]
    if wrong:
        raise ConfigError(
            f"{place}/{PLAN} names {wrong[0]!r}, which is neither a hash nor a file of what is "
            f"published by {PUBLISH}; do not read it, or publish it again"
        )


def _beginning(plan: Plan, tokens: int, place: str) -> Plan:
    """A plan of fewer tokens: it gives the same windows up to there."""
    windows = num_windows(tokens, plan.sequence_length)
    if windows > plan.num_windows:
        raise ConfigError(
            f"key `tokens`: {tokens:,} asked for, but the plan at {place} was published for "
            f"{plan.tokens:,}; ask for no more, or publish it again: `assay mix mixture.yaml "
            f"--tokens {tokens} --publish {place}`"
        )
    read = plan.schedule.windows_until(windows).tolist()
    sources = zip(plan.sources, read, strict=True)
    return replace(
        plan,
        tokens=tokens,
        sources=tuple(replace(s, epochs=count / s.epoch_windows) for s, count in sources),
    )


def _upload_texts(corpora: Iterable[str | Path], url: str) -> tuple[dict[str, Any] | None, str]:
    """Upload the held-out text of corpora; what plan.json says of the file, and a line to tell."""
    found = heldout.texts(corpora)
    if not len(found):  # nor any that was there before it was forgotten
        objects.delete(url)
        return None, "held out: no text, so a run on what is published cannot be scored"
    sink = io.BytesIO()
    pq.write_table(found, sink, compression="zstd")
    data = sink.getvalue()
    objects.write(url, data)
    sets = counted(len(found["set"].unique()), "set")
    return (
        {"bytes": len(data), "xxh3": xxhash.xxh3_128_hexdigest(data)},
        f"held out: {counted(len(found), 'text')} of {sets}, {len(data):,} bytes ({HELDOUT})",
    )


def _working_set(plan: Plan) -> int:
    """Bytes of two groups of each source, or of all of it."""
    total = 0
    for source in plan.sources:
        files = require_whole(Path(source.folder), hashes=False)["files"]
        sizes = [file["bytes"] for name, file in files.items() if name.startswith("part-")]
        total += max(sizes) * min(2 * source.parts_per_group, len(sizes))
    return total


def _folder(selection: str) -> str:
    return f"packed/{selection}"


def _upload_folder(folder: Path, place: str) -> tuple[int, int]:
    """Upload what is not there; the number of files that were sent, and their bytes."""
    manifest = require_whole(folder)
    before: dict[str, Any] = {}
    with suppress(FileNotFoundError):
        before = unsealed(objects.read(f"{place}/manifest.json"), strict=True) or {}
    missing = [
        (name, known["bytes"])
        for name, known in manifest["files"].items()
        if not _stands(f"{place}/{name}", known, before.get("files", {}).get(name, known))
    ]
    with ThreadPoolExecutor(UPLOADS) as pool:
        list(pool.map(lambda file: objects.upload(folder / file[0], f"{place}/{file[0]}"), missing))
    objects.write(f"{place}/manifest.json", (folder / "manifest.json").read_bytes())
    return len(missing), sum(num_bytes for _, num_bytes in missing)


def _stands(url: str, known: dict[str, Any], before: dict[str, Any]) -> bool:
    """Whether an object has the size that it should, and no other hash was told of it before."""
    if known["xxh3"] != before["xxh3"]:
        return False
    try:
        return bool(objects.info(url)["size"] == known["bytes"])
    except FileNotFoundError:
        return False


def _sealed(value: dict[str, Any]) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        write_sealed(Path(folder, PLAN), value)
        return Path(folder, PLAN).read_bytes()
