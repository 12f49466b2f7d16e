"""One global sequence, whoever reads it: ranks, workers, resumes, stores, caches."""

from __future__ import annotations

import gc
import json
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mixture_corpus import TOKENIZER, write_tokens
from s3_server import s3_bucket
from web_server import Web, web_server

from mixtures import prefetch
from mixtures.loader import Loader
from mixtures.open_parts import OpenParts
from mixtures.packed import Packing, folder_of
from mixtures.packing import pack
from mixtures.plan import Plan, PlannedSource
from mixtures.prefetch import ahead
from mixtures.published import open_plan, publish
from mixtures.shard_cache import CacheFull, DamagedShard, ShardCache
from mixtures.stream import Stream, rank_share, turns
from pipeline import objects
from pipeline.config import ConfigError
from pipeline.files import part_name

LENGTH = 4
SOURCES = {"books": (95, 0.25), "web": (300, 0.75)}  # documents, weight
EPOCHS = 2.5


def plan_of(root: Path, parts_per_group: int = 1, tokens: int = 0) -> Plan:
    """Two sources of some 13 and 30 parts, read 2.5 times (of the larger)."""
    sources = []
    (root / "tokenizer.json").write_text("{}")
    for at, (name, (num, weight)) in enumerate(SOURCES.items()):
        texts = [[1_000 * at + n] * 5 for n in range(1, num + 1)]
        packing = Packing(3, LENGTH, TOKENIZER, "", part_tokens=50)
        packed = pack(root / name, write_tokens(root / name, texts, 50), packing)
        source = PlannedSource(
            name=name, corpus=name, folder=str(folder_of(root / name, packed.selection)),
            selection=packed.selection, windows=packed.windows, parts_per_group=parts_per_group,
            claimed=num, copies=0, near=0, documents=num, num_tokens=packed.tokens_in,
            num_bytes=0, requested=weight, realised=weight, max_epochs=9.0, epochs=EPOCHS,
        )  # fmt: skip
        sources.append(source)
    windows = int(EPOCHS * sources[1].num_windows / 0.75)
    return Plan(
        tokens=tokens or windows * LENGTH, sequence_length=LENGTH, seed=3, tokenizer=TOKENIZER,
        tokenizer_file=str(root / "tokenizer.json"), vocab_size=60_000, bos_id=None, eos_id=7,
        heldout=0, sources=tuple(sources),
    )  # fmt: skip


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> Plan:
    return plan_of(tmp_path_factory.mktemp("stream"))


@pytest.fixture(scope="module")
def whole(plan: Plan) -> np.ndarray:
    return Loader(plan).batch(0, plan.num_windows).tokens


def merged(plan: Plan, begin: int, end: int, batch: int, ranks: int, workers: int) -> np.ndarray:
    """What ranks with workers read of some positions, as a DataLoader puts it together: one batch
    of each worker in turn."""
    loader = Loader(plan)
    batches = -(-(end - begin) // batch)
    read = [
        [
            turns(begin, end, batch, rank, ranks, worker, workers)
            for worker in range(workers)
        ]
        for rank in range(ranks)
    ]  # fmt: skip
    found = []
    for number in range(batches):
        for rank in range(ranks):
            turn = next(read[rank][number % workers])
            assert turn.after == min(begin + (number + 1) * batch, end)
            found.append(loader.batch(turn.first, turn.num_windows).tokens)
    assert all(next(left, None) is None for of_rank in read for left in of_rank)
    return np.concatenate(found) if found else np.zeros((0, LENGTH + 1), np.int64)


@given(st.data())
@settings(max_examples=15, deadline=None)
def test_one_global_sequence_for_any_ranks_and_workers_and_resumes(
    plan: Plan, whole: np.ndarray, data: st.DataObject
) -> None:
    """torchtitan #811, Automodel #533, litData #363: 2.5 epochs, in stretches that end anywhere,
    each with other ranks, workers and batch size; datasets #7901: windows as a multiset."""
    end = plan.num_windows
    stops = data.draw(st.lists(st.integers(0, end), max_size=4).map(sorted))
    found = []
    for begin, stop in zip([0, *stops], [*stops, end], strict=True):
        ranks, workers = data.draw(st.sampled_from([1, 2, 4, 8])), data.draw(st.integers(1, 5))
        batch = data.draw(st.integers(1, 40))  # also fewer windows than ranks
        found.append(merged(plan, begin, stop, batch, ranks, workers))
    tokens = np.concatenate(found)
    assert np.array_equal(tokens, whole)  # the order; and so the multiset, which is:
    counts = Counter(tuple(row) for row in tokens.tolist())
    places = Loader(plan).places(0, end)
    for index, source in enumerate(plan.sources):
        seen = int((places.source == index).sum())
        times = [counts[tuple(r)] for r in whole[places.source == index].tolist()]
        assert min(times) >= seen // source.num_windows
        taken = np.cumsum(places.source == index)
        owed = source.requested * np.arange(1, end + 1)
        assert float(np.abs(taken - owed).max()) < 1


def test_each_epoch_holds_every_window_once_over_groups(plan: Plan) -> None:
    places = Loader(plan).places(0, plan.num_windows)
    for index, source in enumerate(plan.sources):
        every = sorted((p, w) for p, num in enumerate(source.windows) for w in range(num))
        mine = places.source == index
        for epoch in range(2):
            now = mine & (places.epoch == epoch)
            got = list(zip(places.part[now].tolist(), places.window[now].tolist(), strict=True))
            assert sorted(got) == every
            parts = [p for at, p in enumerate(got) if at == 0 or got[at - 1][0] != p[0]]
            assert len(parts) == len({p for p, _ in every})  # a group at a time


def test_a_stream_resumes_after_what_was_handed_out(plan: Plan, whole: np.ndarray) -> None:
    """datasets #8308: the state moves on after a resume too; what is made ahead does not count."""
    stream, found = Stream(Loader(plan), 7, ahead=3), []
    for ranks in (1, 2, 4, 1):
        state = json.loads(json.dumps(stream.state_dict()))
        streams = [Stream(Loader(plan), 7, rank=r, ranks=ranks, ahead=3) for r in range(ranks)]
        for stream in streams:
            stream.load_state_dict(state)
        readers = [iter(stream) for stream in streams]
        for _ in range(5):
            found += [next(reader).tokens for reader in readers]
        assert len({stream.position for stream in streams}) == 1
        stream = streams[-1]
    tokens = np.concatenate(found)
    assert np.array_equal(tokens, whole[: len(tokens)])
    assert [rank_share(3, rank, 4)[1] for rank in range(4)] == [0, 1, 1, 1]


def test_a_rank_beyond_the_number_of_ranks_is_refused(plan: Plan) -> None:
    with pytest.raises(ValueError, match="batch_windows 8, rank 2 of 2"):
        Stream(Loader(plan), 8, rank=2, ranks=2)


# --- made ahead -----------------------------------------------------------------------------------


def test_items_come_in_order_with_the_error_behind_them() -> None:
    made: list[int] = []

    def items() -> Iterator[int]:
        for number in range(5):
            made.append(number)
            yield number
        raise KeyError("gone")

    found = []
    with pytest.raises(KeyError, match="gone"):
        for item in ahead(items(), 2):
            found.append(item)
            time.sleep(0.02)
            assert len(made) <= item + 4  # bounded: two that wait, and one in the making
    assert found == [0, 1, 2, 3, 4]
    assert list(ahead(iter([None, 1]), 2)) == [None, 1]
    assert list(ahead([1, 2], 0)) == [1, 2]


def threads() -> int:
    return sum(thread.name == "prefetch" for thread in threading.enumerate())


def test_the_thread_ends_when_nobody_wants_more() -> None:
    generator = ahead(iter(int, 1), 3)  # without end
    assert next(generator) == 0
    assert threads() == 1
    generator.close()
    assert threads() == 0
    dropped = ahead(iter(int, 1), 3)
    next(dropped)
    del dropped
    gc.collect()
    assert threads() == 0


HANGS = """
import sys, time
from mixtures.prefetch import ahead
def items():
    yield 1
    time.sleep(600)
made = ahead(items(), 2)
print(next(made), flush=True)
if sys.argv[1] == "error": raise RuntimeError("at the consumer")
"""


@pytest.mark.parametrize(("end", "code"), [("exit", 0), ("error", 1)])
def test_a_process_ends_although_an_item_hangs(end: str, code: int) -> None:
    """The generator is a global: it is dropped while the interpreter shuts down."""
    began = time.monotonic()
    run = subprocess.run(
        [sys.executable, "-c", HANGS, end], capture_output=True, text=True, timeout=60, check=False
    )
    assert (run.stdout, run.returncode) == ("1\n", code)
    assert time.monotonic() - began < prefetch.JOIN_SECONDS + 30


# --- stores ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def published(plan: Plan, tmp_path_factory: pytest.TempPathFactory) -> str:
    place = f"file://{tmp_path_factory.mktemp('store')}/plan"
    list(publish(plan, place))
    return place


def corpus_bytes(plan: Plan) -> int:
    return sum(p.stat().st_size for s in plan.sources for p in Path(s.folder).glob("part-*"))


def read_all(plan: Plan, cache: ShardCache, batch: int = 8, stop: int | None = None) -> np.ndarray:
    loader = Loader(plan, cache)
    end = plan.num_windows if stop is None else stop
    found = [loader.batch(at, min(batch, end - at)).tokens for at in range(0, end, batch)]
    loader.close()
    return np.concatenate(found)


@pytest.mark.parametrize("share", [0.05, 0.1, 2.0])
def test_the_order_is_the_same_with_any_cache_and_a_tenth_fetches_each_byte_once(
    plan: Plan, whole: np.ndarray, published: str, tmp_path: Path, share: float
) -> None:
    total = corpus_bytes(plan)
    cache = ShardCache(tmp_path / "cache", int(share * total))
    remote = open_plan(published)
    assert remote.fingerprint == plan.fingerprint
    assert np.array_equal(read_all(remote, cache), whole)
    assert sum(p.stat().st_size for p in cache.folder.glob("[!.]*")) <= share * total
    places = Loader(plan).places(0, plan.num_windows)
    once = zip(places.source, places.epoch, places.part, strict=True)
    size = {(i, n): (Path(s.folder) / part_name(n, "arrow")).stat().st_size
            for i, s in enumerate(plan.sources) for n in range(len(s.windows))}  # fmt: skip
    asked = sum(size[source, part] for source, _, part in set(once))
    if share >= 2:
        assert cache.fetched_bytes == total
    elif share >= 0.1:
        assert cache.fetched_bytes <= 1.1 * asked


def test_two_ranks_share_one_cache(
    plan: Plan, whole: np.ndarray, published: str, tmp_path: Path
) -> None:
    caches = [ShardCache(tmp_path / "cache", 10 * corpus_bytes(plan)) for _ in range(2)]
    streams = [
        Stream(Loader(open_plan(published), cache), 10, rank=rank, ranks=2)
        for rank, cache in enumerate(caches)
    ]
    both = [(one.tokens, two.tokens) for one, two in zip(*streams, strict=True)]
    assert np.array_equal(np.concatenate([t for pair in both for t in pair]), whole)
    assert sum(cache.fetched_bytes for cache in caches) == corpus_bytes(plan)


def serve(web: Web, folder: Path) -> None:
    for path in folder.rglob("*"):
        if path.is_file():
            web.files[f"/{path.relative_to(folder)}"] = path.read_bytes()


def test_a_plan_on_a_web_server_without_ranges(
    plan: Plan, whole: np.ndarray, published: str, tmp_path: Path
) -> None:
    with web_server() as web:
        web.ranges = False
        serve(web, Path(published.removeprefix("file://")))
        remote = open_plan(f"{web.url}/plan.json")
        found = read_all(remote, ShardCache(tmp_path / "cache"), stop=60)
        assert np.array_equal(found, whole[:60])


def test_a_plan_on_s3(plan: Plan, whole: np.ndarray, tmp_path: Path) -> None:
    with s3_bucket() as bucket:
        first = list(publish(plan, f"{bucket}/plan"))
        assert first[0].startswith("books: 11 files sent")
        assert next(publish(plan, f"{bucket}/plan")) == "books: 0 files sent, 0 bytes"
        remote = open_plan(f"{bucket}/plan")
        found = read_all(remote, ShardCache(tmp_path / "cache"), stop=40)
        assert np.array_equal(found, whole[:40])


def test_a_plan_that_is_not_there_or_damaged_is_named(published: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="plan.json is missing, or not as .*--publish"):
        open_plan(tmp_path)
    data = objects.read(f"{published}/plan.json")
    (tmp_path / "plan.json").write_bytes(data.replace(b'"seed": 3', b'"seed": 4', 1))
    with pytest.raises(ConfigError, match="plan.json is missing, or not as it was written"):
        open_plan(tmp_path)


def broken(plan: Plan, place: str) -> tuple[str, np.ndarray]:
    """The first window's part is damaged on the store, at the same size; positions that it has."""
    loader = Loader(plan)
    places = loader.places(0, plan.num_windows)
    source, part = int(places.source[0]), int(places.part[0])
    url = f"{place}/packed/{plan.sources[source].selection}/part-{part:05d}.arrow"
    data = bytearray(objects.read(url))
    data[len(data) // 2] ^= 1
    objects.write(url, bytes(data))
    return url, np.flatnonzero((places.source == source) & (places.part == part))


def test_a_damaged_part_fails_or_is_skipped_with_a_record(
    plan: Plan, whole: np.ndarray, tmp_path: Path
) -> None:
    """streaming #759: a shard that cannot be skipped, for the order is fixed. Here the order of all
    other windows stays, and what was skipped is named."""
    place = f"file://{tmp_path}/plan"
    list(publish(plan, place))
    url, gone = broken(plan, place)
    with pytest.raises(DamagedShard, match=f"{url} is damaged.*`on_damage: skip`"):
        read_all(open_plan(place), ShardCache(tmp_path / "cache"))
    loader = Loader(open_plan(place), ShardCache(tmp_path / "cache"), on_damage="skip")
    batch = loader.batch(0, plan.num_windows)
    assert [skip.position for skip in batch.skipped] == gone.tolist()
    assert {(skip.source, skip.why.split()[0]) for skip in batch.skipped} == {("web", url)}
    kept = np.setdiff1d(np.arange(plan.num_windows), gone)
    assert np.array_equal(batch.tokens[kept], whole[kept])
    assert (batch.tokens[gone] == 7).all()  # the end of a document
    assert (batch.documents[gone] == np.arange(LENGTH + 1)).all()  # each alone: no loss counts
    assert loader.documents_at(int(gone[0]), 1) == [("web", ())]


def test_an_id_beyond_the_vocabulary_in_a_store_names_its_url(
    published: str, tmp_path: Path
) -> None:
    remote = replace(open_plan(published), vocab_size=1)
    message = (
        rf"^{published}/packed/\w+/part-\d+.arrow is damaged .* but the tokenizer has 1 tokens; "
        rf"delete {published}/packed/\w+ and publish the plan again: `assay mix .*`$"
    )
    with pytest.raises(ValueError, match=message):
        Loader(remote, ShardCache(tmp_path / "cache")).batch(0, 4)


def test_a_local_part_is_skipped_too(plan: Plan, whole: np.ndarray, tmp_path: Path) -> None:
    place = tmp_path / "plan"
    list(publish(plan, str(place)))
    local = open_plan(place)
    _, gone = broken(plan, str(place))
    batch = Loader(local, on_damage="skip").batch(0, plan.num_windows)
    assert [skip.position for skip in batch.skipped] == gone.tolist()
    kept = np.setdiff1d(np.arange(plan.num_windows), gone)
    assert np.array_equal(batch.tokens[kept], whole[kept])


def test_a_cache_smaller_than_a_part_says_so(published: str, tmp_path: Path) -> None:
    with pytest.raises(CacheFull, match="no room for the .*; raise `max_bytes`"):
        read_all(open_plan(published), ShardCache(tmp_path / "cache", 100))


def test_a_store_that_does_not_answer_is_no_damage(
    plan: Plan, published: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(url: str, path: Path) -> None:
        raise OSError(5, "503, 6 times; call again later", url)

    monkeypatch.setattr(objects, "download", refuse)
    loader = Loader(open_plan(published), ShardCache(tmp_path / "cache"), on_damage="skip")
    with pytest.raises(OSError, match="503, 6 times"):
        loader.batch(0, 8)


def test_what_could_not_be_fetched_ahead_is_fetched_again(
    published: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refusals, real = [503], objects.download

    def download(url: str, path: Path) -> None:
        if refusals:
            raise OSError(5, f"{refusals.pop()}; call again later", url)
        real(url, path)

    def idle() -> None:
        for thread in threading.enumerate():
            if thread.name == "fetch-ahead":
                thread.join(30)

    cache = ShardCache(tmp_path / "cache")
    folder = open_plan(published).sources[0].folder
    parts = OpenParts(LENGTH, cache)
    keys = [(folder, number) for number in range(2)]
    monkeypatch.setattr(objects, "download", download)
    for fetched in (0, 1):
        parts.keep(keys[:1], [])
        idle()
        assert cache.fetched == fetched
    refusals.append(503)
    parts.keep(keys, [])
    idle()
    assert (cache.fetched, refusals) == (1, [])
    parts.part(*keys[1])  # asks the store itself
    assert cache.fetched == 2
    parts.close()


def test_a_group_of_all_parts_has_the_fingerprint_of_no_groups(plan: Plan) -> None:
    sources = tuple(replace(s, parts_per_group=len(s.windows)) for s in plan.sources)
    assert replace(plan, sources=sources).fingerprint != plan.fingerprint
