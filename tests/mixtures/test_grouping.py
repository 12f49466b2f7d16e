"""Groups: members together and in order, whatever policy, and what is left when one goes."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import yaml
from mixture_corpus import Doc, Tiny, write_corpus

from mixtures import masking
from mixtures.dealing import Documents, deal, selection_hash, units
from mixtures.grouping import grouped
from mixtures.layout import POLICIES
from mixtures.loader import Loader
from mixtures.open_parts import OpenParts
from mixtures.packed import PADDED, Packing, packing_of
from mixtures.packing import in_a_row
from mixtures.plan import Plan, make_plan
from mixtures.select import select
from mixtures.spec import load_mixture
from pipeline import forgotten, schema
from pipeline.config import ConfigError

# threads of 3 posts, the last one first; every fourth document is alone
DOCS = [
    Doc(f"post {n:03} of a thread, with {'more ' * (n % 3)}to say", url=url)
    for n in range(60)
    for url in [f"https://forum/{n // 4}/{9 - n % 4}" if n % 4 < 3 else None]
]
TINY = Tiny(DOCS, pairs=[(1, 5)])
THREAD = "split_part(url, '/', 4)"


def write(root: Path, tiny: Tiny = TINY, **keys: Any) -> Path:
    write_corpus(root / "web", tiny, shard_rows=7)
    packing = {k: keys.pop(k) for k in ("packing", "sequence_length", "packed_length") if k in keys}
    spec = {"corpora": {"web": "web"}, "sequence_length": 32, "seed": 3, **packing}
    source = {"from": "web", "group": THREAD, "max_epochs": 99, **keys}
    path = root / "mixture.yaml"
    path.write_text(yaml.safe_dump(spec | {"sources": {"all": source}}), "utf-8")
    return path


def dealt(path: Path, tiny: Tiny = TINY) -> list[list[int]]:
    """Numbers of the documents of each unit, in packing order."""
    mixture = load_mixture(path)
    selection = select(mixture)
    root = Path(mixture.corpora["web"])
    (part,) = deal(selection.documents["all"], packing_of(mixture, root, selection.tokenizer))
    known = {tiny.id(n): n for n in range(len(tiny.docs))}
    numbers = [known[name.tobytes().hex()] for name in part.id]
    return [group.tolist() for group in np.split(numbers, np.cumsum(units(part))[:-1])]


def test_members_are_dealt_together_and_in_order(tmp_path: Path) -> None:
    """Document 5 is a near copy of 1: its thread goes on without it. 3, 7 ... are alone."""
    as_in_corpus = dealt(write(tmp_path))
    threads = [[n, n + 1, n + 2] for n in range(0, 60, 4)] + [[n] for n in range(3, 60, 4)]
    gone = 5 if [4, 6] in as_in_corpus else 1
    threads = [[n for n in thread if n != gone] for thread in threads]
    assert sorted(as_in_corpus) == sorted(threads)
    assert as_in_corpus != threads, "groups are shuffled"
    by_url = dealt(write(tmp_path, group_order="url"))
    assert by_url == [thread[::-1] for thread in as_in_corpus]
    assert [len(unit) for unit in dealt(write(tmp_path, group="null::varchar"))] == [1] * 59


def test_a_group_is_named_by_what_it_is_not_by_its_rows(tmp_path: Path) -> None:
    """Other sharding, other documents beside it: groups that stay keep their order."""
    few = Tiny(DOCS[:40], pairs=TINY.pairs)
    (tmp_path / "few").mkdir()
    whole, part = dealt(write(tmp_path)), dealt(write(tmp_path / "few", few), few)
    assert part == [unit for unit in whole if unit in part]
    assert len(part) == 20


def test_the_hash_and_ranks_depend_on_no_sharding() -> None:
    """Lone documents in other parts, and fewer before a group: same names, places in groups, and
    hash; another order of members is another hash."""
    ids = np.frombuffer(b"".join(bytes([n]) * 16 for n in range(1, 7)), "V16")
    tokens = np.full(6, 9)
    values = pa.chunked_array([["b", None, "a", None, "b", "a"]])

    def of(part: list[int], row: list[int]) -> Documents:
        places = np.array(part), np.array(row)
        alone = Documents(ids, ids, *places, tokens, tokens, np.zeros(6, "V16"))
        return grouped(alone, values, None)

    packing = Packing(3, 8, "tokenizer", "made so")
    one = of([0, 0, 0, 1, 1, 1], [2, 0, 1, 0, 1, 2])
    assert one.rank is not None
    assert one.rank.tolist() == [0, 0, 0, 0, 1, 1]
    moved = of([0, 2, 0, 0, 1, 1], [2, 0, 1, 3, 1, 2])
    assert moved.rank is not None
    assert moved.rank.tolist() == one.rank.tolist()
    assert selection_hash(moved, packing) == selection_hash(one, packing)
    turned = of([1, 0, 0, 1, 0, 1], [1, 0, 1, 0, 2, 2])
    assert turned.rank is not None
    assert turned.rank.tolist() == [1, 0, 0, 0, 0, 1]
    assert selection_hash(turned, packing) != selection_hash(one, packing)


def rows(plan: Plan) -> list[tuple[list[str], list[int], list[bool], np.ndarray]]:
    """Of each window: ids, where they begin, which follow the one before, document numbers."""
    found = []
    source = plan.sources[0]
    batch = {}
    for position in range(plan.num_windows):
        place = Loader(plan).places(position, 1)
        batch[int(place.part[0]), int(place.window[0])] = Loader(plan).window(position)
    for (part, window), one in sorted(batch.items(), key=lambda item: item[0]):
        row = OpenParts(plan.sequence_length).part(source.folder, part).row(window)
        assert row.follows is not None
        names = [name.tobytes().hex() for name in row.ids]
        found.append((names, row.starts.tolist(), row.follows.tolist(), one.documents[0]))
    return found


@pytest.mark.parametrize("policy", sorted(POLICIES))
def test_members_see_each_other(tmp_path: Path, policy: str) -> None:
    """No border where a document follows one of its group; one everywhere else."""
    path = write(tmp_path, packing=policy, sequence_length=64)
    plan = make_plan(path, 64 * 80)
    thread = {TINY.id(n): n // 4 if n % 4 < 3 else 100 + n for n in range(60)}
    thread[PADDED.hex()] = -1
    joined = 0
    for names, starts, follows, documents in rows(plan):
        of = [thread[name] for name in names]
        same = [a == b for a, b in itertools.pairwise(of)]
        assert follows == [False, *same]
        joined += sum(same)
        padded = starts[-1] if names[-1] == PADDED.hex() else len(documents)
        borders = (np.flatnonzero(np.diff(documents[:padded])) + 1).tolist()
        assert borders == [
            at for at, one in zip(starts, follows, strict=True) if 0 < at < padded and not one
        ]
        assert np.diff(documents[padded:]).all()
    assert joined > 15


def test_best_fit_cuts_no_group_that_fits(tmp_path: Path) -> None:
    plan = make_plan(write(tmp_path, packing="best_fit", sequence_length=160), 160 * 20)
    (source,) = plan.sources
    assert source.loss.cut == 0
    windows = [names for names, *_ in rows(plan)]
    for n in range(8, 60, 4):
        holding = [w for w in windows if {TINY.id(n + k) for k in range(3)} & set(w)]
        (window,) = holding
        at = window.index(TINY.id(n))
        assert window[at : at + 3] == [TINY.id(n + k) for k in range(3)]


def test_a_group_longer_than_a_window_is_cut_as_one_document(tmp_path: Path) -> None:
    plan = make_plan(write(tmp_path, packing="best_fit", sequence_length=40), 40 * 60)
    assert plan.sources[0].loss.cut > 10
    assert plan.sources[0].num_tokens == plan.sources[0].packed_tokens


def test_a_repeated_group_stands_again_as_a_whole(tmp_path: Path) -> None:
    """Members that stand less often are missing in the later ones."""
    path = write(tmp_path, repeats_by="case when url like '%/9' then 1 else 2 end")
    found = dealt(path)
    assert sorted(unit for unit in found if 8 in unit or 9 in unit) == [[8, 9, 10], [9, 10]]
    assert sorted(unit for unit in found if unit == [11]) == [[11], [11]]


def test_a_forgotten_member_is_seen_by_nothing_and_the_plan_stays(tmp_path: Path) -> None:
    path = write(tmp_path, packing="best_fit", sequence_length=160)
    before = make_plan(path, 160 * 20)
    root, gone = tmp_path / "web", 9
    row = {"id": bytes.fromhex(TINY.id(gone)), "content_hash": DOCS[gone].content, "why": "named"}
    forgotten.add(root, pa.Table.from_pylist([row], schema.FORGOTTEN), "asked", 5)
    (masked,) = masking.mask(root, pa.array([row["id"]], schema.HASH))
    after = make_plan(path, 160 * 20)
    assert after.fingerprint == before.fingerprint
    assert masked.documents == [TINY.id(gone)]
    ((names, starts, _, documents),) = [row for row in rows(after) if TINY.id(gone) in row[0]]
    at = names.index(TINY.id(gone))
    begin, end = starts[at : at + 2]
    assert np.diff(documents[begin - 1 : end + 1]).all(), "each token is alone, and what is behind"
    assert names[at - 1 : at + 2] == [TINY.id(8), TINY.id(9), TINY.id(10)]


def test_mistakes(tmp_path: Path) -> None:
    path = write(tmp_path, group="author")
    with pytest.raises(ConfigError, match=r"key `sources.all.group`: corpus 'web' cannot be asked"):
        select(load_mixture(path))
    path = write(tmp_path)
    path.write_text(path.read_text().replace("group:", "group_order: url\n    grup:"))
    with pytest.raises(ConfigError, match="grup"):
        load_mixture(path)
    text = write(tmp_path).read_text().replace(f"group: {THREAD}", "group_order: url")
    path.write_text(text)
    with pytest.raises(ConfigError, match="`group_order` orders the members of a `group`"):
        load_mixture(path)


def test_the_order_of_a_row_keeps_groups(tmp_path: Path) -> None:
    mixture = load_mixture(write(tmp_path, packing="buckets"))
    selection = select(mixture)
    packing = packing_of(mixture, Path(mixture.corpora["web"]), selection.tokenizer)
    (part,) = deal(selection.documents["all"], packing)
    row = in_a_row(part, packing)
    sizes = units(row)
    tokens = np.add.reduceat(row.num_tokens, np.cumsum(sizes) - sizes)
    assert sorted(sizes) == sorted(units(part))
    bits = [int(num).bit_length() for num in tokens]
    assert bits == sorted(bits)
    assert len(set(bits)) > 1
