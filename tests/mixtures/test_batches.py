"""Batches against what a window is, told from the rows of its part one id after the other."""

from __future__ import annotations

import multiprocessing
import pickle
import random
import threading
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from mixture_corpus import Doc, Tiny, write_corpus

from mixtures import masking
from mixtures.layout import POLICIES
from mixtures.loader import Loader
from mixtures.packed import PADDED
from mixtures.plan import Plan, make_plan
from pipeline import forgotten, schema
from pipeline.files import part_name

THREADS = Tiny(
    [Doc(f"sentence {n}, " + "and more of it " * (n % 5), source=f"t{n // 3}") for n in range(60)],
    name="threads",
)
LONE = Tiny([Doc(f"中文句子，第{n}句。" * (1 + n % 3), "zh") for n in range(40)], name="lone")
GONE = (3, 4, 40)  # of THREADS
LENGTH, PACKED_LENGTH = 32, 96


@pytest.fixture(scope="module", params=sorted(POLICIES))
def plan(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Plan:
    """Two sources, one in groups and with forgotten documents, read for some 3 epochs as thirds of
    the packed windows."""
    root = tmp_path_factory.mktemp(request.param)
    write_corpus(root / "threads", THREADS)
    write_corpus(root / "lone", LONE)
    path = root / "mixture.yaml"
    spec = {
        "corpora": {"threads": "threads", "lone": "lone"},
        "sequence_length": LENGTH,
        "packed_length": PACKED_LENGTH,
        "packing": request.param,
        "unique": "none",
        "sources": {
            "threads": {"from": "threads", "group": "source", "max_epochs": 9},
            "lone": {"from": "lone", "max_epochs": 9},
        },
    }
    path.write_text(yaml.safe_dump(spec), "utf-8")
    make_plan(path, 20_000)
    names = [bytes.fromhex(THREADS.id(n)) for n in GONE]
    rows = [
        {"id": name, "content_hash": THREADS.docs[n].content, "why": "named"}
        for n, name in zip(GONE, names, strict=True)
    ]
    forgotten.add(root / "threads", pa.Table.from_pylist(rows, schema.FORGOTTEN), "asked", 5)
    masking.mask(root / "threads", pa.array(names, schema.HASH))
    return make_plan(path, 20_000)


@pytest.fixture(scope="module")
def windows(plan: Plan) -> list[tuple[list[int], list[int], list[bytes]]]:
    """Of each position: tokens, document numbers, ids by number."""
    places = Loader(plan).places(0, plan.num_windows)
    parts: dict[Path, list[dict[str, list]]] = {}
    found = []
    for source, part, window in zip(places.source, places.part, places.window, strict=True):
        path = Path(plan.sources[source].folder) / part_name(int(part), "arrow")
        if path not in parts:
            parts[path] = pa.ipc.open_file(str(path)).read_all().to_pylist()
        packed, piece = divmod(int(window), PACKED_LENGTH // LENGTH)
        found.append(window_of(parts[path][packed], piece * LENGTH))
    return found


def window_of(row: dict[str, list], begin: int) -> tuple[list[int], list[int], list[bytes]]:
    """The ids begin .. begin + LENGTH of a packed row: a document begins where one starts that does
    not follow the one before, and each id of padding and of what is gone is alone."""
    gone = {bytes.fromhex(THREADS.id(n)) for n in GONE} | {PADDED}
    owners = np.searchsorted(row["starts"], np.arange(PACKED_LENGTH + 1), side="right") - 1
    follows = row.get("follows") or [False] * len(row["starts"])
    alone = [row["documents"][owner] in gone for owner in owners]
    numbers: list[int] = []
    ids: list[bytes] = []
    for at in range(begin, begin + LENGTH + 1):
        starts = at in row["starts"] and not follows[owners[at]]
        if at == begin or starts or alone[at] or alone[at - 1]:
            ids.append(row["documents"][owners[at]])
        numbers.append(len(ids) - 1)
    return row["ids"][begin : begin + LENGTH + 1], numbers, ids


@given(st.data())
@settings(max_examples=30, deadline=None)
def test_batches_are_their_windows(plan: Plan, windows: list, data: st.DataObject) -> None:
    position = data.draw(st.integers(0, plan.num_windows))
    count = data.draw(st.integers(0, plan.num_windows - position))
    batch, expected = Loader(plan).batch(position, count), windows[position : position + count]
    assert batch.tokens.dtype == np.int64
    assert batch.documents.dtype == np.int32
    assert batch.tokens.shape == batch.documents.shape == (count, LENGTH + 1)
    assert batch.tokens.tolist() == [tokens for tokens, _, _ in expected]
    assert batch.documents.tolist() == [numbers for _, numbers, _ in expected]
    assert [[name.tobytes() for name in ids] for ids in batch.ids] == [ids for *_, ids in expected]


def test_what_is_gone_padded_and_grouped_is_there(plan: Plan, windows: list) -> None:
    """Else the test above would show less than it says."""
    names = {name for _, _, ids in windows for name in ids}
    assert {bytes.fromhex(THREADS.id(n)) for n in GONE} <= names
    assert (PADDED in names) == any(source.loss.padding for source in plan.sources)
    everyone = [ids for _, ids in Loader(plan).ids_at(0, plan.num_windows)]
    assert any(len(ids) < len(all_) for (*_, ids), all_ in zip(windows, everyone, strict=True))
    assert plan.num_windows == 625


def test_documents_are_found_when_they_are_asked_for(plan: Plan) -> None:
    batch = Loader(plan).batch(3, 5)
    assert "_found" not in vars(batch)
    assert batch.documents is batch.documents
    assert "_found" in vars(batch)


def test_a_batch_goes_to_another_process(plan: Plan) -> None:
    """Its parts are not mapped there."""
    batch = Loader(plan).batch(3, 5)
    sent = pickle.loads(pickle.dumps(batch))  # ours
    assert np.array_equal(sent.tokens, batch.tokens)
    assert np.array_equal(sent.documents, batch.documents)
    assert [ids.tolist() for ids in sent.ids] == [ids.tolist() for ids in batch.ids]
    assert sent.skipped == ()


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")  # that it forks is the test
def test_batches_of_threads_in_a_process_that_forks_and_closes(plan: Plan, windows: list) -> None:
    """cached_property had one lock for all batches: a fork while a thread held it hung. `close` met
    a thread that was reading, and a KeyError came of it."""
    loader, wrong, stop = Loader(plan), list[int](), threading.Event()

    def read(seed: int) -> None:
        chosen = random.Random(seed)
        while not stop.is_set():
            at = chosen.randrange(plan.num_windows)
            try:
                if loader.window(at).documents[0].tolist() != windows[at][1]:
                    wrong.append(at)
            except Exception:
                wrong.append(at)
                raise
            if chosen.random() < 0.05:
                loader.close()

    threads = [threading.Thread(target=read, args=(seed,)) for seed in range(3)]
    for thread in threads:
        thread.start()
    forks = []
    for _ in range(10):
        fork = multiprocessing.get_context("fork").Process(target=touch, args=(plan,))
        fork.start()
        forks.append(fork)
    for fork in forks:
        fork.join(60)
    stop.set()
    for thread in threads:
        thread.join()
    assert [fork.exitcode for fork in forks] == [0] * 10
    assert wrong == []


def touch(plan: Plan) -> None:
    assert Loader(plan).batch(0, 8).documents.shape == (8, LENGTH + 1)


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")  # that it forks is the test
@pytest.mark.parametrize("made_by", ["_scheduled", "_hash"])
def test_a_fork_while_a_thread_makes_what_a_plan_keeps(
    plan: Plan, monkeypatch: pytest.MonkeyPatch, made_by: str
) -> None:
    """A worker of a DataLoader, forked while a thread asks for the schedule of another plan:
    cached_property had one lock for all of them, and the worker waited for it for ever."""
    inside, stop, plain = threading.Event(), threading.Event(), getattr(Plan, made_by)

    def slow(of: Plan) -> object:
        if threading.current_thread() is thread:
            inside.set()
            stop.wait(60)
        return plain(of)

    monkeypatch.setattr(Plan, made_by, slow)
    name = {"_scheduled": "schedule", "_hash": "fingerprint"}[made_by]
    thread = threading.Thread(target=getattr, args=(replace(plan), name))
    thread.start()
    assert inside.wait(60)
    fork = multiprocessing.get_context("fork").Process(target=asked, args=(replace(plan), name))
    fork.start()
    fork.join(30)
    hangs = fork.exitcode is None
    fork.kill()
    stop.set()
    thread.join()
    assert not hangs
    assert fork.exitcode == 0


def asked(plan: Plan, name: str) -> None:
    getattr(plan, name)
