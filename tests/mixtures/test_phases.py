"""Phases: which window comes at which position, over the borders of phases."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import planned_by_hand
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from mixture_corpus import Doc, Tiny, write_corpus

from mixtures.commands import mix
from mixtures.loader import Loader
from mixtures.phases import Phase, ends
from mixtures.plan import Plan, make_plan, plan_from_dict
from mixtures.schedule import Schedule, make_schedule
from mixtures.select import select
from mixtures.spec import load_mixture
from pipeline.config import ConfigError

WEIGHTS = st.lists(st.integers(0, 9), min_size=3, max_size=3).filter(any)
PHASES = st.lists(st.tuples(st.integers(1, 70), WEIGHTS), min_size=1, max_size=4)


def schedule_of(phases: list[tuple[int, list[int]]]) -> Schedule:
    """Of (length, weights) of each phase."""
    begins = np.cumsum([0, *(length for length, _ in phases)]).tolist()
    weights = [dict(zip("abc", map(float, w), strict=True)) for _, w in phases]
    return make_schedule(list(zip(begins, weights, strict=False)))


@given(PHASES)
@settings(max_examples=60, deadline=None)
def test_every_prefix_of_a_phase_is_within_one_window_of_its_quota(
    phases: list[tuple[int, list[int]]],
) -> None:
    source, _ = schedule_of(phases).locate(np.arange(sum(length for length, _ in phases)))
    begin = 0
    for length, weights in phases:
        here = source[begin : begin + length]
        for index, weight in enumerate(weights):
            seen = np.cumsum(here == index) * sum(weights)
            assert np.abs(seen - weight * np.arange(1, length + 1)).max() < sum(weights)
            assert weight or index not in here
        begin += length


@given(PHASES, st.integers(0, 400))
@settings(max_examples=60, deadline=None)
def test_cursors_go_on_over_phases(phases: list[tuple[int, list[int]]], end: int) -> None:
    """Megatron-LM #457: changing the blend in mid-run lost some of A and repeated some of B."""
    schedule = schedule_of(phases)
    source, number = schedule.locate(np.arange(end))
    for index in range(3):
        assert number[source == index].tolist() == list(range(schedule.of(index, end)))


@given(PHASES, st.lists(st.integers(0, 10**12), min_size=1, max_size=9))
@settings(max_examples=30, deadline=None)
def test_positions_alone_and_together(
    phases: list[tuple[int, list[int]]], positions: list[int]
) -> None:
    schedule = schedule_of(phases)
    together = schedule.locate(np.array(positions))
    alone = [schedule.locate(np.array([position])) for position in positions]
    assert [column.tolist() for column in together] == [
        [int(found[at][0]) for found in alone] for at in range(2)
    ]


def test_megatron_457_from_1_to_1_to_2_to_1() -> None:
    schedule = make_schedule([(0, {"a": 1, "b": 1}), (4, {"a": 2, "b": 1})])
    source, number = schedule.locate(np.arange(10))
    assert source.tolist() == [0, 1, 0, 1, 0, 1, 0, 0, 1, 0]
    assert number.tolist() == [0, 0, 1, 1, 2, 2, 3, 4, 3, 5]


def test_an_absent_source_changes_nothing_of_a_phase() -> None:
    """So a source may come in later, and what was consumed stays."""
    alone = make_schedule([(0, {"a": 0.61, "b": 0.39})])
    later = make_schedule(
        [(0, {"a": 0.61, "new": 0.0, "b": 0.39}), (500, {"a": 1, "new": 1, "b": 1})]
    )
    there = np.array([0, 2])[alone.locate(np.arange(500))[0]]
    assert later.locate(np.arange(500))[0].tolist() == there.tolist()


def test_a_weight_that_cannot_be_met_names_its_phase() -> None:
    with pytest.raises(ValueError, match="phase 2: source 'b': weight 1e-06"):
        make_schedule([(0, {"a": 1, "b": 1}), (4, {"a": 1, "b": 1e-6})])


@pytest.mark.parametrize(
    ("untils", "tokens", "found"),
    [
        (["1k", "2k"], 2_000, [63, 125]),  # 62.5 windows: the 63rd holds the last token
        (["1k", "2k"], 1_999, [63, 125]),  # of the same number of windows
        (["1k", None], 1_009, [63, 64]),
        ([None], 16, [1]),
    ],
)
def test_a_phase_ends_with_the_window_of_its_last_token(
    untils: list[Any], tokens: int, found: list[int]
) -> None:
    assert ends([Phase(until=until) for until in untils], tokens, 16) == found


@pytest.mark.parametrize(
    ("untils", "tokens", "message"),
    [
        (["1k", "2k"], 3_000, "the last phase ends at 2,000 tokens, the run at 3,000; make them"),
        (["1k", "2k"], 1_500, "the last phase ends at 2,000 tokens, the run at 1,500; make them"),
        (["1k", None], 1_000, "the run ends at 1,000 tokens, before phase 2 begins (`until: 1000`"),
        (["1k", "2k", None], 900, "the run ends at 900 tokens, before phase 2 begins (`until: 10"),
    ],
)
def test_phases_that_no_run_of_this_length_has(
    untils: list[Any], tokens: int, message: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        ends([Phase(until=until) for until in untils], tokens, 16)
    assert message in str(caught.value)


# --- plans ----------------------------------------------------------------------------------------

SOURCES: dict[str, Any] = {
    "english": {"from": "web", "where": "lang = 'en'", "weight": 3},
    "chinese": {"from": "web", "where": "lang = 'zh'", "weight": 1},
}
DOCS = [
    *(Doc(f"an English sentence with the number {n}") for n in range(30)),
    *(Doc(f"中文句子，第{n}句。", "zh") for n in range(30)),
]


def write(root: Path, phases: Any = None, sources: dict[str, Any] = SOURCES) -> Path:
    """A mixture of a corpus of 60 documents; windows of 16 tokens."""
    if not (root / "web").exists():
        write_corpus(root / "web", Tiny(DOCS))
    path = root / "mixture.yaml"
    spec = {"corpora": {"web": "web"}, "sequence_length": 16, "seed": 3, "sources": sources}
    path.write_text(yaml.safe_dump(spec | {"phases": phases or []}, sort_keys=False), "utf-8")
    return path


TWO: list[dict[str, Any]] = [
    {"until": 800},
    {"until": 1_600, "weights": {"english": 1, "chinese": 3}},
]


def test_a_plan_records_windows_shares_and_epochs(tmp_path: Path) -> None:
    plan = make_plan(write(tmp_path, phases=TWO), 1_600)
    assert [(p.end, p.requested) for p in plan.phases] == [(50, (0.75, 0.25)), (100, (0.25, 0.75))]
    english, chinese = plan.sources
    seen = plan.schedule.windows_until(100).tolist()
    assert sum(seen) == 100
    assert abs(seen[0] - 50) < 2
    assert [english.requested, chinese.requested] == [0.5, 0.5]
    assert [english.realised, chinese.realised] == [seen[0] / 100, seen[1] / 100]
    assert english.epochs == seen[0] / english.num_windows
    again = plan_from_dict(json.loads(json.dumps(plan.to_dict())))
    assert (again, again.fingerprint) == (plan, plan.fingerprint)


def test_fingerprints_of_phases(tmp_path: Path) -> None:
    none = make_plan(write(tmp_path), 1_600, pack=False).fingerprint
    same: list[Any] = [{}, {"until": 1_600}, {"weights": {"chinese": 1, "english": 3}}]
    for one in same:
        plan = make_plan(write(tmp_path, phases=[one]), 1_600, pack=False)
        assert (plan.fingerprint, plan.phases) == (none, ())
    two = make_plan(write(tmp_path, phases=TWO), 1_600, pack=False).fingerprint
    longer = [TWO[0], TWO[1] | {"until": 2_400}]
    assert make_plan(write(tmp_path, phases=longer), 2_400, pack=False).fingerprint == two
    later = [TWO[0] | {"until": 816}, TWO[1]]
    other = [TWO[0], TWO[1] | {"weights": {"english": 1, "chinese": 2}}]
    others = [make_plan(write(tmp_path, p), 1_600, pack=False) for p in (later, other)]
    assert len({none, two, *(plan.fingerprint for plan in others)}) == 4


def test_a_fingerprint_that_stands_in_checkpoints() -> None:
    """Made by the version before phases: `Plan.fingerprint` of the same numbers."""
    shares = {"a": 0.7, "b": 0.2, "c": 0.1}
    plan = planned_by_hand.plan(
        [planned_by_hand.source(name, requested=share) for name, share in shares.items()], [], 9_000
    )
    assert plan.fingerprint == GOLDEN


GOLDEN = "61f38c07a55992ec2410dc75e839099c"


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> Plan:
    """Four phases: one source alone, both, the other alone, both; each is gone through often."""
    phases = [
        {"until": 480, "weights": {"english": 1, "chinese": 0}},
        {"until": 1_200},
        {"until": 1_500, "weights": {"english": 0, "chinese": 1}},
        {"weights": {"english": 2, "chinese": 3}},
    ]
    sources = {name: source | {"max_epochs": 99} for name, source in SOURCES.items()}
    return make_plan(write(tmp_path_factory.mktemp("phases"), phases, sources), 9_600)


def test_no_window_comes_twice_in_an_epoch(plan: Plan) -> None:
    places = Loader(plan).places(0, plan.num_windows)
    for index, source in enumerate(plan.sources):
        mine = places.source == index
        assert places.epoch[mine].tolist() == [at // source.num_windows for at in range(mine.sum())]
        seen = list(zip(places.part[mine].tolist(), places.window[mine].tolist(), strict=True))
        epochs = [
            seen[at : at + source.num_windows] for at in range(0, len(seen), source.num_windows)
        ]
        assert len(epochs) > 2
        assert all(len(set(epoch)) == len(epoch) for epoch in epochs)
        assert len({frozenset(epoch) for epoch in epochs[:-1]}) == 1
    assert set(places.source[:30].tolist()) == {0}
    assert set(places.source[75:94].tolist()) == {1}


@given(st.data())
@settings(max_examples=15, deadline=None)
def test_resumed_over_borders_with_other_ranks(plan: Plan, data: st.DataObject) -> None:
    whole = Loader(plan).batch(0, plan.num_windows)
    stops = sorted(data.draw(st.lists(st.integers(0, plan.num_windows), max_size=4)))
    got: list[np.ndarray] = []
    state = Loader(plan).state(0)
    for begin, end in pairwise([0, *stops, plan.num_windows]):
        ranks = data.draw(st.sampled_from([1, 2, 4, 8]))
        loaders = [
            Loader(plan_from_dict(json.loads(json.dumps(plan.to_dict())))) for _ in range(ranks)
        ]
        assert loaders[0].resume(state) == begin
        got += [loaders[at % ranks].window(at).tokens[0] for at in range(begin, end)]
        state = json.loads(json.dumps(loaders[-1].state(end)))
    assert np.array_equal(np.stack(got), whole.tokens)


def test_mix_shows_phases(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert mix([str(write(tmp_path, phases=TWO)), "--tokens", "1.6k", "--dry-run"]) == 0
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    at = lines.index("phase windows until token source asked gets tokens epochs")
    windows = [source.num_windows for source in make_plan(tmp_path / "mixture.yaml", 1_600).sources]
    first = [38, 12]
    assert lines[at + 1] == (
        f"1 0 to 49 800 english 75.00 % 76.00 % 608 0.00 to {first[0] / windows[0]:.2f}"
    )
    assert lines[at + 4].startswith("2 50 to 99 1,600 chinese 75.00 % 74.00 % 592 ")


def test_the_end_of_the_last_phase_is_the_length_of_the_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(write(tmp_path, phases=[TWO[0], TWO[1] | {"until": "1.6k"}]))
    assert mix([path, "--dry-run"]) == 0
    alone = capsys.readouterr().out
    assert mix([path, "--tokens", "1.6k", "--dry-run"]) == 0
    assert capsys.readouterr().out == alone


# --- sources that come in later -------------------------------------------------------------------

LATER: list[dict[str, Any]] = [
    {"until": 800, "weights": {"english": 3, "chinese": 1, "new": 0}},
    {"weights": {"english": 0, "chinese": 1, "new": 1}},
]
COPIES = [*DOCS, *(Doc(doc.text, "en", "qa", 0.9) for doc in DOCS[28:34])]
COPIES += [Doc(f"{'new ' * n}text", "en", "qa") for n in range(12)]


def selected(root: Path, phases: Any = None, **sources: Any) -> dict[str, list[int]]:
    """Numbers of the documents that each source gets."""
    tiny = Tiny(COPIES, pairs=[(0, 1), (2, 3)])
    if not (root / "web").exists():
        write_corpus(root / "web", tiny)
    path = write(root, phases, sources)
    path.write_text(f'{path.read_text("utf-8")}\nprefer: ["quality.score desc"]\n', "utf-8")
    found = select(load_mixture(path))
    return {name: tiny.numbers(documents.id) for name, documents in found.documents.items()}


def test_a_changed_predicate_is_a_source_of_its_own(tmp_path: Path) -> None:
    """What it selects may have been seen; what the others have stays theirs."""
    web = {name: s | {"where": s["where"] + " and source = 'web'"} for name, s in SOURCES.items()}
    new = {"from": "web", "where": "lang = 'en'", "weight": 0}
    before = selected(tmp_path, **web)
    assert (before["english"], before["chinese"]) == ([0, 2, *range(4, 30)], [*range(30, 60)])
    after = selected(tmp_path, LATER, **web, new=new)
    # 60 and 61 are better copies of 28 and 29; 62 to 65 are copies of what `chinese` has
    assert after == before | {"new": [0, 2, *range(4, 28), 60, 61, *range(66, 78)]}
    with pytest.raises(ConfigError, match="30 documents selected by more than one source"):
        selected(tmp_path, **web, new=new | {"weight": 1})
    together = [LATER[0], {"weights": {"english": 1, "chinese": 1, "new": 1}}]
    with pytest.raises(ConfigError, match="28 documents selected by .* by english and new"):
        selected(tmp_path, together, **web, new=new)


def test_a_later_source_takes_what_is_left(tmp_path: Path) -> None:
    """With `prefer` it has the better copies, and would take them from a run that read others."""
    web = {name: s | {"where": s["where"] + " and source = 'web'"} for name, s in SOURCES.items()}
    new = {"from": "web", "where": "source = 'qa'"}
    before = selected(tmp_path, **web)
    assert selected(tmp_path, **web, new=new)["chinese"] == [*range(34, 60)]
    late = [LATER[0], {"weights": {"english": 0, "chinese": 1, "new": 1}}]
    assert selected(tmp_path, late, **web, new=new) == before | {"new": [60, 61, *range(66, 78)]}


@given(st.data())
@settings(max_examples=10, deadline=None)
def test_what_a_run_has_read_does_not_depend_on_later_sources(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    root = tmp_path_factory.mktemp("later")
    web = {name: s | {"where": s["where"] + " and source = 'web'"} for name, s in SOURCES.items()}
    modulus = data.draw(st.integers(1, 4))
    new: dict[str, Any] = {"from": "web", "where": f"num_bytes % {modulus} = 0", "max_epochs": 99}
    weights = data.draw(st.lists(st.integers(0, 2), min_size=2, max_size=2))
    if any(weights):  # read beside it, and so nothing of theirs
        new["where"] += " and source = 'qa'"
    phases = [LATER[0], {"weights": dict(zip(SOURCES, weights, strict=True)) | {"new": 1}}]
    before = selected(root, **web)
    after = selected(root, phases, **web, new=new)
    assert {name: after[name] for name in before} == before


def test_the_plan_says_what_was_seen_before(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    new = {"from": "web", "where": "lang = 'en'", "weight": 0, "max_epochs": 99}
    web = {name: source | {"max_epochs": 99} for name, source in SOURCES.items()}
    path = write(tmp_path, LATER, web | {"new": new})
    assert mix([str(path), "--tokens", "1.6k"]) == 0
    plan = make_plan(path, 1_600)
    read = {d for _, ids in Loader(plan).documents_at(0, 50) for d in ids}
    ids = {Tiny(DOCS).id(number) for number in range(30)}
    assert 0 < len(read & ids) < 30
    assert (
        f"new, which a later phase begins to read: {len(read & ids)} of its 30 documents were read "
        "before, by other sources\n"
    ) in capsys.readouterr().out
