"""Packing policies: exact small layouts, and what holds for all of any documents."""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mixture_corpus import TOKENIZER, write_tokens

from kernels.bins import best_fit
from mixtures.dealing import deal, units
from mixtures.layout import PADDING, POLICIES, Layout, lay_out, measured, ordered
from mixtures.open_parts import OpenParts
from mixtures.packed import PADDED, Loss, Packed, Packing, folder_of
from mixtures.packing import in_a_row, pack
from mixtures.part import Part

POLICY_NAMES = st.sampled_from(sorted(POLICIES))


def one_by_one(sizes: list[int], capacity: int) -> list[int]:
    """Best fit by its definition: the fullest bin that the item fits, the newest of equals."""
    left: list[tuple[int, int]] = []  # (places left, when it came to have so many), by bin
    chosen = []
    for now, size in enumerate(sizes):
        fits = [(room, -since, at) for at, (room, since) in enumerate(left) if room >= size]
        at = min(fits)[2] if fits else len(left)
        if at == len(left):
            left.append((capacity, now))
        left[at] = (left[at][0] - size, now)
        chosen.append(at)
    return chosen


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_best_fit_is_its_definition(data: st.DataObject) -> None:
    capacity = data.draw(st.integers(1, 40))
    sizes = sorted(data.draw(st.lists(st.integers(1, capacity), max_size=80)), reverse=True)
    assert best_fit(np.array(sizes, np.int64), capacity).tolist() == one_by_one(sizes, capacity)


def rows(layout: Layout) -> list[list[tuple[int, int, int]]]:
    """(document, begin in the row, length) of each window."""
    found: list[list[tuple[int, int, int]]] = [[] for _ in range(layout.num_windows)]
    for window, *piece in zip(
        layout.window.tolist(),
        layout.document.tolist(),
        layout.begin.tolist(),
        layout.length.tolist(),
        strict=True,
    ):
        found[window].append((piece[0], piece[1], piece[2]))
    return found


def laid_out(policy: str, lengths: list[int], length: int) -> tuple[Layout, tuple[int, Loss]]:
    tokens = np.array(lengths, np.int64)
    layout = lay_out(policy, tokens, np.ones_like(tokens), length)
    return layout, measured(layout, tokens, length + 1)


def test_concat_of_a_few() -> None:
    """Windows of 4 + 1: 3 5 2 tokens are two windows, and one token is left over."""
    layout, (out, loss) = laid_out("concat", [3, 5, 2], 4)
    assert rows(layout) == [[(0, 0, 3), (1, 3, 2)], [(1, 4, 4), (2, 8, 1)]]
    # the third document loses its end; three tokens of the second come without its beginning
    assert (out, loss) == (9, Loss(padding=0, cut=2, cut_short=2, headless=3))


def test_best_fit_of_a_few() -> None:
    """12 is two windows of 5 (which share an id) and a rest of 4; 3 and 2 fill one; 1 goes to 4."""
    layout, (out, loss) = laid_out("best_fit", [3, 12, 2, 1], 4)
    assert rows(layout) == [
        [(0, 0, 3), (2, 15, 2)],
        [(1, 3, 5)],
        [(1, 7, 5)],
        [(1, 11, 4), (3, 17, 1)],
    ]
    assert (out, loss) == (18, Loss(padding=0, cut=1, cut_short=0, headless=4 + 3))
    layout, (out, loss) = laid_out("best_fit", [4, 4, 5], 4)
    assert rows(layout) == [[(0, 0, 4), (PADDING, 0, 1)], [(1, 4, 4), (PADDING, 0, 1)], [(2, 8, 5)]]
    assert (out, loss) == (13, Loss(padding=2))


def test_buckets_are_powers_of_two_in_order() -> None:
    sizes = np.array([9, 1, 3, 8, 2, 1, 15, 16])
    assert sizes[ordered("buckets", sizes)].tolist() == [1, 1, 3, 2, 9, 8, 15, 16]
    assert sizes[ordered("best_fit", sizes)].tolist() == sizes.tolist()


def test_nothing_is_nothing() -> None:
    for policy in POLICIES:
        layout, lost = laid_out(policy, [], 4)
        assert (layout.num_windows, lost) == (0, (0, Loss()))


# --- on disk --------------------------------------------------------------------------------------

TEXTS = [[100 * n + i for i in range(1 + n % 7)] for n in range(1, 40)]


def test_concat_is_what_it_was(tmp_path: Path) -> None:
    """Names and bytes of before there were other policies: made at commit 48f6923."""
    packed = pack(
        tmp_path, write_tokens(tmp_path, TEXTS, 10), Packing(17, 8, TOKENIZER, "made so", 80)
    )
    assert packed.selection == "07bf1e2458f65ccd57d9fdaab255e32c"
    manifest = json.loads((folder_of(tmp_path, packed.selection) / "manifest.json").read_text())
    assert {name: file["xxh3"] for name, file in manifest["files"].items()} == {
        "documents.arrow": "2c855d9f9c6ea52588427404c8e87ba0",
        "part-00000.arrow": "008edfbb427e86c4f69039f2d565de42",
        "part-00001.arrow": "a6a190d1446559e111d17078e22f9502",
    }


def parts(root: Path, packed: Packed, length: int | None = None) -> list[Part]:
    folder = str(folder_of(root, packed.selection))
    parts = OpenParts(length or packed.packing.sequence_length)
    return [parts.part(folder, number) for number in range(len(packed.windows))]


def pieces_of(part: Part, window: int) -> list[tuple[bytes, list[int]]]:
    """(id, tokens) of each document in a window, without padding."""
    row = part.row(window)
    tokens = np.split(row.tokens, row.starts[1:])
    found = [(n.tobytes(), t.tolist()) for n, t in zip(row.ids, tokens, strict=True)]
    assert all(name != PADDED for name, _ in found[:-1]), "padding is at the end"
    assert all(set(t) <= {0} for n, t in found if n == PADDED), "and is the end of a document"
    return [(name, t) for name, t in found if name != PADDED]


@given(
    POLICY_NAMES,
    st.lists(st.integers(0, 30), min_size=1, max_size=60),
    st.integers(2, 12),
    st.integers(20, 400),
)
@settings(max_examples=60, deadline=None)
def test_every_token_is_packed_or_counted(
    policy: str, lengths: list[int], length: int, part_tokens: int
) -> None:
    """Whatever the policy: each id of each document stands once, or is remainder; and the losses
    are those that one counts in the windows."""
    texts = [[1 + (37 * n + i) % 60_000 for i in range(num)] for n, num in enumerate(lengths)]
    how = Packing(17, length, TOKENIZER, "made so", part_tokens, policy)
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        documents = write_tokens(root, texts, 7)
        packed = pack(root, documents, how)
        numbers = (documents.part * 7 + documents.row).tolist()
        text_of = {i.tobytes(): texts[n] for i, n in zip(documents.id, numbers, strict=True)}
        held: dict[bytes, Counter[int]] = {name: Counter() for name in text_of}
        whole: set[bytes] = set()
        places = headless = 0
        for part, num in zip(parts(root, packed), packed.windows, strict=True):
            for window in range(num):
                places += len(part.row(window).tokens)
                for name, tokens in pieces_of(part, window):
                    text = text_of[name]
                    begin = text.index(tokens[0])  # ids of a text differ
                    assert tokens == text[begin : begin + len(tokens)]
                    held[name].update(tokens[1:] if begin else tokens)
                    headless += len(tokens) - 1 if begin else 0
                    whole |= {name} if len(tokens) == len(text) else set()
    seen = {name: len(count) for name, count in held.items()}
    assert packed.tokens_in == sum(lengths) == packed.tokens_out + packed.remainder
    assert packed.tokens_out == sum(seen.values())
    cut = {name for name, num in seen.items() if num and name not in whole}
    short = {name for name in cut if len(text_of[name]) <= length + 1}
    assert (packed.loss.cut, packed.loss.cut_short) == (len(cut), len(short))
    assert packed.loss.headless == headless
    for name, count in held.items():  # the first one may stand at both sides of a border
        assert all(num == 1 or at == text_of[name][0] for at, num in count.items())
    shared = sum(num - 1 for num in packed.windows if num) if policy != "best_fit" else 0
    if policy == "best_fit":
        shared = sum(  # full windows and a rest share one id with the one before
            (num - 2) // length for num in map(len, text_of.values()) if num > length + 1
        )
        assert packed.remainder == 0
        assert not short, "no document is cut that fits"
    else:
        assert packed.loss.padding == 0
        assert packed.remainder <= length * len(packed.windows)
    assert packed.loss.padding == places - packed.tokens_out - shared


@given(POLICY_NAMES, st.lists(st.integers(1, 40), min_size=1, max_size=50), st.integers(2, 6),
       st.integers(1, 4))  # fmt: skip
@settings(max_examples=40, deadline=None)
def test_a_length_that_divides_the_packed_one_reads_the_same_files(
    policy: str, lengths: list[int], length: int, pieces: int
) -> None:
    """A packed window of 3 x 4 + 1 ids is three windows of 4 + 1: the last id of each is the first
    of the next, and documents begin where they do."""
    texts = [[1 + (37 * n + i) % 60_000 for i in range(num)] for n, num in enumerate(lengths)]
    how = Packing(17, length * pieces, TOKENIZER, "made so", 1 << 20, policy)
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        packed = pack(root, write_tokens(root, texts, 7), how)
        (long,), (short,) = parts(root, packed), parts(root, packed, length)
        assert packed.read_at(length).windows == (packed.num_windows * pieces,)
        holders: dict[bytes, list[int]] = {}
        for window in range(packed.num_windows * pieces):
            at, piece = divmod(window, pieces)
            begin = piece * length
            inside, around = short.row(window), long.row(at)
            assert inside.tokens.tolist() == around.tokens[begin:][: length + 1].tolist()
            owner = np.repeat(
                np.arange(len(around.starts)),
                np.diff(np.append(around.starts, length * pieces + 1)),
            )[begin : begin + length + 1]
            firsts = np.flatnonzero(np.append(True, np.diff(owner)))
            assert inside.starts.tolist() == firsts.tolist()
            assert inside.ids.tolist() == around.ids[owner[firsts]].tolist()
            for name in inside.ids:
                holders.setdefault(name.tobytes(), []).append(window)
        for name, windows in holders.items():
            assert sorted(short.holders(pa.array([name], pa.binary(16)))) == windows


def test_padding_has_no_loss_and_is_seen_by_nothing(tmp_path: Path) -> None:
    import torch

    from mixtures.borders import divided, numbered
    from trainer.attention import Scope, dense_mask
    from trainer.losses import IGNORED
    from trainer.objectives import CAUSAL, make_example

    texts = [[7] * 6, [8] * 6, [9] * 3]
    documents = write_tokens(tmp_path, texts, 3)
    packed = pack(tmp_path, documents, Packing(17, 9, TOKENIZER, "made so", 1 << 20, "best_fit"))
    assert (packed.windows, packed.loss) == ((2,), Loss(padding=5))
    (part,) = parts(tmp_path, packed)
    counts = 0
    for window in range(2):
        tokens = part.row(window).tokens.astype(np.int64)
        starts, names = divided(part.row(window), frozenset())
        (number,) = numbered([starts], 10)
        assert len(names) == number[-1] + 1
        padding = np.array([names[at].tobytes() == PADDED for at in number])
        assert padding.tolist() == (tokens == 0).tolist()
        document = torch.from_numpy(number)[None]
        example = make_example(CAUSAL, torch.from_numpy(tokens)[None], document, 0, 0)
        valid = (example.labels_BT != IGNORED)[0].numpy()
        assert not valid[padding[1:]].any()
        seen = dense_mask(Scope(document))[0, 0].numpy()
        assert seen[:, padding].sum() == padding.sum(), "each sees itself, and nothing else does"
        counts += int(valid.sum())
    assert counts == 5 + 5 + 2


def test_what_is_dealt_keeps_its_order_in_each_policy(tmp_path: Path) -> None:
    """Windows come in the order of their first documents; inside of one that of the dealing."""
    documents = write_tokens(tmp_path, TEXTS, 10)
    for policy in ("concat", "best_fit"):
        how = Packing(17, 8, TOKENIZER, "made so", 1 << 20, policy)
        packed = pack(tmp_path, documents, how)
        (dealt,) = deal(documents, how)
        rank = {name.tobytes(): at for at, name in enumerate(in_a_row(dealt, how).id)}
        (part,) = parts(tmp_path, packed)
        ranks = [
            [rank[name] for name, _ in pieces_of(part, window)]
            for window in range(packed.num_windows)
        ]
        assert ranks == sorted(ranks)
        assert all(row == sorted(row) for row in ranks)
    assert units(dealt).tolist() == [1] * len(dealt)


@pytest.mark.parametrize("policy", sorted(POLICIES))
def test_one_document_of_many_windows(tmp_path: Path, policy: str) -> None:
    documents = write_tokens(tmp_path, [list(range(1, 1_001))], 1)
    packed = pack(tmp_path, documents, Packing(17, 8, TOKENIZER, "made so", 1 << 20, policy))
    (part,) = parts(tmp_path, packed)
    ids = [part.row(window).tokens.tolist() for window in range(packed.num_windows)]
    assert ids[:124] == [list(range(8 * w + 1, 8 * w + 10)) for w in range(124)]
    # 124 x 8 + 1 ids; 7 are left
    assert packed.tokens_out == (1_000 if policy == "best_fit" else 993)
    assert ids[124:] == ([[*range(993, 1_001), 0]] if policy == "best_fit" else [])
