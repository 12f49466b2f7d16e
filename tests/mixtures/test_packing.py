from __future__ import annotations

import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mixture_corpus import TOKENIZER, write_tokens

from mixtures.dealing import Documents, deal, selection_hash
from mixtures.packed import Packing, folder_of, read_packed
from mixtures.packing import measure, pack
from mixtures.tokens import TokenShards
from pipeline.commits import record_path
from pipeline.corpus import CorpusError

TEXTS = [[100 * n + i for i in range(1 + n % 7)] for n in range(1, 40)]


def packing(
    length: int = 8, part_tokens: int = 1 << 20, seed: int = 17, tokens: str = "made so"
) -> Packing:
    return Packing(seed, length, TOKENIZER, tokens, part_tokens)


def read_windows(folder: Path) -> list[dict[str, Any]]:
    return [
        row
        for path in sorted(folder.glob("part-*"))
        for row in pa.ipc.open_file(str(path)).read_all().to_pylist()
    ]


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def test_windows_of_a_small_selection(tmp_path: Path) -> None:
    """Three documents in hash order, windows of 4 + 1 that overlap by one id."""
    documents = write_tokens(tmp_path, [[1, 2, 3, 0], [10, 11, 12, 13, 14, 0], [20, 0]], 2)
    packed = pack(tmp_path, documents, packing(length=4))
    (dealt,) = deal(documents, packing(length=4))
    texts = {4: [1, 2, 3, 0], 6: [10, 11, 12, 13, 14, 0], 2: [20, 0]}
    row = [token for num in dealt.num_tokens.tolist() for token in texts[num]]
    starts = np.cumsum([0, *dealt.num_tokens.tolist()]).tolist()
    windows = read_windows(folder_of(tmp_path, packed.selection))
    assert [w["ids"] for w in windows] == [row[0:5], row[4:9]]
    for at, window in zip((0, 4), windows, strict=True):
        inside = [(s, d) for s, d in zip(starts, dealt.id, strict=False) if s < at + 5]
        inside = [(s, d) for (s, d), e in zip(inside, starts[1:], strict=False) if e > at]
        assert window["starts"] == [max(0, s - at) for s, _ in inside]
        assert window["documents"] == [d.tobytes() for _, d in inside]
    assert (packed.tokens_in, packed.tokens_out, packed.remainder) == (12, 9, 3)


@given(
    st.lists(st.integers(0, 30), min_size=1, max_size=60),
    st.integers(2, 12),
    st.integers(20, 400),
    st.integers(1, 20),
    st.integers(1, 20),
)
@settings(max_examples=25, deadline=None)
def test_tokens_in_is_tokens_out_and_remainder_at_any_sharding(
    lengths: list[int], length: int, part_tokens: int, one: int, two: int
) -> None:
    """datatrove drops the last partial chunk uncounted; here every token is accounted for."""
    texts = [[(7 * n + i) % 60_000 for i in range(num)] for n, num in enumerate(lengths)]
    how = packing(length, part_tokens)
    with tempfile.TemporaryDirectory() as folder:
        a, b = Path(folder, "a"), Path(folder, "b")
        first = pack(a, write_tokens(a, texts, one), how)
        second = pack(b, write_tokens(b, texts, two, batch_rows=2), how)
        assert first == second
        packed = folder_of(a, first.selection)
        assert contents(packed) == contents(folder_of(b, second.selection))
        assert first.tokens_in == sum(lengths) == first.tokens_out + first.remainder
        windows = read_windows(packed)
        assert len(windows) == first.num_windows
        assert first.tokens_out == length * len(windows) + sum(1 for num in first.windows if num)
        assert {len(w["ids"]) for w in windows} <= {length + 1}


def test_more_windows_than_a_batch_and_a_part(tmp_path: Path) -> None:
    texts = [[n % 60_000] * 50 for n in range(400)]
    documents = write_tokens(tmp_path, texts, 70)
    how = packing(length=9, part_tokens=6_000)
    packed = pack(tmp_path, documents, how)
    assert len(packed.windows) == 4
    assert sum(packed.windows) > 2 * 256
    for number, part in enumerate(deal(documents, how)):
        path = folder_of(tmp_path, packed.selection) / f"part-{number:05d}.arrow"
        table = pa.ipc.open_file(str(path)).read_all()
        of_document = {bytes(i): t for i, t in zip(documents.id, _texts(documents), strict=True)}
        row = [token for name in part.id for token in of_document[name.tobytes()]]
        got = [window[:-1] for window in table["ids"].to_pylist()]
        assert [t for window in got for t in window] == row[: 9 * len(got)]
        for window in table.to_pylist():
            ends = [*window["starts"][1:], 10]
            for begin, end, name in zip(window["starts"], ends, window["documents"], strict=True):
                assert set(window["ids"][begin:end]) == {of_document[name][0]}


def _texts(documents: Documents) -> list[list[int]]:
    number = documents.part * 70 + documents.row
    return [[int(n) % 60_000] * 50 for n in number]


def test_a_smaller_selection_lies_within_a_larger_one(tmp_path: Path) -> None:
    documents = write_tokens(tmp_path, TEXTS, 10)
    half = documents.take(np.arange(0, len(documents), 2))
    (whole_order,) = deal(documents, packing())
    (half_order,) = deal(half, packing())
    chosen = {name.tobytes() for name in half.id}
    assert [i.tobytes() for i in whole_order.id if i.tobytes() in chosen] == [
        i.tobytes() for i in half_order.id
    ]


def test_what_the_hash_depends_on(tmp_path: Path) -> None:
    documents = write_tokens(tmp_path, TEXTS, 10)
    base = selection_hash(documents, packing())
    other = [
        selection_hash(documents, packing(seed=18)),
        selection_hash(documents, packing(length=9)),
        selection_hash(documents, packing(tokens="made otherwise")),
        selection_hash(documents.take(np.arange(1, len(documents))), packing()),
    ]
    assert len({base, *other}) == 5
    assert selection_hash(write_tokens(tmp_path / "b", TEXTS, 3), packing()) == base


def test_finished_selections_are_not_packed_again(tmp_path: Path) -> None:
    documents = write_tokens(tmp_path, TEXTS, 10)
    packed = pack(tmp_path, documents, packing())
    folder = folder_of(tmp_path, packed.selection)
    before = {path.name: path.stat().st_mtime_ns for path in folder.iterdir()}
    assert pack(tmp_path, documents, packing()) == packed == read_packed(folder)
    assert packed == measure(documents, packing())
    assert {path.name: path.stat().st_mtime_ns for path in folder.iterdir()} == before
    assert {path.name for path in (tmp_path / "packed").iterdir()} == {".lock", packed.selection}


def test_damaged_windows_are_named(tmp_path: Path) -> None:
    documents = write_tokens(tmp_path, TEXTS, 10)
    packed = pack(tmp_path, documents, packing(part_tokens=80))
    folder = folder_of(tmp_path, packed.selection)
    file = folder / "part-00001.arrow"
    whole = file.read_bytes()
    file.write_bytes(whole[:99] + b"\xff" + whole[100:])
    assert read_packed(folder) == packed
    with pytest.raises(ValueError, match=r"part-00001.arrow is not as it was .*; delete the fol"):
        read_packed(folder, hashes=True)
    file.write_bytes(whole[:-1])
    with pytest.raises(ValueError, match="part-00001.arrow is not as it was written"):
        pack(tmp_path, documents, packing(part_tokens=80))
    file.unlink()
    with pytest.raises(ValueError, match="part-00001.arrow is missing"):
        read_packed(folder)
    file.write_bytes(whole)
    assert read_packed(folder, hashes=True) == packed


@pytest.mark.parametrize("at", [300, 900, -40], ids=["offsets", "ids", "footer"])
def test_a_damaged_token_shard_is_named_and_nothing_is_packed(tmp_path: Path, at: int) -> None:
    """A flipped bit in an id is another id: nothing would tell of it later."""
    documents = write_tokens(tmp_path, TEXTS, 20)
    before = pack(tmp_path / "sound", write_tokens(tmp_path / "sound", TEXTS, 20), packing())
    shard = tmp_path / "tokens" / TOKENIZER / "part-00001.arrow"
    whole = shard.read_bytes()
    damaged = bytearray(whole)
    damaged[at] ^= 1
    shard.write_bytes(damaged)
    message = r"part-00001.arrow is damaged: .*; `assay prepare CORPUS.yaml --verify` makes it"
    with pytest.raises(CorpusError, match=message):
        pack(tmp_path, documents, packing())
    assert [path.name for path in (tmp_path / "packed").iterdir()] == [".lock"]
    shard.write_bytes(whole)
    assert pack(tmp_path, documents, packing()) == before
    packed = folder_of(tmp_path, before.selection)
    assert contents(packed) == contents(folder_of(tmp_path / "sound", before.selection))


def test_any_damage_of_a_token_shard_is_named_or_gives_lengths_that_add_up(tmp_path: Path) -> None:
    """Lengths are read without a hash: they may be wrong, never absurd, and nothing crashes."""
    write_tokens(tmp_path, TEXTS, 20)
    shard = tmp_path / "tokens" / TOKENIZER / "part-00000.arrow"
    whole = shard.read_bytes()
    right = [len(text) for text in TEXTS[:20]]
    seen = Counter[str]()
    for at in range(len(whole)):
        shard.write_bytes(whole[:at] + bytes([whole[at] ^ 64]) + whole[at + 1 :])
        try:
            lengths = TokenShards(tmp_path, TOKENIZER).lengths(0).tolist()
        except CorpusError as error:
            seen["named" if "part-00000.arrow is damaged" in str(error) else str(error)] += 1
            continue
        assert min(lengths, default=0) >= 0
        assert sum(lengths) <= sum(right)
        seen["right" if lengths == right else "wrong"] += 1
    assert set(seen) == {"named", "right", "wrong"}
    assert min(seen["named"], seen["right"]) > 100


def test_a_shard_without_a_record_is_not_packed(tmp_path: Path) -> None:
    documents = write_tokens(tmp_path, TEXTS, 20)
    record_path(tmp_path, f"tokens/{TOKENIZER}", 1).unlink()
    with pytest.raises(CorpusError, match=r"part-00001.arrow has no whole commit record; `assay p"):
        pack(tmp_path, documents, packing())


def test_a_damaged_manifest_is_named(tmp_path: Path) -> None:
    packed = pack(tmp_path, write_tokens(tmp_path, TEXTS, 20), packing())
    manifest = folder_of(tmp_path, packed.selection) / "manifest.json"
    text = manifest.read_text()
    for damaged in (text.replace('"seed": 17', '"seed": 16'), text[:-9], ""):
        manifest.write_text(damaged)
        with pytest.raises(ValueError, match=r"manifest.json is not as it was .*; delete the fold"):
            read_packed(manifest.parent)


def test_what_a_killed_process_left_is_no_obstacle(tmp_path: Path) -> None:
    documents = write_tokens(tmp_path, TEXTS, 10)
    selection = measure(documents, packing()).selection
    attempt = tmp_path / "packed" / f".{selection}.attempt"
    attempt.mkdir(parents=True)
    (attempt / "part-00000.arrow").write_bytes(b"half")
    packed = pack(tmp_path, documents, packing())
    assert len(read_windows(folder_of(tmp_path, selection))) == packed.num_windows
    assert not attempt.exists()


def test_a_token_id_beyond_the_vocabulary_is_named(tmp_path: Path) -> None:
    """lit-llama #306, torchtitan #1495: a device-side assert, far from its cause."""
    documents = write_tokens(tmp_path, [[1, 2, 0], [4, 5, 6, 0], [7, 60_000, 0]], 2)
    with pytest.raises(ValueError, match=r"part-00001.arrow: row 0 holds token id 60000.* 60000 "):
        pack(tmp_path, documents, packing(length=2))
    assert [path.name for path in (tmp_path / "packed").iterdir()] == [".lock"]
