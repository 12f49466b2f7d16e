from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mixture_corpus import TOKENIZER, VOCAB_SIZE, write_tokens

from mixtures import open_parts
from mixtures.batch import Batch
from mixtures.loader import Loader
from mixtures.loader_state import StateError
from mixtures.packed import Packing, folder_of
from mixtures.packing import pack
from mixtures.part import Part
from mixtures.pieces import positions_of
from mixtures.plan import Plan, PlannedSource, plan_from_dict
from pipeline.files import part_number

LENGTH = 4


def make_plan(
    root: Path,
    documents: dict[str, int],
    weights: dict[str, float],
    tokens: int,
    seed: int = 17,
    parts_per_group: int = 2,
) -> Plan:
    """A plan over packed sources of as many documents of 5 tokens each, several parts a source."""
    sources = []
    for at, (name, num) in enumerate(documents.items()):
        texts = [[1_000 * at + n] * 5 for n in range(1, num + 1)]
        packing = Packing(seed, LENGTH, TOKENIZER, "", part_tokens=60)
        packed = pack(root / name, write_tokens(root / name, texts, 7), packing)
        sources.append(
            PlannedSource(
                name=name,
                corpus=name,
                folder=str(folder_of(root / name, packed.selection)),
                selection=packed.selection,
                windows=packed.windows,
                parts_per_group=parts_per_group,
                claimed=num,
                copies=0,
                near=0,
                documents=num,
                num_tokens=packed.tokens_in,
                num_bytes=0,
                requested=weights[name],
                realised=weights[name],
                max_epochs=100.0,
                epochs=1.0,
            )
        )
    return Plan(
        tokens=tokens,
        sequence_length=LENGTH,
        seed=seed,
        tokenizer=TOKENIZER,
        tokenizer_file="tokenizer.json",
        vocab_size=VOCAB_SIZE,
        bos_id=None,
        eos_id=0,
        heldout=0,
        sources=tuple(sources),
    )


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> Plan:
    """Two sources, shares 3:1; `small` is gone through many times."""
    root = tmp_path_factory.mktemp("loader")
    return make_plan(root, {"large": 40, "small": 9}, {"large": 0.75, "small": 0.25}, 2_000)


def same(one: Batch, two: Batch) -> bool:
    return (
        np.array_equal(one.tokens, two.tokens)
        and np.array_equal(one.documents, two.documents)
        and [i.tolist() for i in one.ids] == [i.tolist() for i in two.ids]
    )


def test_every_window_once_per_epoch_in_a_new_order(plan: Plan) -> None:
    """litgpt #1712, OLMo #650: later epochs cover all; litData #363: epochs are per source."""
    places = Loader(plan).places(0, len(Loader(plan)))
    for index, source in enumerate(plan.sources):
        mine = places.source == index
        seen = list(zip(places.part[mine].tolist(), places.window[mine].tolist(), strict=True))
        every = [(p, w) for p, num in enumerate(source.windows) for w in range(num)]
        epochs = [seen[at : at + len(every)] for at in range(0, len(seen), len(every))]
        assert len(epochs) > 2
        assert [sorted(epoch) for epoch in epochs[:-1]] == [every] * (len(epochs) - 1)
        assert len(set(epochs[-1])) == len(epochs[-1])
        assert epochs[0] != epochs[1]
        assert places.epoch[mine].tolist() == [at // len(every) for at in range(len(seen))]


def test_shares_are_met_at_every_prefix(plan: Plan) -> None:
    source = Loader(plan).places(0, len(Loader(plan))).source
    owed = 0.25 * np.arange(1, len(source) + 1)
    assert float(np.abs(np.cumsum(source == 1) - owed).max()) < 1


@given(st.data())
@settings(max_examples=15, deadline=None)
def test_resume_anywhere_equals_the_uninterrupted_sequence(plan: Plan, data: st.DataObject) -> None:
    """datasets #7901: no loss, no repeat; datasets #8308: also at the second resume."""
    whole = Loader(plan).batch(0, plan.num_windows)
    stops = data.draw(
        st.lists(st.integers(0, plan.num_windows), min_size=1, max_size=4).map(sorted)
    )
    state = Loader(plan).state(0)
    for stop in stops:
        loader = Loader(plan_from_dict(json.loads(json.dumps(plan.to_dict()))))  # a new process
        begin = loader.resume(json.loads(json.dumps(state)))
        part = loader.batch(begin, stop - begin)
        assert np.array_equal(part.tokens, whole.tokens[begin:stop])
        assert [i.tolist() for i in part.ids] == [i.tolist() for i in whole.ids[begin:stop]]
        state = loader.state(stop)


@given(st.integers(1, 9), st.integers(1, 5))
@settings(max_examples=15, deadline=None)
def test_any_number_of_ranks_sees_the_same_global_sequence(
    plan: Plan, ranks: int, per_rank: int
) -> None:
    """Automodel #533, torchtitan #811: positions are global, never local to a rank."""
    whole = Loader(plan).batch(0, plan.num_windows)
    loaders = [Loader(plan) for _ in range(ranks)]
    step = ranks * per_rank
    for first in range(0, plan.num_windows - step + 1, step):
        got = [loader.batch(first + r * per_rank, per_rank) for r, loader in enumerate(loaders)]
        tokens = np.concatenate([batch.tokens for batch in got])
        assert np.array_equal(tokens, whole.tokens[first : first + step])


@pytest.mark.parametrize("position", [0, 7, 250, 492])
def test_resume_opens_what_the_next_windows_need(
    plan: Plan, position: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """torchtune #2490: restoring a state walked the whole data set. Parts opened do not grow with
    the position, and are those of the windows that are read."""
    opened: list[tuple[str, int]] = []

    def count(path: Path, length: int, forgotten: frozenset[bytes]) -> Part:
        opened.append((str(path.parent), part_number(path)))
        return Part(path, length, forgotten)

    places = Loader(plan).places(position, 8)
    needed = zip(places.source.tolist(), places.part.tolist(), strict=True)
    fresh = Loader(plan)
    monkeypatch.setattr(open_parts, "Part", count)
    fresh.batch(fresh.resume({"position": position, "fingerprint": plan.fingerprint}), 8)
    assert sorted(opened) == sorted({(plan.sources[s].folder, p) for s, p in needed})
    assert len(opened) <= 4  # parts of a group, for each of two sources


def test_documents_of_a_window(plan: Plan) -> None:
    """Tokens of one document are equal here, so borders are where the token changes."""
    loader = Loader(plan)
    batch = loader.batch(0, 50)
    assert batch.tokens.shape == batch.documents.shape == (50, LENGTH + 1)
    assert batch.tokens.dtype == np.int64
    assert batch.documents.dtype == np.int32
    changes = np.diff(batch.tokens, axis=1) != 0
    assert np.array_equal(np.diff(batch.documents, axis=1), changes.astype(np.int32))
    assert batch.documents[:, 0].tolist() == [0] * 50
    assert [len(ids) for ids in batch.ids] == (batch.documents[:, -1] + 1).tolist()
    assert same(loader.window(7), loader.batch(7, 1))


def test_from_steps_to_documents_and_back(plan: Plan) -> None:
    loader = Loader(plan)
    seen = loader.documents_at(0, plan.num_windows)
    document = seen[3][1][0]
    assert positions_of(loader, document) == [
        at for at, (_, ids) in enumerate(seen) if document in ids
    ]
    assert {name for name, _ in seen} == {"large", "small"}
    assert positions_of(loader, "00" * 16) == []


def test_two_processes_build_the_same_order_and_the_seed_matters(tmp_path: Path) -> None:
    """Megatron-Bridge #4565: an unseeded shuffle; ms-swift #10099: a seed that is ignored."""
    sizes, weights = {"a": 30}, {"a": 1.0}
    one, two, other = (
        Loader(make_plan(tmp_path / name, sizes, weights, 400, seed)).batch(0, 100)
        for name, seed in (("one", 1), ("two", 1), ("other", 2))
    )
    assert same(one, two)
    assert not np.array_equal(one.tokens, other.tokens)


def test_a_longer_run_goes_on_where_the_shorter_one_stopped(plan: Plan) -> None:
    longer = plan_from_dict(plan.to_dict() | {"tokens": 3_000})
    assert longer.fingerprint == plan.fingerprint
    short, long = Loader(plan), Loader(longer)
    assert same(short.batch(0, plan.num_windows), long.batch(0, plan.num_windows))


def test_a_state_of_another_plan_is_refused_by_name_of_what_differs(
    plan: Plan, tmp_path: Path
) -> None:
    """OLMo-core: file names and sizes alone, so contents that changed went unseen; litData #263:
    a crash where the data set changed. Here both are told, and going on is a choice."""
    state = json.loads(json.dumps(Loader(plan).state(5)))
    assert (state["position"], state["fingerprint"]) == (5, plan.fingerprint)
    other = plan_from_dict(plan.to_dict() | {"seed": 18})
    with pytest.raises(StateError, match=f"plan {plan.fingerprint}.*seed was 17, is 18"):
        Loader(other).resume(state)
    assert Loader(other).resume(state, allow_other_data=True) == 5

    swapped = make_plan(tmp_path, {"large": 41, "other": 9}, {"large": 0.5, "other": 0.5}, 2_000)
    with pytest.raises(StateError) as told:
        Loader(swapped).resume(state)
    for part in (
        "source 'small' is gone; source 'other' is new; source 'large' holds other documents",
        f"({plan.sources[0].num_windows} windows), now",
        "source 'large': share was 3 of 4, is 1 of 2",
        "`allow_other_data`",
    ):
        assert part in str(told.value)
    assert Loader(plan).resume({"position": 7, "fingerprint": plan.fingerprint}) == 7  # of earlier


def test_a_token_id_beyond_the_vocabulary_is_named(tmp_path: Path) -> None:
    """lit-llama #306: an IndexError of the model, or an assertion on the device."""
    plan = make_plan(tmp_path, {"a": 30}, {"a": 1.0}, 200)
    file = Path(plan.sources[0].folder) / "part-00001.arrow"
    whole = file.read_bytes()
    at = whole.index(np.full(5, plan_ids(file)[0], np.uint16).tobytes())
    file.write_bytes(whole[: at + 1] + b"\xff" + whole[at + 2 :])
    message = (
        rf"{file} is damaged .*: window \d+ holds token id 65\d\d\d, but the tokenizer has 60000 "
        rf"tokens; delete the folder {file.parent}, and it will be packed again"
    )
    with pytest.raises(ValueError, match=message):
        Loader(plan).batch(0, plan.num_windows)


def plan_ids(file: Path) -> list[int]:
    """The ids of the first window of a packed part; documents are five equal ids."""
    ids: list[int] = pa.ipc.open_file(str(file)).get_batch(0).column("ids")[0].as_py()
    return [ids[-1]]


def test_the_end_of_the_plan_is_an_error_with_its_remedy(plan: Plan) -> None:
    assert len(Loader(plan)) == 500
    with pytest.raises(IndexError, match=r"windows 499 to 500: the plan has 500 windows \(2,000"):
        Loader(plan).batch(499, 2)
