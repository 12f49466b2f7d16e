"""Parallel pages in a mixture: none beside its held-out translation, a pair in one window."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import hypothesis
import pyarrow as pa
import yaml
from hypothesis import strategies as st
from mixture_corpus import Doc, Tiny, write_corpus

from mixtures.candidates import heldout_hashes
from mixtures.dealing import deal, units
from mixtures.packed import packing_of
from mixtures.select import select
from mixtures.spec import load_mixture
from pipeline.sql import ask

BY_URL = {"url": [["/en/", "/zh/"]]}
PAIRS = [
    Doc(text, lang, url=f"https://a.org/{lang}/{n}")
    for n in range(8)
    for lang, text in (("en", f"page number {n}"), ("zh", f"第{n}页"))
]
DOCS = [*PAIRS, Doc("alone", url="https://a.org/about"), Doc("nowhere")]


def write(root: Path, tiny: Tiny, shard_rows: int = 5, **keys: Any) -> Path:
    write_corpus(root / "web", tiny, shard_rows)
    spec = {"corpora": {"web": "web"}, "sequence_length": 8, "unique": "exact"}
    path = root / "mixture.yaml"
    path.write_text(yaml.safe_dump(spec | {"sources": {"all": {"from": "web", **keys}}}), "utf-8")
    return path


def chosen(path: Path, tiny: Tiny) -> list[int]:
    return tiny.numbers(select(load_mixture(path)).documents["all"].id)


def asked(root: Path, query: str) -> list[dict[str, Any]]:
    with ask(root, query, macros={}, timeout_seconds=60.0) as batches:
        rows: list[dict[str, Any]] = batches.read_all().to_pylist()
        return rows


def test_the_column(tmp_path: Path) -> None:
    write_corpus(tmp_path / "told", Tiny(DOCS, translation_group=BY_URL), 5)
    write_corpus(tmp_path / "not", Tiny(DOCS), 5)
    query = (
        "select translation_group as name, count(*) as n from documents where url is null or "
        "url like '%/3' or url like '%about' group by 1 order by 1"
    )
    assert asked(tmp_path / "told", query) == [
        {"name": "//a.org/en/3", "n": 2},
        {"name": None, "n": 2},
    ]
    assert asked(tmp_path / "not", query) == [{"name": None, "n": 4}]


def test_whoever_is_of_a_held_out_group_is_not_trained_on(tmp_path: Path) -> None:
    """2 is held out, 9 a copy of held-out text: their partners 3 and 8 go with them."""
    tiny = Tiny(DOCS, heldout=[2], matches=[9])
    assert chosen(write(tmp_path, tiny), tiny) == [n for n in range(18) if n not in (2, 9)]
    tiny = Tiny(DOCS, heldout=[2], matches=[9], translation_group=BY_URL)
    path = write(tmp_path, tiny)
    assert chosen(path, tiny) == [n for n in range(18) if n not in (2, 3, 8, 9)]
    assert select(load_mixture(path)).heldout == 4
    found = asked(tmp_path / "web", "select id from documents where heldout order by url")
    assert [row["id"] for row in found] == [tiny.id(n) for n in (2, 8, 3, 9)]


def test_a_translation_in_another_corpus_goes_too(tmp_path: Path) -> None:
    english = Tiny(PAIRS[::2], heldout=[5], translation_group=BY_URL, name="en")
    held = [english.docs[5]]
    chinese = Tiny(PAIRS[1::2], kept=held, translation_group=BY_URL, name="zh")
    roots = [write_corpus(tmp_path / t.name, t, 3) for t in (english, chinese)]
    pair = sorted(doc.content.hex() for doc in PAIRS[10:12])
    assert heldout_hashes(roots).to_pylist() == pair
    assert heldout_hashes(roots[1:]).to_pylist() == [held[0].content.hex()]


@hypothesis.settings(max_examples=15, deadline=None)
@hypothesis.given(
    held=st.lists(st.integers(0, 17), max_size=3, unique=True),
    shard_rows=st.integers(1, 18),
    order=st.permutations(range(18)),
)
def test_no_leak_in_any_sharding(held: list[int], shard_rows: int, order: list[int]) -> None:
    docs = [DOCS[n] for n in order]
    tiny = Tiny(docs, heldout=[order.index(n) for n in held], translation_group=BY_URL)
    with tempfile.TemporaryDirectory() as folder:
        found = {order[n] for n in chosen(write(Path(folder), tiny, shard_rows), tiny)}
    gone = {m for n in held for m in ((n, n ^ 1) if n < 16 else (n,))}
    assert found == set(range(18)) - gone


def test_a_pair_is_dealt_together_in_order(tmp_path: Path) -> None:
    tiny = Tiny(DOCS, heldout=[2], translation_group=BY_URL)
    path = write(tmp_path, tiny, group="translation_group", group_order="lang = 'en'")
    mixture = load_mixture(path)
    selection = select(mixture)
    packing = packing_of(mixture, tmp_path / "web", selection.tokenizer)
    (part,) = deal(selection.documents["all"], packing)
    known = {tiny.id(n): n for n in range(18)}
    numbers = [known[name.tobytes().hex()] for name in part.id]
    ends = pa.array(units(part)).to_pylist()
    taken = iter(numbers)
    found = sorted([next(taken) for _ in range(size)] for size in ends)
    assert found == [[n + 1, n] for n in (0, 4, 6, 8, 10, 12, 14)] + [[16], [17]]
