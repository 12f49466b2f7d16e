"""Kneser-Ney by plain dictionaries is the definition; probabilities add up to one."""

from __future__ import annotations

import itertools
import math
from collections import Counter, defaultdict

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from filters.ngrams import BEGIN, END, UNIT, Model, characters, estimate, score
from filters.spread import FOLDS, fold_char
from filters.text import CLASSES
from kernels.arrow import string_buffers

TEXTS = ["abab cab", "abcab", "bca a", "aab", "我的我你我", ""]


def read(texts: list[str], max_chars: int = 10**6) -> tuple[np.ndarray, np.ndarray]:
    data, offsets = string_buffers(pa.array(texts, pa.string()))
    codes, ends = characters(data, offsets, FOLDS, CLASSES, max_chars)
    return codes, ends


def bits(model: Model, codes: list[int]) -> float:
    """Of some characters after the first, which is BEGIN as a rule."""
    sequence = np.array(codes, np.uint32)
    cost = score(model.table, model.order, model.unknown, sequence, np.array([0, len(codes)]))
    return float(cost[0]) / UNIT


def next_bits(model: Model, context: list[int], code: int) -> float:
    return bits(model, [BEGIN, *context, code]) - bits(model, [BEGIN, *context])


def plain(text: str) -> str:
    """What the model reads of a text."""
    folded = "".join(map(fold_char, text))
    words = "".join("0" if "0" <= c <= "9" else " " if c.isspace() else c for c in folded)
    return "".join(c for i, c in enumerate(words) if c != " " or words[max(i - 1, 0)] != " ")


def shown(codes: np.ndarray, ends: np.ndarray) -> list[str]:
    texts = ["".join(map(chr, codes[a:b])) for a, b in itertools.pairwise(ends)]
    assert all(text[0] == chr(BEGIN) for text in texts)
    return [text[1:] for text in texts]


def test_what_is_read() -> None:
    end = chr(END)
    assert shown(*read(["  Ａ 1\n\n 龍2", "", " \n"])) == [f"a 0 龙0{end}", end, end]
    assert shown(*read(["abc", "ab", "  abc"], 2)) == ["ab", f"ab{end}", "ab"]


@given(st.lists(st.text(st.sampled_from("aB 1\n你Ａ　龍😀é"), max_size=20), max_size=4))
def test_what_is_read_of_any_text(texts: list[str]) -> None:
    assert shown(*read(texts)) == [plain(text) + chr(END) for text in texts]


def definition(texts: list[str], order: int) -> tuple[dict[tuple[int, ...], float], float]:
    """Probability of every n-gram's last character after the others, and of an unseen character."""
    codes, ends = read(texts)
    documents = [codes[a:b].tolist() for a, b in itertools.pairwise(ends)]
    grams = [
        Counter(
            tuple(document[at - length + 1 : at + 1])
            for document in documents
            for at in range(max(length - 1, 1), len(document))
        )
        for length in range(1, order + 1)
    ]
    counts = list(grams)
    for length in range(order - 1, 0, -1):
        follows = Counter(gram[1:] for gram in grams[length])
        counts[length - 1] = Counter(
            {g: follows[g] if follows[g] else n for g, n in grams[length - 1].items()}
        )
    found: dict[tuple[int, ...], float] = {}
    unseen = 0.0
    for length, of_length in enumerate(counts, 1):
        once = sum(n == 1 for n in of_length.values())
        twice = sum(n == 2 for n in of_length.values())
        discount = min(max(once / max(once + 2 * twice, 1), 0.1), 0.9)
        seen: dict[tuple[int, ...], int] = defaultdict(int)
        for gram, n in of_length.items():
            seen[gram[:-1]] += n
        rest: dict[tuple[int, ...], float] = defaultdict(lambda: 1.0)
        for gram, n in of_length.items():
            rest[gram[:-1]] -= (n - discount) / seen[gram[:-1]]
        if length == 1:
            unseen = rest[()] / (len(of_length) + 1)
        for gram, n in of_length.items():
            shorter = unseen if length == 1 else rest[gram[:-1]] * found[gram[1:]]
            found[gram] = (n - discount) / seen[gram[:-1]] + shorter
    return found, unseen


@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_equal_to_the_definition(order: int) -> None:
    codes, ends = read(TEXTS)
    model = estimate(codes, ends, order, 1)
    found, unseen = definition(TEXTS, order)
    for gram, share in found.items():
        if len(gram) > 1:
            after = bits(model, list(gram)) - bits(model, list(gram[:-1]))
            assert after == pytest.approx(-math.log2(share), abs=1e-4)
    assert model.unknown / UNIT == pytest.approx(-math.log2(unseen), abs=1e-4)


@pytest.mark.parametrize(("order", "min_count"), [(1, 1), (2, 1), (3, 1), (5, 1), (3, 2), (5, 2)])
def test_probabilities_add_up_to_one(order: int, min_count: int) -> None:
    """After contexts that were seen, pruned, and never seen."""
    codes, ends = read(TEXTS)
    model = estimate(codes, ends, order, min_count)
    alphabet = [*sorted(set(codes.tolist()) - {BEGIN}), ord("未")]  # one that was never seen
    for context in ("", "a", "ab", "bca", "我的", "aaaa", "xa", "未未"):
        shares = [2 ** -next_bits(model, list(map(ord, context)), code) for code in alphabet]
        assert sum(shares) == pytest.approx(1, abs=1e-3)


def test_what_it_read_is_expected() -> None:
    codes, ends = read(["the cat sat on the mat. " * 5, "今天天气很好。" * 9])
    model = estimate(codes, ends, 5, 2)
    good, bad = (bits(model, [BEGIN, *map(ord, text)]) for text in ("the cat sat", "tac tas hte"))
    assert good < bad / 4
    assert bits(model, [BEGIN, *map(ord, "天气很好")]) < bits(model, [BEGIN, *map(ord, "好很气天")])


@settings(max_examples=20)
@given(st.lists(st.text(st.sampled_from("ab 你好"), max_size=30), min_size=1, max_size=5))
def test_the_same_twice_and_alike_in_any_batch(texts: list[str]) -> None:
    codes, ends = read(texts)
    model = estimate(codes, ends, 3, 2)
    again = estimate(codes, ends, 3, 2)
    assert (model.table == again.table).all()
    together = score(model.table, 3, model.unknown, codes, ends).tolist()
    alone = [score(model.table, 3, model.unknown, *read([text])).tolist()[0] for text in texts]
    assert together == alone
