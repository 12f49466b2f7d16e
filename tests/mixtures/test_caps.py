"""At most so much from one value of a column: the limit, what stays, and what is said of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st
from mixture_corpus import Doc, Tiny, write_corpus

from mixtures.caps import Cut, capped, grouped
from mixtures.commands import mix
from mixtures.explain import explain
from mixtures.select import Selection, select
from mixtures.sources import Cap
from mixtures.spec import load_mixture
from pipeline.config import ConfigError
from pipeline.seeing.asking import rows

Docs = list[tuple[str | None, int]]  # value and tokens, in the order of preference


def kept(docs: Docs, **keys: Any) -> list[int]:
    """Numbers of the documents that stay."""
    cap = Cap.model_validate({"by": "source"} | keys)
    values = pa.chunked_array([[value for value, _ in docs]], pa.string())
    sizes = np.array([tokens for _, tokens in docs], np.int64)
    return np.flatnonzero(capped(cap, values, sizes, np.arange(len(docs)))[0]).tolist()


def test_a_document_stays_where_its_value_has_room() -> None:
    docs: Docs = [("a", 5), ("b", 3), ("a", 6), (None, 50), ("a", 4), ("a", 1), ("", 50)]
    assert kept(docs, max_tokens=10) == [0, 1, 3, 4, 5, 6]
    assert kept(docs, max_tokens=9) == [0, 1, 3, 4, 6]
    assert kept(docs, max_tokens=4) == [1, 3, 4, 6]  # 5 tokens have no room, 4 have
    assert kept(docs, max_documents=2) == [0, 1, 2, 3, 6]
    assert kept(docs, max_documents=1, max_tokens=4) == [1, 3, 4, 6]
    assert kept(docs, max_documents=9, max_tokens=99) == list(range(7))


def test_a_share_is_of_what_stays() -> None:
    """Of 100 tokens 60 are of one value. Half of all is 50, but then only 90 are there: 45, 85,
    and so on, to 40 of 80."""
    docs: Docs = [*[("large", 1)] * 60, *[(f"small {n}", 1) for n in range(40)]]
    assert kept(docs, max_share=0.5) == [*range(40), *range(60, 100)]
    assert kept([*[("a", 1)] * 5, *[("b", 1)] * 9], max_share=0.5) == [*range(5), *range(5, 10)]


def test_a_share_is_exact_as_it_was_written() -> None:
    """.29 * 100 is 28.999999999999996 in floating point."""
    docs: Docs = [*[("a", 1)] * 30, *[(None, 1)] * 71]
    assert len(kept(docs, max_share=0.29)) == 29 + 71


def test_fewer_values_than_shares_leave_nothing() -> None:
    assert kept([("a", 5), ("b", 5), ("c", 5)], max_share=0.3) == []
    assert kept([("a", 5), ("b", 5), ("c", 5)], max_share=0.34) == [0, 1, 2]
    assert kept([("a", 5), ("b", 5), ("c", 5), (None, 5)], max_share=0.2) == [3]


def walk(docs: Docs, limit: int, most: int) -> list[int]:
    """The definition: what stays with room for `limit` tokens of each value, the first `most`."""
    used: dict[str, int] = {}
    number: dict[str, int] = {}
    stays = []
    for at, (value, tokens) in enumerate(docs):
        if value is not None:
            if used.get(value, 0) + tokens > limit or number.get(value, 0) == most:
                continue
            used[value] = used.get(value, 0) + tokens
            number[value] = number.get(value, 0) + 1
        stays.append(at)
    return stays


documents = st.lists(
    st.tuples(st.sampled_from(["a", "b", "c", "d", None]), st.integers(0, 30)), max_size=30
)


@given(documents, st.integers(1, 99), st.one_of(st.none(), st.integers(1, 60)), st.integers(1, 9))
@example([("a", 1)] * 10 + [("b", 1)] * 10 + [("c", 1)] * 9, 34, None, 9)
@settings(max_examples=300, deadline=None)
def test_the_limit_is_the_largest_that_holds(
    docs: Docs, percent: int, max_tokens: int | None, most: int
) -> None:
    def holds(limit: int) -> bool:
        total = sum(docs[at][1] for at in walk(docs, limit, most))
        return 100 * limit <= percent * total

    total = sum(tokens for _, tokens in docs)
    highest = min(total, total if max_tokens is None else max_tokens)
    largest = max(limit for limit in range(highest + 1) if holds(limit))
    cap = {"max_share": percent / 100, "max_tokens": max_tokens, "max_documents": most}
    stays = kept(docs, **cap)
    assert stays == walk(docs, largest, most)
    left = sum(docs[at][1] for at in stays)
    for name in {value for value, _ in docs if value is not None}:
        assert 100 * sum(docs[at][1] for at in stays if docs[at][0] == name) <= percent * left


def test_many_values_close_to_their_share() -> None:
    """201 values of at most .005 each: every step of a plain iteration would take half a per cent
    of the way. Documents are whole, so what stays is less than could be."""
    rng = np.random.default_rng(5)
    values = [f"site {n:03}" for n in rng.integers(0, 203, 60_000)]
    sizes = rng.integers(1, 3_000, 60_000)
    docs: Docs = list(zip(values, sizes.tolist(), strict=True))
    stays = kept(docs, max_share=0.005)
    tokens = np.zeros(203, np.int64)
    np.add.at(tokens, [int(docs[at][0][5:]) for at in stays], sizes[stays])  # type: ignore[index]
    assert tokens.max() <= 0.005 * tokens.sum()
    assert tokens.sum() > 0.7 * sizes.sum()


# --- domains --------------------------------------------------------------------------------------


def test_domains_are_those_that_one_owner_registered() -> None:
    """reference: com.cn, gov.cn and github.io are suffixes under which many register."""
    hosts = {
        "www.news.example.com.cn": "example.com.cn",
        "a.example.com.cn": "example.com.cn",
        "example.com": "example.com",
        "other.com.cn": "other.com.cn",
        "www.beijing.gov.cn": "beijing.gov.cn",
        "www.gov.cn": "www.gov.cn",
        "me.github.io": "me.github.io",
        "docs.me.github.io": "me.github.io",
        "you.github.io": "you.github.io",
        "www.例子.公司.cn": "xn--fsqu00a.xn--55qx5d.cn",
        "a.b.co.uk": "b.co.uk",
        "10.1.2.3": "10.1.2.3",
        "2001:db8::1": "2001:db8::1",
        "localhost": "localhost",
        "": None,
        None: None,
    }
    names, codes = grouped(Cap(by="domain", max_documents=1), pa.chunked_array([list(hosts)]))
    assert [names[at] if at >= 0 else None for at in codes.tolist()] == list(hosts.values())
    names, codes = grouped(Cap(by="lower(domain)", max_documents=1), pa.chunked_array([["a.b.cn"]]))
    assert names == ["a.b.cn"]


# --- a mixture ------------------------------------------------------------------------------------

SITES = ["www.one.com.cn", "blog.one.com.cn", "two.com.cn", "me.github.io", None]
DOCS = [
    Doc(f"{n:02}", score=n / 40, url=f"http://{SITES[n % 5]}/{n}" if SITES[n % 5] else None)
    for n in range(40)
]  # three tokens each; domains: one.com.cn 16, two.com.cn 8, me.github.io 8, 8 without


def spec(folder: Path, **source: Any) -> Path:
    path = folder / "mixture.yaml"
    keys = {"corpora": {"web": "web"}, "sequence_length": 4, "prefer": ["quality.score desc"]}
    path.write_text(yaml.safe_dump(keys | {"sources": {"all": {"from": "web"} | source}}))
    return path


def corpus(folder: Path, shard_rows: int = 100) -> Tiny:
    tiny = Tiny(DOCS)
    write_corpus(folder / "web", tiny, shard_rows=shard_rows)
    return tiny


def choose(folder: Path, **source: Any) -> Selection:
    return select(load_mixture(spec(folder, **source)))


def numbers(tiny: Tiny, selection: Selection) -> list[int]:
    return tiny.numbers(selection.documents["all"].id)


def test_the_best_of_each_domain_stay(tmp_path: Path) -> None:
    tiny = corpus(tmp_path)
    chosen = choose(tmp_path, cap={"by": "domain", "max_documents": 3})
    best = [40 - 5, 40 - 4, 40 - 9]  # of one.com.cn: two hosts
    rest = [n for n in range(40) if n % 5 in (2, 3) and n >= 25]
    assert numbers(tiny, chosen) == sorted([*best[:2], 31, *rest, *range(4, 40, 5)])
    (count,) = chosen.counts
    assert (count.claimed, count.documents, count.num_tokens) == (40, 17, 51)
    found = count.capped
    assert (found.documents, found.num_tokens, found.values, found.cut) == (23, 69, 3, 3)
    assert (found.without, found.limit) == (8, None)
    assert found.most[0] == Cut("one.com.cn", 16, 48, 3, 9)
    assert [cut.value for cut in found.most[1:]] == ["me.github.io", "two.com.cn"]


def test_a_share_of_a_source(tmp_path: Path) -> None:
    """8 documents of each of two domains and 8 without one: .25 of 32 is 8."""
    tiny = corpus(tmp_path)
    (count,) = choose(tmp_path, cap={"by": "domain", "max_share": 0.25}).counts
    assert (count.documents, count.capped.limit, count.capped.cut) == (32, 24, 1)
    one = choose(tmp_path, cap={"by": "domain", "max_tokens": 24})
    assert numbers(tiny, one) == numbers(
        tiny, choose(tmp_path, cap={"by": "domain", "max_share": 0.25})
    )


def test_sharding_changes_nothing(tmp_path: Path) -> None:
    found = []
    for shard_rows in (3, 100):
        corpus(tmp_path / str(shard_rows), shard_rows)
        chosen = choose(tmp_path / str(shard_rows), cap={"by": "domain", "max_share": 0.2})
        found.append([i.tobytes() for i in chosen.documents["all"].id])
    assert found[0] == found[1]
    assert 0 < len(found[0]) < 40


def test_a_cap_is_of_what_is_left_of_copies_and_counts_repeats(tmp_path: Path) -> None:
    corpus(tmp_path)
    twice = choose(tmp_path, repeats={1: 2}, cap={"by": "domain", "max_tokens": 12}).counts[0]
    assert (twice.documents, twice.times) == (3 * 2 + 8, 2 * (3 * 2 + 8))
    assert twice.unique_tokens == 3 * twice.documents
    assert twice.capped.num_tokens == 2 * 3 * 26


def test_any_expression_may_be_capped(tmp_path: Path) -> None:
    corpus(tmp_path)
    cap = {"by": "case when quality.score < 0.5 then 'low' end", "max_documents": 2}
    assert choose(tmp_path, cap=cap).counts[0].documents == 22
    with pytest.raises(ConfigError, match=r"key `sources.all.cap.by`: corpus 'web' cannot be ask"):
        choose(tmp_path, cap={"by": "domane", "max_documents": 2})


def test_nothing_left_is_an_error_with_its_remedy(tmp_path: Path) -> None:
    corpus(tmp_path)
    here = {"where": "domain is not null"}
    with pytest.raises(ConfigError) as error:
        choose(tmp_path, cap={"by": "domain", "max_share": 0.3}, **here)
    assert str(error.value).endswith(
        "source 'all' has no document left: its cap by `domain` leaves nothing of 32, of 3 values; "
        "they cannot have at most 0.3 each of what stays, so raise `max_share` to more than 0.33, "
        "cap by another column, or widen `where`"
    )
    with pytest.raises(ConfigError, match="none is as short as the 2 tokens that a value may have"):
        choose(tmp_path, cap={"by": "domain", "max_tokens": 2}, **here)


def test_inspect_says_why_a_document_went(tmp_path: Path) -> None:
    tiny = corpus(tmp_path)
    path = spec(tmp_path, cap={"by": "domain", "max_documents": 3})
    (row,) = rows(tmp_path / "web", f"select * from documents where id = '{tiny.id(0)}'")
    lines = explain(str(path), tmp_path / "web", {"document": row, "presets": {}})
    assert lines[0] == (
        f"{path}: out: the cap of source all by `domain`: one.com.cn keeps 3 of 16 documents (9 of "
        "48 tokens), the first by `prefer` that fit"
    )


def test_a_cap_by_a_column_without_values_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """NULL never drops, and never merges: all stay, and the plan says so."""
    corpus(tmp_path)
    path = spec(tmp_path, cap={"by": "licence", "max_documents": 1})
    assert mix([str(path), "--tokens", "8", "--dry-run"]) == 0
    told = "nothing removed from all by its cap; 40 documents without a value stay"
    assert told in capsys.readouterr().out.splitlines()
