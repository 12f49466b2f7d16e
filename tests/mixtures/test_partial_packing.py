"""A run packs what it reads: nested samples, extended by appending, in one order for all arms."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import yaml
from mixture_corpus import Doc, Tiny, write_corpus

from mixtures import masking, packed
from mixtures.commands import mix
from mixtures.dealing import deal
from mixtures.loader import Loader
from mixtures.order import epoch_order, parts_until
from mixtures.packed import packing_of, parts_of, read_packed
from mixtures.parts_read import parts_read
from mixtures.pieces import positions_of
from mixtures.plan import Plan, make_plan
from mixtures.published import open_plan, publish
from mixtures.select import select
from mixtures.spec import load_mixture
from pipeline import forgotten, objects, schema
from pipeline.files import read_json, read_sealed, write_sealed

LENGTH = 16
DOCS = [Doc(f"sentence {n} of several words", score=n % 10 / 10) for n in range(240)]
TINY = Tiny(DOCS)


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Parts of about 600 tokens: twelve of them."""
    monkeypatch.setattr(packed, "PART_TOKENS", 600)
    write_corpus(tmp_path / "web", TINY)
    return tmp_path


def write(root: Path, name: str = "mixture", where: str = "true", **keys: Any) -> Path:
    path = root / f"{name}.yaml"
    spec = {"corpora": {"web": "web"}, "sequence_length": LENGTH, "seed": 3, "shuffle": 1_200}
    source = {"from": "web", "where": where, "max_epochs": 9}
    path.write_text(yaml.safe_dump(spec | {"sources": {"all": source}} | keys), "utf-8")
    return path


def files(plan: Plan) -> dict[str, bytes]:
    folder = Path(plan.sources[0].folder)
    return {path.name: path.read_bytes() for path in folder.glob("part-*")}


def test_parts_are_those_that_places_are_in() -> None:
    windows = (5, 3, 8, 2, 9, 4, 7)
    for together in (1, 2, 3, 7):
        for count in range(sum(windows) + 1):
            part, _ = epoch_order(np.arange(count), windows, together, 11)
            found = parts_until(count, windows, together, 11)
            groups = {at // together for at in part.tolist()}
            assert found == [at for at in range(len(windows)) if at // together in groups]


def test_a_short_run_packs_what_it_reads_and_a_longer_one_appends(root: Path) -> None:
    path = write(root)
    short = make_plan(path, 1_000)
    few = files(short)
    (parts,) = parts_read(short)
    assert set(few) == {f"part-{part:05d}.arrow" for part in parts}
    assert len(parts) == 2 < len(short.sources[0].windows) == 12
    seen = Loader(short).batch(0, len(Loader(short))).tokens
    longer = make_plan(path, 3_000)
    more = files(longer)
    assert longer.fingerprint == short.fingerprint
    assert {name: more[name] for name in few} == few, "what was packed stays, byte for byte"
    assert len(few) < len(more) < 12
    long = Loader(longer).batch(0, len(Loader(longer))).tokens
    assert np.array_equal(long[: len(seen)], seen), "the shorter run is the beginning of the longer"
    assert files(make_plan(path, 1_000)) == more, "nothing is taken away"
    read_packed(Path(longer.sources[0].folder), hashes=True)
    whole = files(make_plan(path, 12_000))
    assert len(whole) == 12
    other = write(root, "other", seed=3, shuffle=10**9)
    assert files(make_plan(other, 160)) == whole, "the same files as of a mixture that reads all"


def test_without_shuffle_all_is_packed(root: Path) -> None:
    plan = make_plan(write(root, shuffle=None), 160)
    assert len(files(plan)) == plan.sources[0].parts_per_group == 12


def test_documents_and_their_positions_are_found_in_what_is_packed(root: Path) -> None:
    plan = make_plan(write(root), 1_000)
    loader = Loader(plan)
    seen = loader.documents_at(0, len(loader))
    name = seen[5][1][0]
    assert 5 in positions_of(loader, name)
    absent = {TINY.id(n) for n in range(240)} - {name for _, names in seen for name in names}
    assert len(absent) > 100
    assert positions_of(loader, *absent) == []


def test_a_part_that_a_kill_left_out_of_the_manifest_is_written_again(root: Path) -> None:
    path = write(root)
    plan = make_plan(path, 1_000)
    folder = Path(plan.sources[0].folder)
    (after,) = parts_read(make_plan(path, 3_000, pack=False))
    new = next(part for part in after if part not in parts_of(folder))
    (folder / f"part-{new:05d}.arrow").write_bytes(b"half")
    make_plan(path, 3_000)
    assert parts_of(folder) == set(after)
    read_packed(folder, hashes=True)


def test_the_manifest_names_what_packing_wrote_and_no_other_file(root: Path) -> None:
    """Answers lie beside windows, and may be deleted; nor is a part that a kill left sealed as it
    lies there."""
    path = write(root)
    folder = Path(make_plan(path, 1_000).sources[0].folder)
    (after,) = parts_read(make_plan(path, 3_000, pack=False))
    left = next(part for part in range(12) if part not in after)
    for name in (f"going-{32 * '0'}.arrow", f"part-{left:05d}.arrow"):
        (folder / name).write_bytes(b"half")
    make_plan(path, 3_000)
    names = sorted(f"part-{part:05d}.arrow" for part in after)
    assert sorted(read_json(folder / "manifest.json")["files"]) == ["documents.arrow", *names]


def test_a_manifest_of_before_that_lists_an_answer_is_read(root: Path, tmp_path: Path) -> None:
    plan = make_plan(write(root), 1_000)
    folder = Path(plan.sources[0].folder)
    known = read_sealed(folder / "manifest.json") or {}
    answer = f"going-{32 * '0'}.arrow"
    known["files"][answer] = {"bytes": 4, "xxh3": 32 * "0"}  # and it was deleted since
    write_sealed(folder / "manifest.json", known)
    read_packed(folder, hashes=True)
    objects.write(str(root / "tokenizer.json"), b"{}")
    moved = replace(plan, tokenizer_file=str(root / "tokenizer.json"))
    list(publish(moved, str(tmp_path / "plan")))
    assert not list((tmp_path / "plan").rglob(answer))
    read = Loader(open_plan(tmp_path / "plan")).batch(0, 9).tokens
    assert np.array_equal(read, Loader(plan).batch(0, 9).tokens)


def test_arms_share_the_order_of_the_documents_they_share(root: Path) -> None:
    """Two predicates: what both select comes in the same order."""

    def order(where: str) -> list[bytes]:
        mixture = load_mixture(write(root, "arm", where))
        selection = select(mixture)
        how = packing_of(mixture, root / "web", selection.tokenizer)
        parts = deal(selection.documents["all"], how)
        return [name.tobytes() for part in parts for name in part.id]

    low, high, every = order("quality.score < 0.7"), order("quality.score > 0.2"), order("true")
    shared = set(low) & set(high)
    assert len(shared) == 96
    assert [name for name in low if name in shared] == [name for name in high if name in shared]
    assert [name for name in every if name in set(low)] == low
    assert order("true") == every


def test_what_grows_keeps_the_order_of_what_was_there(root: Path) -> None:
    """A corpus that grew is another selection, packed anew, in an order that holds the old one."""

    def order() -> tuple[str, list[str]]:
        mixture = load_mixture(write(root))
        selection = select(mixture)
        how = packing_of(mixture, root / "web", selection.tokenizer)
        parts = deal(selection.documents["all"], how)
        plan = make_plan(root / "mixture.yaml", 1_000)
        return plan.sources[0].selection, [n.tobytes().hex() for part in parts for n in part.id]

    name, before = order()
    more = [*DOCS, *(Doc(f"a new sentence, with the number {n}") for n in range(60))]
    write_corpus(root / "web", Tiny(more))
    grown, after = order()
    assert grown != name
    assert [one for one in after if one in set(before)] == before
    assert (root / "web/packed" / name / "manifest.json").exists(), "what runs have read stays"


def test_what_was_forgotten_meanwhile_is_not_made_up(root: Path) -> None:
    path = write(root)
    plan = make_plan(path, 1_000)
    names = Loader(plan).documents_at(0, 1)[0][1]
    gone = next(n for n in range(240) if TINY.id(n) == names[0])
    row = {"id": bytes.fromhex(TINY.id(gone)), "content_hash": DOCS[gone].content, "why": "named"}
    forgotten.add(root / "web", pa.Table.from_pylist([row], schema.FORGOTTEN), "asked", 5)
    masking.mask(root / "web", pa.array([row["id"]], schema.HASH))
    assert make_plan(path, 1_000).fingerprint == plan.fingerprint
    with pytest.raises(ValueError, match=r"parts that the run needs were never packed, .*`seed`"):
        make_plan(path, 3_000)


def test_mix_says_how_much_is_packed(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert mix([str(write(root)), "--tokens", "1k", "--verify"]) == 0
    assert "(2 of 12 parts)" in capsys.readouterr().out


def test_another_length_or_policy_tokenizes_nothing(root: Path) -> None:
    make_plan(write(root), 1_000)
    tokens = {path: path.stat().st_mtime_ns for path in (root / "web/tokens").rglob("*")}
    for keys in ({"sequence_length": 24}, {"packing": "best_fit"}, {"packing": "buckets"}):
        make_plan(write(root, **keys), 1_000)
    assert len(list((root / "web/packed").glob("*/manifest.json"))) == 4
    assert {path: path.stat().st_mtime_ns for path in (root / "web/tokens").rglob("*")} == tokens


def test_packed_length_reads_the_same_files(root: Path) -> None:
    """4 x 16 tokens: windows of 16 and of 64 read the same selection."""
    long = make_plan(write(root, "long", sequence_length=64), 6_400)
    short = make_plan(write(root, "short", packed_length=64), 6_400)
    assert short.sources[0].folder == long.sources[0].folder
    assert short.sources[0].windows == tuple(4 * num for num in long.sources[0].windows)
    assert short.fingerprint != long.fingerprint
    places, batch = Loader(short).places(0, 40), Loader(short).batch(0, 40)
    assert batch.tokens.shape == (40, 17)
    at = {}
    for position in range(long.num_windows):
        place = Loader(long).places(position, 1)
        at[int(place.part[0]), int(place.window[0])] = position
    compared = 0
    for n in range(40):
        window, piece = divmod(int(places.window[n]), 4)
        position = at.get((int(places.part[n]), window))
        if position is not None:
            ids = Loader(long).window(position).tokens[0]
            assert batch.tokens[n].tolist() == ids[16 * piece : 16 * piece + 17].tolist()
            compared += 1
    assert compared > 10
    with pytest.raises(ValueError, match="`packed_length: 40` is no multiple of .*such as 48"):
        load_mixture(write(root, packed_length=40))
