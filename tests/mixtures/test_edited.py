"""A mixture that makes edits: what is tokenized again, what is shared, what survives a fault."""

from __future__ import annotations

import json
import random
import shutil
from pathlib import Path
from typing import Any

import edited_corpus
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import small_corpus
import yaml

from mixtures.commands import mix
from mixtures.dealing import Documents, deal
from mixtures.edited_tokens import EditedTokens, folder_of
from mixtures.packed import Packing
from mixtures.plan import Plan, make_plan
from mixtures.select import Selection, select
from mixtures.spec import load_mixture
from mixtures.tokens import tokenizer_of, tokens_fingerprint
from pipeline import schema
from pipeline.commits import commit
from pipeline.corpus import CorpusError, manifest, part_paths
from pipeline.files import part_name, part_number, write_sealed
from pipeline.settings import Tokenizer
from pipeline.tokenizer import load

Ranges = dict[str, list[tuple[int, int, str]]]  # of each document (id): start, end, replacement


@pytest.fixture
def root(corpus_with_edits: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(corpus_with_edits, tmp_path / "corpus"))


def mixture(root: Path, *edits: str, **more: Any) -> Path:
    sources = {"all": {"from": "web", "max_epochs": 1_000} | more}
    spec = {"corpora": {"web": "corpus"}, "sequence_length": 32, "seed": 3, "sources": sources}
    path = root.parent / "mixture.yaml"
    path.write_text(yaml.safe_dump(spec | {"edits": list(edits), "unique": "none"}), "utf-8")
    return path


def selected(root: Path, *edits: str, **more: Any) -> Selection:
    return select(load_mixture(mixture(root, *edits, **more)))


def packed(root: Path, *edits: str, **more: Any) -> Plan:
    return make_plan(mixture(root, *edits, **more), 3_200)


def texts_of(root: Path) -> dict[str, str]:
    """Id -> text as it came."""
    found = {}
    for path in part_paths(root, "documents"):
        for row in pq.read_table(path, columns=["id", "text"]).to_pylist():
            found[row["id"].hex()] = row["text"]
    return found


def write_edits(root: Path, name: str, ranges: Ranges) -> None:
    """Edits of an own rule, as its stage would write them."""
    for path in part_paths(root, "documents"):
        ids = [row["id"] for row in pq.read_table(path, columns=["id"]).to_pylist()]
        rows = [
            {"id": i, "start": start, "end": end, "kind": name, "replacement": text}
            for i in ids
            for start, end, text in ranges.get(i.hex(), [])
        ]
        output = root / "edits" / name / path.name
        output.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.Table.from_pylist(rows, schema.EDITS), output)
        counters = {"documents": len(ids)}
        commit(root, f"edits/{name}", part_number(path), "made so", [output], counters, 0.5, 0.5)
    found = manifest(root)
    write_sealed(root / "corpus.json", found | {"edits": sorted({*found["edits"], name})})


def edited_by_hand(text: str, several: list[list[tuple[int, int, str]]]) -> str:
    """Byte by byte: what a rule takes is gone; a run of edits that overlap is one, said by the rule
    that stands first in it."""
    data = text.encode()
    edits = [(s, e, rank, new) for rank, rule in enumerate(several) for s, e, new in rule]
    out, at = b"", 0
    while at < len(data):
        group = [edit for edit in edits if edit[0] == at]
        if not group:
            out, at = out + data[at : at + 1], at + 1
            continue
        end = max(edit[1] for edit in group)
        while more := [e for e in edits if e not in group and at <= e[0] < end]:
            group += more
            end = max(edit[1] for edit in group)
        out += min(group, key=lambda edit: (edit[2], edit[0]))[3].encode()
        at = end
    return out.decode()


def random_ranges(text: str, pick: random.Random) -> list[tuple[int, int, str]]:
    if pick.random() < 0.3:
        return []
    if pick.random() < 0.15:
        return [(0, len(text.encode()), "" if pick.random() < 0.7 else " \n")]
    cuts = sorted(pick.sample(range(len(text) + 1), 8))
    at = [len(text[:cut].encode()) for cut in cuts]
    return [(a, b, pick.choice(("", "[X]", "。"))) for a, b in zip(at[::2], at[1::2], strict=True)]


def ids_of(root: Path, text: str) -> list[int]:
    """By the reference, straight from the text."""
    file = str(root / "tokens" / manifest(root)["tokenizer"]["hash"] / "tokenizer.json")
    return load(Tokenizer(file=file)).encode(pa.array([text]))[0].tolist()


def row_of_windows(plan: Plan) -> list[int]:
    """All ids of a packed source of one part, without the remainder."""
    [path] = Path(plan.sources[0].folder).glob("part-*.arrow")
    windows = pa.ipc.open_file(str(path)).read_all()["ids"].to_pylist()
    return [i for window in windows for i in window[:-1]] + windows[-1][-1:]


def dealt(root: Path, documents: Documents) -> Documents:
    tokenizer = manifest(root)["tokenizer"]["hash"]
    how = Packing(3, 32, tokenizer, tokens_fingerprint(root, tokenizer))
    [part] = deal(documents, how)
    return part


@pytest.mark.parametrize("order", [("one", "two"), ("two", "one"), ("one",)])
def test_packed_ids_are_those_of_the_edited_text(root: Path, order: tuple[str, ...]) -> None:
    texts, pick = texts_of(root), random.Random(7)
    rules = {
        name: {i: random_ranges(text, pick) for i, text in texts.items()} for name in ("one", "two")
    }
    for name, ranges in rules.items():
        write_edits(root, name, ranges)
    selection, plan = selected(root, *order), packed(root, *order)
    documents = dealt(root, selection.documents["all"])
    before = selected(root).documents["all"]
    expected: list[int] = []
    bytes_after = 0
    for key, num_tokens, num_bytes, edited in zip(
        documents.id, documents.num_tokens, documents.num_bytes, documents.is_edited, strict=True
    ):
        text = texts[key.tobytes().hex()]
        several = [rules[name][key.tobytes().hex()] for name in order]
        after = edited_by_hand(text, several)
        assert after.strip()
        assert edited == any(several)
        ids = ids_of(root, after)
        assert (num_tokens, num_bytes) == (len(ids), len(after.encode()))
        bytes_after += len(after.encode())
        expected += ids
    got = row_of_windows(plan)
    assert got == expected[: len(got)]
    assert len(expected) - len(got) < 32
    changes = selection.counts[0].changes
    assert changes.emptied == len(before) - len(documents) > 0
    assert changes.edited == documents.is_edited.sum() > 0
    total = int(before.num_bytes.sum())
    assert total + changes.added_bytes == changes.removed_bytes + bytes_after
    assert plan.sources[0].num_tokens == len(expected)
    assert plan.sources[0].changes == changes


def test_only_selected_documents_with_an_edit_are_tokenized_and_arms_share_them(root: Path) -> None:
    chinese = selected(root, "privacy", where="lang = 'zh'")
    folder = folder_of(root, tokenizer_of([root]), ["privacy"])

    def kept() -> dict[str, int]:
        return {p.name: len(pa.ipc.open_file(str(p)).read_all()) for p in folder.iterdir()}

    first = kept()
    assert sum(first.values()) == chinese.counts[0].changes.edited
    assert 0 < chinese.counts[0].changes.edited < len(chinese.documents["all"])
    selected(root, "privacy", where="lang = 'zh' and num_bytes > 300")
    assert kept() == first
    everything = selected(root, "privacy")
    assert kept().items() > first.items()
    assert sum(kept().values()) == everything.counts[0].changes.edited
    found, stored = everything.documents["all"], selected(root).documents["all"]
    same = ~found.is_edited
    assert np.array_equal(found.num_tokens[same], stored.num_tokens[same])


def test_a_selection_is_named_by_its_edits(root: Path) -> None:
    plain, edited = packed(root), packed(root, "privacy")
    assert plain.sources[0].selection != edited.sources[0].selection
    assert plain.fingerprint != edited.fingerprint
    where = "not text like '%@mail.cn%'"
    without = packed(root, where=where)
    assert packed(root, "privacy", where=where).sources[0].folder == without.sources[0].folder
    write_edits(root, "copy", {})
    assert packed(root, "copy").sources[0].folder == plain.sources[0].folder


def test_heldout_text_is_never_edited(root: Path) -> None:
    path = root / "heldout" / "documents.parquet"
    before = path.read_bytes()
    plan = packed(root, "privacy")
    assert path.read_bytes() == before
    held = pq.read_table(path)
    assert any("@mail.cn" in text for text in held["text"].to_pylist())
    contents = {content.as_py() for content in held["content_hash"]}
    chosen = selected(root, "privacy").documents["all"].content_hash
    assert contents.isdisjoint(content.tobytes() for content in chosen)
    assert plan.heldout == len(contents)


def test_after_a_fault_the_same_windows(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = folder_of(root, tokenizer_of([root]), ["privacy"])
    write, calls = EditedTokens._write, []

    def failing(self: EditedTokens, part: int, *rest: Any) -> None:
        calls.append(part)
        if len(calls) == 3:
            raise KeyboardInterrupt
        write(self, part, *rest)

    monkeypatch.setattr(EditedTokens, "_write", failing)
    with pytest.raises(KeyboardInterrupt):
        packed(root, "privacy")
    assert len(list(folder.iterdir())) == 2
    monkeypatch.setattr(EditedTokens, "_write", write)
    plan = packed(root, "privacy")
    whole = {path.name: path.read_bytes() for path in folder.iterdir()}
    windows = Path(plan.sources[0].folder)
    first = {path.name: path.read_bytes() for path in windows.iterdir()}
    damaged = sorted(folder.iterdir())[0]
    damaged.write_bytes(damaged.read_bytes()[:-30] + b"x" * 30)
    sorted(folder.iterdir())[1].unlink()
    shutil.rmtree(windows)
    assert packed(root, "privacy") == plan
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == whole
    assert {path.name: path.read_bytes() for path in windows.iterdir()} == first


def test_damage_between_plan_and_packing_is_named(root: Path) -> None:
    tokenizer = manifest(root)["tokenizer"]["hash"]
    found = selected(root, "privacy").documents["all"]
    edited = found.take(found.is_edited)
    shards = EditedTokens(root, tokenizer, ["privacy"])
    rows = shards.rows(edited.part, edited.edits)
    path = sorted(folder_of(root, tokenizer_of([root]), ["privacy"]).iterdir())[0]
    path.write_bytes(path.read_bytes()[:-30] + b"x" * 30)
    at = np.cumsum(edited.num_tokens) - edited.num_tokens
    ids = np.zeros(int(edited.num_tokens.sum()), shards.dtype)
    with pytest.raises(CorpusError, match=f"{path.name} is damaged: .*; call again: it is made"):
        shards.gather(edited.part, rows, edited.num_tokens, at, ids)
    path.unlink()
    with pytest.raises(CorpusError, match="edited documents went meanwhile; call again"):
        EditedTokens(root, tokenizer, ["privacy"]).rows(edited.part, edited.edits)


@pytest.mark.parametrize("table", ["documents", "edits/privacy"])
def test_damaged_tables_are_never_tokenized(root: Path, table: str) -> None:
    path = root / table / part_name(1)
    data = bytearray(path.read_bytes())
    data[len(data) // 3] ^= 1
    path.write_bytes(data)
    with pytest.raises(CorpusError, match=rf"{table}/part-00001.parquet is damaged"):
        selected(root, "privacy", where="true")


def test_a_source_of_which_nothing_is_left_is_named(root: Path) -> None:
    everything: Ranges = {i: [(0, len(t.encode()), "")] for i, t in texts_of(root).items()}
    write_edits(root, "all", everything)
    message = r"source 'all' has no document left: its edits \(all, privacy\) leave nothing of all"
    with pytest.raises(ValueError, match=message):
        selected(root, "all", "privacy")


def test_mix_shows_what_edits_did(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = mixture(root, "privacy")
    assert mix([str(path), "--tokens", "3200", "--dry-run"]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    [changes] = [count.changes for count in select(load_mixture(path)).counts]
    head = lines.index(
        "edited in  documents  left empty, so out  bytes removed  bytes added".split()
    )
    numbers = (changes.edited, changes.emptied, changes.removed_bytes, changes.added_bytes)
    assert lines[head + 1] == ["all", *(f"{number:,}" for number in numbers)]
    assert mix([str(mixture(root)), "--tokens", "3200", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["sources"][0]["changes"] == dict.fromkeys(
        ("edited", "emptied", "removed_bytes", "added_bytes"), 0
    )


@pytest.mark.slow
def test_the_same_windows_at_another_shard_size_and_number_of_workers(
    root: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    edited_corpus.write_texts(other)
    settings = other / "corpus.yaml"
    settings.write_text(edited_corpus.SETTINGS.replace("16000", "50000"), "utf-8")
    shutil.copy(next(root.glob("tokens/*/tokenizer.json")), other / "tokenizer.json")
    small_corpus.assay("prepare", settings, "--workers", "2")
    one, two = packed(root, "privacy"), packed(other / "corpus", "privacy")
    assert one.fingerprint == two.fingerprint
    for path in Path(one.sources[0].folder).iterdir():
        assert path.read_bytes() == (Path(two.sources[0].folder) / path.name).read_bytes()
