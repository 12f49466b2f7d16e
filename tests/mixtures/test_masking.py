"""Forgotten documents in packed windows: same order, no loss, found again, whole after any kill."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import yaml
from mixture_corpus import Doc, Tiny, write_corpus

from mixtures import masking
from mixtures.commands import mix
from mixtures.layout import POLICIES
from mixtures.loader import Loader
from mixtures.packed import read_packed, require_whole
from mixtures.plan import Plan, make_plan
from pipeline import forgotten, schema
from pipeline.files import read_json

DOCS = [
    *(Doc(f"an English sentence with the number {n}, and more of it") for n in range(30)),
    *(Doc(f"中文句子，第{n}句。", "zh") for n in range(30)),
]
TINY = Tiny(DOCS)
GONE = (3, 4, 40)
TOKENS = 2_400


@pytest.fixture(params=sorted(POLICIES))
def mixture(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    write_corpus(tmp_path / "web", TINY)
    path = tmp_path / "mixture.yaml"
    spec = {"corpora": {"web": "web"}, "sequence_length": 16, "seed": 3}
    spec["packing"] = request.param
    path.write_text(yaml.safe_dump(spec | {"sources": {"all": {"from": "web"}}}), "utf-8")
    return path


def ids(numbers: tuple[int, ...] = GONE) -> pa.Array:
    return pa.array([bytes.fromhex(TINY.id(n)) for n in numbers], schema.HASH)


def forget(root: Path, numbers: tuple[int, ...] = GONE) -> list[masking.Masked]:
    """List documents as `assay forget` does, and mask them."""
    rows = [
        {"id": bytes.fromhex(TINY.id(n)), "content_hash": DOCS[n].content, "why": "named"}
        for n in numbers
    ]
    forgotten.add(root, pa.Table.from_pylist(rows, schema.FORGOTTEN), "asked", 5)
    return masking.mask(root, ids(numbers))


def ids_at(plan: Plan) -> list[tuple[str, tuple[str, ...]]]:
    return Loader(plan).documents_at(0, plan.num_windows)


def test_a_plan_stays_and_the_order_of_windows(mixture: Path, tmp_path: Path) -> None:
    before = make_plan(mixture, TOKENS)
    tokens, seen = Loader(before).batch(0, before.num_windows).tokens, ids_at(before)
    (masked,) = forget(tmp_path / "web")
    after = make_plan(mixture, TOKENS)
    assert after.fingerprint == before.fingerprint
    assert after.sources[0].selection == masked.selection == before.sources[0].selection
    assert (before.sources[0].documents, after.sources[0].documents) == (60, 57)
    assert ids_at(after) == seen, "which step saw what can still be told"
    assert Loader(after).resume(Loader(before).state(7)) == 7
    assert masked.documents == sorted(TINY.id(n) for n in GONE)
    assert len(masked.fingerprints) == 2

    now = Loader(after).batch(0, after.num_windows)
    names = {TINY.id(n) for n in GONE}
    for at in range(after.num_windows):
        starts = np.flatnonzero(np.diff(now.documents[at], prepend=-1))
        owner = [now.ids[at][number].tobytes().hex() for number in now.documents[at]]
        gone = np.array([name in names for name in owner])
        assert (now.tokens[at][gone] == 0).all(), "the id of the end of a document"
        assert np.array_equal(now.tokens[at][~gone], tokens[at][~gone]), "nothing else changed"
        assert set(np.flatnonzero(gone)) <= set(starts), "each is a document of its own"
    assert any(name in names for _, window in seen for name in window)


def test_no_loss_counts_on_a_masked_token(mixture: Path, tmp_path: Path) -> None:
    import torch

    from trainer.losses import IGNORED
    from trainer.objectives import CAUSAL, make_example

    make_plan(mixture, TOKENS)
    forget(tmp_path / "web")
    plan = make_plan(mixture, TOKENS)
    batch = Loader(plan).batch(0, plan.num_windows)
    names = {TINY.id(n) for n in GONE}
    windows = torch.from_numpy(batch.tokens), torch.from_numpy(batch.documents)
    counted = (make_example(CAUSAL, *windows, 0, 0).labels_BT != IGNORED).numpy()
    masked = 0
    for at in range(plan.num_windows):
        owner = [batch.ids[at][number].tobytes().hex() for number in batch.documents[at]]
        gone = np.array([name in names for name in owner])
        assert not counted[at][gone[1:]].any()
        assert not counted[at][gone[:-1]].any()
        masked += int(gone.sum())
    assert masked > 100


def test_forgotten_twice(mixture: Path, tmp_path: Path) -> None:
    first = make_plan(mixture, TOKENS)
    root = tmp_path / "web"
    forget(root, (3,))
    (masked,) = forget(root, (20, 41))
    assert make_plan(mixture, TOKENS).fingerprint == first.fingerprint
    assert len(masked.fingerprints) == 3
    assert len(masked.stands_for) == 2
    manifest = read_json(root / "packed" / masked.selection / "manifest.json")
    assert manifest["forgotten"] == sorted(TINY.id(n) for n in (3, 20, 41))
    assert masking.mask(root, ids((20, 41))) == [masked], "again: nothing changes"


def test_a_part_that_was_never_sealed_goes(mixture: Path, tmp_path: Path) -> None:
    """Packing was killed before it named the part: it holds the text, and no run reads it."""
    (source,) = make_plan(mixture, TOKENS).sources
    folder = Path(source.folder)
    left = folder / "part-00099.arrow"
    left.write_bytes((folder / "part-00000.arrow").read_bytes())
    (masked,) = forget(tmp_path / "web")
    assert masked.documents == sorted(TINY.id(n) for n in GONE)
    assert not left.exists()
    require_whole(folder)


def test_what_was_not_packed_packs_what_is_left(mixture: Path, tmp_path: Path) -> None:
    assert forget(tmp_path / "web") == []
    plan = make_plan(mixture, TOKENS)
    assert plan.sources[0].documents == 57
    assert not {TINY.id(n) for n in GONE} & {name for _, names in ids_at(plan) for name in names}


def test_a_kill_leaves_windows_that_are_whole(
    mixture: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The manifest stands before the file that it speaks of."""
    plan = make_plan(mixture, TOKENS)
    folder = Path(plan.sources[0].folder)
    real = masking.write_sealed
    calls = 0

    def killed(path: Path, value: dict[str, object]) -> None:
        nonlocal calls
        calls += 1
        if calls == 2:
            raise KeyboardInterrupt
        real(path, value)
        if calls == 1:
            require_whole(folder)

    monkeypatch.setattr(masking, "write_sealed", killed)
    with pytest.raises(KeyboardInterrupt):
        forget(tmp_path / "web")
    require_whole(folder)
    monkeypatch.undo()
    (masked,) = masking.mask(tmp_path / "web", ids())
    assert len(masked.fingerprints) == 2
    assert read_packed(folder, hashes=True).num_documents == 60
    assert make_plan(mixture, TOKENS).fingerprint == plan.fingerprint


@pytest.mark.parametrize("name", ["part-00000.arrow", "documents.arrow", "manifest.json"])
def test_a_damaged_folder_is_refused_and_stays_as_it_is(
    mixture: Path, tmp_path: Path, name: str
) -> None:
    """Masking would give the damaged part a new hash, by which it is whole."""
    (source,) = make_plan(mixture, TOKENS).sources
    file = Path(source.folder) / name
    whole = file.read_bytes()
    at = len(whole) // 2
    file.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
    before = {path.name: path.read_bytes() for path in file.parent.iterdir()}
    with pytest.raises(ValueError, match=rf"{file} is not as it was written .*; delete the folder"):
        forget(tmp_path / "web")
    assert {path.name: path.read_bytes() for path in file.parent.iterdir()} == before
    file.write_bytes(whole)  # a whole copy came back
    (masked,) = masking.mask(tmp_path / "web", ids())
    assert masked.documents == sorted(TINY.id(n) for n in GONE)


def test_another_corpus_does_not_bring_a_text_back(tmp_path: Path) -> None:
    """`unique: none` over two corpora: what one was told to forget the other does not give."""
    write_corpus(tmp_path / "web", TINY)
    write_corpus(tmp_path / "books", Tiny(DOCS[:5], name="books"))
    path = tmp_path / "mixture.yaml"
    sources = {name: {"from": name, "max_epochs": 99} for name in ("web", "books")}
    corpora = {name: name for name in sources}
    spec = {"corpora": corpora, "sequence_length": 16, "unique": "none", "sources": sources}
    path.write_text(yaml.safe_dump(spec), "utf-8")
    assert [s.documents for s in make_plan(path, 320, pack=False).sources] == [5, 60]
    forget(tmp_path / "web")
    assert [s.documents for s in make_plan(path, 320, pack=False).sources] == [3, 57]


def test_mix_verify_reads_masked_windows(
    mixture: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make_plan(mixture, TOKENS)
    forget(tmp_path / "web")
    assert mix([str(mixture), "--tokens", str(TOKENS), "--verify"]) == 0
    assert "57" in capsys.readouterr().out
