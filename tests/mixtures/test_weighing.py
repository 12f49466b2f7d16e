"""From weights to shares of tokens: units, temperature, exact epochs, UniMax; and where it ends."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from mixture_corpus import Doc, Tiny, write_corpus

from mixtures import budget, weighing
from mixtures.commands import mix
from mixtures.edited import NO_CHANGES
from mixtures.epochs import ends_at
from mixtures.loader import Loader
from mixtures.phases import Phase
from mixtures.plan import Plan, make_plan, plan_from_dict
from mixtures.schedule import make_schedule, stretches
from mixtures.select import SourceCounts
from mixtures.spec import Mixture
from pipeline.config import ConfigError, check

# source -> documents, and tokens of each (letters and the end of text)
SIZES = {"books": (10, 64), "web": (160, 16), "chat": (80, 8)}


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("weighing")
    docs = [
        Doc(f"{n:03}" + name[0] * (tokens - 4), source=name)
        for name, (number, tokens) in SIZES.items()
        for n in range(number)
    ]
    write_corpus(root / "web", Tiny(docs))
    return root


def mixture(root: Path, file: str = "mixture.yaml", **changes: Any) -> Path:
    """A mixture of the three sources; `books_epochs=2` sets a key of a source, `seed=3` one of all;
    `books=None` leaves a source out."""
    sources: dict[str, Any] = {}
    for name in SIZES:
        if changes.pop(name, True) is not None:
            sources[name] = {"from": "web", "where": f"source = '{name}'"}
    spec: dict[str, Any] = {"corpora": {"web": "web"}, "sequence_length": 16, "unique": "none"}
    for key, value in changes.items():
        name, _, rest = key.partition("_")
        if name in sources:
            sources[name][rest] = value
        else:
            spec[key] = value
    path = root / file
    path.write_text(yaml.safe_dump(spec | {"sources": sources}, sort_keys=False), "utf-8")
    return path


def planned(root: Path, windows: int, **changes: Any) -> Plan:
    return make_plan(mixture(root, **changes), 16 * windows, pack=False)


def requested(plan: Plan) -> list[float]:
    return [source.requested for source in plan.sources]


def seen(plan: Plan) -> list[int]:
    """Windows of each source in the run."""
    found: list[int] = plan.schedule.windows_until(plan.num_windows).tolist()
    return found


# --- units ----------------------------------------------------------------------------------------


def test_a_share_of_documents_is_no_share_of_tokens(corpus: Path) -> None:
    """gradient-garden #104, LLM-Streamline #1: a mix by documents is another one by tokens."""
    plan = planned(corpus, 40, weigh_by="documents", web_weight=2)
    assert [source.asked for source in plan.sources] == [0.25, 0.5, 0.25]
    # tokens of one document are 64, 16 and 8
    assert requested(plan) == pytest.approx([64 / 104, 32 / 104, 8 / 104], abs=1e-12)
    for unit, asked in (("documents", [0.25, 0.5, 0.25]), ("bytes", [63 / 100, 30 / 100, 7 / 100])):
        shares = [getattr(source, f"realised_{unit}") for source in plan.sources]
        assert shares == pytest.approx(asked, rel=0.011)  # by the rounding of the schedule


def test_a_share_of_bytes(corpus: Path) -> None:
    """A document of n bytes has n + 1 tokens: short documents have more tokens a byte."""
    plan = planned(corpus, 40, weigh_by="bytes")
    ratios = np.array([64 / 63, 16 / 15, 8 / 7])
    assert requested(plan) == pytest.approx((ratios / ratios.sum()).tolist(), abs=1e-12)
    shares = [source.realised_bytes for source in plan.sources]
    assert shares == pytest.approx([1 / 3] * 3, rel=0.011)


def test_shares_of_tokens_are_as_before(corpus: Path) -> None:
    plan = planned(corpus, 40, web_weight=2)
    assert requested(plan) == [0.25, 0.5, 0.25]
    assert [source.asked for source in plan.sources] == [0.25, 0.5, 0.25]
    assert [source.by_budget for source in plan.sources] == [False] * 3


def test_documents_that_stand_twice_count_twice(corpus: Path) -> None:
    once = planned(corpus, 40, weigh_by="documents")
    twice = planned(corpus, 40, weigh_by="documents", books_repeats={1: 2})
    assert requested(twice) == requested(once)
    assert twice.sources[0].num_tokens == 2 * once.sources[0].num_tokens


def test_shares_of_tokens_where_windows_are_padded(corpus: Path) -> None:
    """Best-fit: a window has one document of 16 tokens, or two or three of 8."""
    half = "source = 'web' and text < '080'"
    plan = planned(corpus, 40, packing="best_fit", sequence_length=20, books=None, web_where=half)
    web, chat = plan.sources
    assert [web.num_windows, chat.num_windows] == [80, 40]  # 16 of 21, and 16 of 21
    assert [web.loss.padding, chat.loss.padding] == [80 * 5, 40 * 5]
    assert requested(plan) == [0.5, 0.5]
    plan = planned(corpus, 40, packing="best_fit", sequence_length=24, books=None)
    web, chat = plan.sources
    assert [web.num_windows, chat.num_windows] == [160, 27]  # 16 of 25, and 24 or 16 in the last
    assert [web.loss.padding, chat.loss.padding] == [160 * 9, 26 + 9]
    tokens = [web.packed_tokens / web.num_windows, chat.packed_tokens / chat.num_windows]
    asked = np.array([1 / tokens[0], 1 / tokens[1]])
    assert requested(plan) == pytest.approx((asked / asked.sum()).tolist())
    assert requested(plan)[0] == pytest.approx(0.6, abs=0.005)  # 24 to 16
    for source in plan.sources:
        assert source.requested_tokens == pytest.approx(0.5)
        assert source.realised_tokens == pytest.approx(0.5, rel=0.011)
    plain = planned(corpus, 40)
    assert [source.requested_tokens for source in plain.sources] == requested(plain)


# --- temperature ----------------------------------------------------------------------------------


def test_temperature_one_is_in_proportion_to_size(corpus: Path) -> None:
    tokens = np.array([640, 2_560, 640])
    assert requested(planned(corpus, 40, temperature=1)) == pytest.approx([1 / 6, 4 / 6, 1 / 6])
    for temperature in (2.0, 3.3, 100.0):
        lifted = tokens ** (1 / temperature)
        plan = planned(corpus, 40, temperature=temperature)
        assert requested(plan) == pytest.approx((lifted / lifted.sum()).tolist(), abs=1e-12)
    # 1 / 0.5: squares; and a weight multiplies
    assert requested(planned(corpus, 8, temperature=0.5)) == pytest.approx(
        [1 / 18, 16 / 18, 1 / 18]
    )
    plan = planned(corpus, 40, temperature=1, books_weight=4)
    assert requested(plan) == pytest.approx([4 / 9, 4 / 9, 1 / 9])


def test_temperature_over_documents(corpus: Path) -> None:
    plan = planned(corpus, 40, temperature=1, weigh_by="documents")
    assert [source.asked for source in plan.sources] == pytest.approx(
        [10 / 250, 160 / 250, 80 / 250]
    )
    assert requested(plan) == pytest.approx([1 / 6, 4 / 6, 1 / 6])  # one pool, whatever the unit


def test_temperature_in_phases(corpus: Path) -> None:
    phases = [{"until": 320}, {"weights": {"books": 1, "web": 1, "chat": 0}}]
    plan = planned(corpus, 40, temperature=1, phases=phases)
    shares = [phase.requested for phase in plan.phases]
    assert shares[0] == pytest.approx([1 / 6, 4 / 6, 1 / 6])
    assert shares[1] == pytest.approx([1 / 5, 4 / 5, 0])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"temperature": 0}, "key `temperature`: expected 0.1 or more"),
        ({"temperature": float("nan")}, "key `temperature`: expected "),
        ({"temperature": float("inf")}, "key `temperature`: expected "),
        ({"weigh_by": "windows"}, "key `weigh_by`: expected 'tokens', 'documents' or 'bytes'"),
        ({"short": "unimx"}, "did you mean `unimax`?"),
        (
            {"books_weight": 0},
            "source 'books' has weight 0; raise its `weight`, or leave the sourc",
        ),
    ],
)
def test_what_is_refused(corpus: Path, change: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as error:
        planned(corpus, 40, **change)
    assert message in str(error.value)


# --- exact epochs ---------------------------------------------------------------------------------


def test_exact_epochs_take_their_tokens_out_of_the_budget(corpus: Path) -> None:
    """Windows: 39 of books (640 tokens), 159 of web, 39 of chat."""
    plan = planned(corpus, 202, books_epochs=2, web_weight=3)
    assert [source.num_windows for source in plan.sources] == [39, 159, 39]
    assert seen(plan) == [78, 93, 31]
    assert [source.epochs for source in plan.sources] == [2, 93 / 159, 31 / 39]
    assert [source.by_budget for source in plan.sources] == [True, False, False]
    places = Loader(make_plan(mixture(corpus, books_epochs=2, web_weight=3), 3_232)).places(0, 202)
    mine = places.source == 0
    windows, times = np.unique(places.window[mine], return_counts=True)
    assert (windows.tolist(), set(times.tolist())) == ([*range(39)], {2})


def test_half_an_epoch_and_more_than_the_default_limit(corpus: Path) -> None:
    assert planned(corpus, 100, books_epochs=0.5).sources[0].epochs == pytest.approx(20 / 39)
    plan = planned(corpus, 300, books_epochs=5)
    assert (plan.sources[0].epochs, plan.sources[0].max_epochs) == (5, 5)


def test_exact_epochs_need_room(corpus: Path) -> None:
    with pytest.raises(ConfigError, match=r"`epochs` need 1,248 tokens, the run has 1,248; train "):
        planned(corpus, 78, books_epochs=2)
    everything = {"books_epochs": 2, "web_epochs": 1, "chat_epochs": 1}
    plan = planned(corpus, 276, **everything)
    assert seen(plan) == [78, 159, 39]
    message = (
        r"all sources have `epochs`, and need 4,416 tokens, the run has 4,640; train on as many"
    )
    with pytest.raises(ConfigError, match=message):
        planned(corpus, 290, **everything)
    with pytest.raises(ConfigError, match="source 'books' would have less than one window of this"):
        planned(corpus, 40, books_epochs=0.01)


def test_an_epoch_counts_unique_tokens(corpus: Path) -> None:
    """What stands twice is seen twice in one pass."""
    plan = planned(corpus, 200, books_repeats={1: 2}, books_epochs=2)
    books = plan.sources[0]
    assert (books.num_windows, books.unique_tokens, books.num_tokens) == (79, 640, 1_280)
    assert (books.epoch_windows, seen(plan)[0], books.epochs) == (39.5, 79, 2)
    with pytest.raises(
        ConfigError, match=r"'books' would repeat 2.53 times \(100 windows from 39.5"
    ):
        planned(corpus, 300, books_repeats={1: 2}, books_max_epochs=2)


# --- UniMax ---------------------------------------------------------------------------------------


def test_unimax_fills_small_sources_and_spreads_the_rest(corpus: Path) -> None:
    """Chung et al. 2023: uniform, but none more than max_epochs times; Megatron-LM #705, litData
    #658: a source smaller than its share is bounded, and said so."""
    with pytest.raises(ConfigError, match="'books' would repeat 2.56 times"):
        planned(corpus, 300, books_max_epochs=2)
    plan = planned(corpus, 300, books_max_epochs=2, short="unimax")
    assert seen(plan) == [78, 111, 111]
    assert [source.by_budget for source in plan.sources] == [True, False, False]
    plan = planned(corpus, 300, books_max_epochs=2, chat_max_epochs=1, short="unimax")
    assert seen(plan) == [78, 183, 39]
    assert [source.asked for source in plan.sources] == [1 / 3] * 3
    weights = planned(corpus, 300, books_max_epochs=2, web_weight=2, short="unimax")
    assert seen(weights) == [75, 150, 75]  # none is short: as without it
    assert requested(weights) == [0.25, 0.5, 0.25]


def test_unimax_knows_when_nothing_is_left(corpus: Path) -> None:
    plan = planned(corpus, 236, **{f"{name}_max_epochs": 1 for name in SIZES}, short="unimax")
    assert seen(plan) == [39, 158, 39]
    with pytest.raises(ConfigError) as error:
        planned(corpus, 300, **{f"{name}_max_epochs": 1 for name in SIZES}, short="unimax")
    assert (
        "all sources together give at most 3,792 tokens in their `max_epochs`, the run has 4,800"
        in (str(error.value))
    )


def counts_of(tokens: dict[str, int]) -> dict[str, SourceCounts]:
    none = dict.fromkeys(("indexed", "copies", "near", "semantic", "contained"), 0)
    return {
        name: SourceCounts(
            name=name,
            claimed=1,
            documents=1,
            times=1,
            num_tokens=num,
            num_bytes=num,
            unique_tokens=num,
            changes=NO_CHANGES,
            capped=None,  # type: ignore[arg-type]
            **none,
        )
        for name, num in tokens.items()
    }


def specified(sources: dict[str, dict[str, Any]], **keys: Any) -> Mixture:
    spec = {"corpora": {"web": "web"}, "sequence_length": 16} | keys
    spec["sources"] = {name: {"from": "web"} | source for name, source in sources.items()}
    return check(spec, Mixture, "mixture.yaml")


def unimax(budget: float, limits: list[float]) -> list[float]:
    """Algorithm 1 of Chung et al. 2023: budgets of languages, the smallest first."""
    left, found = budget, [0.0] * len(limits)
    order = sorted(range(len(limits)), key=limits.__getitem__)
    for number, at in enumerate(order):
        found[at] = min(left / (len(order) - number), limits[at])
        left -= found[at]
    return found


@given(st.lists(st.integers(1, 500), min_size=1, max_size=8), st.integers(8, 4_000))
@settings(max_examples=150, deadline=None)
def test_unimax_is_that_of_the_paper(windows: list[int], total: int) -> None:
    names = [f"s{n}" for n in range(len(windows))]
    mixture = specified({name: {"max_epochs": 3} for name in names}, short="unimax")
    expected = unimax(total, [3.0 * w for w in windows])
    equal = dict.fromkeys(names, 1 / len(names))
    epoch = dict(zip(names, map(float, windows), strict=True))
    if sum(expected) < total - 1e-9 or sum(windows) * 3 == total:
        if sum(windows) * 3 < total:
            with pytest.raises(ConfigError, match="all sources together give at most"):
                budget.within(mixture, [equal], epoch, [total])
        return
    assume(min(expected) >= 1)
    (of,), _ = budget.within(mixture, [equal], epoch, [total])
    got = [of[name] for name in names]
    assert got == pytest.approx(expected, abs=1)
    assert all(share <= 3 * w + 1e-6 for share, w in zip(got, windows, strict=True))


@given(
    st.dictionaries(st.sampled_from("abcdef"), st.integers(1, 10**12), min_size=1),
    st.floats(0.1, 1e6),
)
@settings(max_examples=100, deadline=None)
def test_larger_sources_never_get_less(sizes: dict[str, int], temperature: float) -> None:
    mixture = specified({name: {} for name in sizes}, temperature=temperature)
    shares = weighing.asked(mixture, Phase(), counts_of(sizes))
    assert sum(shares.values()) == pytest.approx(1)
    order = sorted(sizes, key=sizes.__getitem__)
    assert [shares[name] for name in order] == sorted(shares.values())
    assert min(shares.values()) > 0


# --- phases and long runs -------------------------------------------------------------------------


def test_epochs_are_of_the_run_and_weights_say_in_which_phase(corpus: Path) -> None:
    """Twice 39 windows of books: as 1/3 of 100 windows is to 3/4 of 100, and half of 50."""
    phases = [
        {"until": 1_600},
        {"until": 3_200, "weights": {"books": 3, "web": 1, "chat": 0}},
        {"weights": {"books": 0, "web": 1, "chat": 1}},
    ]
    plan = planned(corpus, 250, books_epochs=2, phases=phases)
    assert [phase.windows for phase in plan.phases] == [(24, 38, 38), (54, 46, 0), (0, 25, 25)]
    assert seen(plan) == [78, 109, 63]
    assert [source.by_budget for source in plan.sources] == [True, False, False]
    assert plan.sources[0].epochs == 2
    again = plan_from_dict(json.loads(json.dumps(plan.to_dict())))
    assert (again, again.fingerprint) == (plan, plan.fingerprint)
    with pytest.raises(ConfigError) as error:
        planned(corpus, 250, books_epochs=4, phases=phases)
    assert "phase 2: the sources with `epochs` need 1,728 tokens, it has 1,600; make it" in str(
        error.value
    )
    alone = [phases[0], {"weights": {"books": 1, "web": 0, "chat": 0}}]
    with pytest.raises(ConfigError) as error:
        planned(corpus, 200, books_epochs=2, phases=alone)
    assert "phase 2: all sources have `epochs`, and need 944 tokens, it has 1,600; give ano" in str(
        error.value
    )


def test_unimax_counts_over_all_phases(corpus: Path) -> None:
    phases = [{"until": 1_600}, {"weights": {"books": 2, "web": 1, "chat": 1}}]
    with pytest.raises(ConfigError, match="'books' would repeat 2.1"):
        planned(corpus, 200, books_max_epochs=2, phases=phases)
    plan = planned(corpus, 200, books_max_epochs=2, short="unimax", phases=phases)
    assert [phase.windows for phase in plan.phases] == [(31, 35, 34), (47, 27, 26)]
    assert seen(plan)[0] == 78
    enough = planned(corpus, 200, books_max_epochs=9, short="unimax", phases=phases)
    assert [phase.windows for phase in enough.phases] == [(34, 33, 33), (50, 25, 25)]
    assert [source.by_budget for source in enough.sources] == [False] * 3
    short = [phases[0], {"weights": {"books": 1, "web": 0, "chat": 0}}]
    with pytest.raises(ConfigError) as error:
        planned(corpus, 200, books_max_epochs=2, short="unimax", phases=short)
    assert "phase 2: its sources have had their `max_epochs` or `epochs` 656 tokens before" in str(
        error.value
    )


PHASES = st.lists(
    st.tuples(st.integers(1, 400), st.lists(st.integers(0, 5), min_size=4, max_size=4)),
    min_size=1,
    max_size=4,
).filter(lambda phases: all(map(any, zip(*(weights for _, weights in phases), strict=True))))


@given(
    PHASES,
    st.lists(st.integers(1, 300), min_size=4, max_size=4),
    st.integers(1, 4),
    st.booleans(),
)
@settings(max_examples=150, deadline=None)
def test_a_budget_over_phases(
    phases: list[tuple[int, list[int]]], windows: list[int], epochs: int, unimax: bool
) -> None:
    """Each phase is full; `a` has its epochs to the window; no other one more than is allowed."""
    assume(all(any(weights) for _, weights in phases))
    sources: dict[str, dict[str, Any]] = {name: {"max_epochs": 2} for name in "bcd"}
    keys = {"short": "unimax"} if unimax else {}
    mixture = specified({"a": {"epochs": epochs}} | sources, **keys)
    lengths = [length for length, _ in phases]
    shares = [dict(zip("abcd", np.array(w) / sum(w), strict=True)) for _, w in phases]
    epoch = dict(zip("abcd", map(float, windows), strict=True))
    try:
        found, by_budget = budget.within(mixture, shares, epoch, lengths)
    except ConfigError:
        return
    assert "a" in by_budget
    assert sum(here["a"] for here in found) == epochs * windows[0]
    for here, length, asked in zip(found, lengths, shares, strict=True):
        assert abs(sum(here.values()) - length) <= len(by_budget)
        assert all(number == 0 for name, number in here.items() if not asked[name])
        assert min(here.values()) >= 0
    if unimax:
        for name, number in zip("bcd", windows[1:], strict=True):
            assert sum(here[name] for here in found) <= 2 * number + len(phases)


@given(
    st.lists(st.integers(0, 400_000), min_size=1, max_size=5).filter(lambda n: sum(n) > 65_536),
)
@settings(max_examples=25, deadline=None)
def test_a_long_run_has_each_source_to_the_last_window(numbers: list[int]) -> None:
    windows = {f"s{n}": number for n, number in enumerate(numbers)}
    total = sum(numbers)
    num = -(-total // 65_536)
    if any(0 < number < num for number in numbers):
        with pytest.raises(ValueError, match="and would come at the end alone; give it at least"):
            stretches(windows)
        return
    found = stretches(windows)
    assert len(found) <= 2
    begins = np.cumsum([0, *(length for length, _ in found)])
    schedule = make_schedule(list(zip(begins.tolist(), [of for _, of in found], strict=False)))
    assert begins[-1] == total
    assert schedule.windows_until(total).tolist() == numbers
    for end in (1, total // 3, total // 2, total - 1):
        due = np.array(numbers) / total * end
        assert np.abs(schedule.windows_until(end) - due).max() <= len(numbers) * (num + 1)


def test_one_period_does_not_end_where_it_should() -> None:
    """Which is why there are stretches: of 600,000 windows the closest period is 4 off."""
    numbers = [19_501, 70_003, 33_333, 150_001, 4_567, 90_001, 12_347, 220_247]
    shares = {f"s{n}": number / 600_000 for n, number in enumerate(numbers)}
    closest = make_schedule([(0, shares)]).windows_until(600_000) - numbers
    assert closest.tolist() == [0, -2, 0, 4, 0, -4, 0, 2]
    (first, of), (rest, left) = stretches({f"s{n}": number for n, number in enumerate(numbers)})
    assert (first, rest, list(left.values())) == (599_970, 30, [1, 3, 3, 1, 7, 1, 7, 7])
    assert (sum(of.values()) * 10, list(of.values())[:3]) == (first, [1_950, 7_000, 3_333])


def test_epochs_of_a_run_of_200_000_windows_are_exact(corpus: Path) -> None:
    keys: dict[str, Any] = {f"{name}_max_epochs": float("inf") for name in ("web", "chat")}
    plan = planned(corpus, 200_003, books_epochs=500, **keys)
    assert seen(plan) == [19_500, 90_252, 90_251]
    assert plan.sources[0].epochs == 500
    assert len(plan.schedule.periods) == 2
    assert [round(source.realised * 200_003) for source in plan.sources] == seen(plan)
    again = plan_from_dict(json.loads(json.dumps(plan.to_dict())))
    assert (again, again.fingerprint) == (plan, plan.fingerprint)
    before = plan_from_dict(plan.to_dict() | {"phases": []})  # as the version before wrote it
    assert len(before.schedule.periods) == 1
    short = planned(corpus, 300_000, short="unimax", **keys)
    assert seen(short) == [156, 149_922, 149_922]


# --- where it ends --------------------------------------------------------------------------------


def test_where_each_source_ends(corpus: Path) -> None:
    """A run of that many tokens is the longest that the plan lets pass."""
    changes = {"books_max_epochs": 1, "books_weight": 0.2, "chat_max_epochs": 9}
    plan = planned(corpus, 40, **changes)
    ends = [source.ends_at for source in plan.sources]
    longest = min(end for end in ends if end is not None)
    assert longest == ends[0] == 16 * 435  # a window of books in half, 39 of them, and some more
    assert planned(corpus, longest // 16, **changes).sources[0].epochs == 1
    with pytest.raises(ConfigError, match=r"'books' would repeat .* at most 6,960 tokens"):
        planned(corpus, longest // 16 + 1, **changes)


def test_a_source_that_never_ends(corpus: Path) -> None:
    assert planned(corpus, 40, books_max_epochs=float("inf")).sources[0].ends_at is None
    phases = [{"until": 320}, {"weights": {"books": 0, "web": 1, "chat": 1}}]
    assert planned(corpus, 40, phases=phases).sources[0].ends_at is None
    assert ends_at(lambda end: end // 3, 5.5) == 17
    assert ends_at(lambda end: end, 0) == 0


# --- what the tests of the issue name -------------------------------------------------------------


def test_one_to_999(corpus: Path) -> None:
    """Megatron-LM #705: .001 and .999 of two sources must not run past an end."""
    plan = planned(corpus, 600, books=None, web_weight=999, web_max_epochs=9, chat_weight=1)
    assert plan.schedule.periods[0].quotas.tolist() == [999, 1]
    assert seen(plan) in ([600, 0], [599, 1])
    other = planned(corpus, 600, books=None, web_weight=0.999, web_max_epochs=9, chat_weight=0.001)
    assert other.fingerprint == plan.fingerprint
    with pytest.raises(ConfigError, match="'web' would repeat 3.77 times"):
        planned(corpus, 600, books=None, web_weight=999, web_max_epochs=3, chat_weight=1)


def test_fewer_windows_than_ranks(corpus: Path) -> None:
    """Ranks share one sequence: 8 of them take 8 windows a step, of whatever source."""
    path = mixture(corpus, books_where="source = 'books' and ends_with(text, 'b') and text < '001'")
    plan = make_plan(path, 16 * 24)  # 64 tokens: 3 windows of books, seen 8 times
    assert [source.num_windows for source in plan.sources] == [3, 159, 39]
    assert plan.sources[0].epochs == pytest.approx(8 / 3)
    loader = Loader(plan)
    by_rank = [loader.places(8 * step + rank, 1) for step in range(3) for rank in range(8)]
    whole = loader.places(0, 24)
    assert [int(p.source[0]) for p in by_rank] == whole.source.tolist()
    windows = whole.window[whole.source == 0].tolist()
    assert [sorted(windows[:3]), sorted(windows[3:6])] == [[0, 1, 2]] * 2


def test_sources_of_unequal_size_cycle_each_by_itself(corpus: Path) -> None:
    """litData #658, #363: a combined set goes on, over 2.5 epochs of the small one."""
    plan = make_plan(mixture(corpus, web=None), 16 * 195)
    places = Loader(plan).places(0, 195)
    for at in range(2):
        windows = places.window[places.source == at].tolist()
        epochs = [windows[n : n + 39] for n in range(0, len(windows), 39)]
        assert [sorted(epoch) for epoch in epochs[:2]] == [[*range(39)]] * 2
        assert epochs[0] != epochs[1]
        assert len({*epochs[2]}) == len(epochs[2])


def test_mix_prints_all_shares(corpus: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = mixture(corpus, weigh_by="documents", books_max_epochs=1, short="unimax")
    assert mix([str(path), "--tokens", "3200", "--dry-run"]) == 0
    out = capsys.readouterr().out
    lines = [line.split() for line in out.splitlines()]
    (header,) = (at for at, line in enumerate(lines) if line[:1] == ["shares"])
    assert "asked, of documents" in out
    assert lines[header + 1][:7] == ["books", "33.33", "%", "19.50", "%", "19.50", "%"]
    assert (
        "books: 1 epochs of this run are its share, whatever its weight; of another length" in out
    )
    assert mix([str(path), "--tokens", "3200", "--dry-run", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [source["by_budget"] for source in found["sources"]] == [True, False, False]
    assert found["weigh_by"] == "documents"
    del found["selection"]
    assert plan_from_dict(found).fingerprint == found["fingerprint"]


def test_overlap_between_sources(corpus: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = mixture(corpus, web_where="source = 'web' or text < '004'", overlap="first")
    assert mix([str(path), "--tokens", "320", "--dry-run"]) == 0
    out = capsys.readouterr().out
    assert "selected by several sources: 8 documents, given to the first" in out
    assert "  by books and web: 4 documents, 252 bytes" in out
    assert "  by web and chat: 4 documents, 28 bytes" in out
