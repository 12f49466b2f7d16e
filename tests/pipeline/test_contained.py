"""One document inside another, through all steps: which pairs are found, and which texts stay."""

from __future__ import annotations

import random
import time
from pathlib import Path
from typing import Any

import corpus_parts
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from corpus_parts import content

from dedup.containment import MAX_COLD, MAX_HOT, MIN_SHINGLES
from dedup.shingles import shingles
from pipeline import schema
from pipeline.corpus import part_paths
from pipeline.dedup_settings import Near
from pipeline.files import write_json
from pipeline.transforms import contained, contained_join, near, near_join
from pipeline.transforms.sweep import sweep
from pipeline.unique import near_unique, outermost

NEAR = Near(containment=0.9)
WORDS = [f"{a}{b}" for a in "ba be bi bo da de di do ka ke ki ko".split() for b in "lmnrst"]
HANS = [chr(code) for code in range(0x4E00, 0x5000)]


def find(root: Path, parts: list[list[str]], num: int = 2) -> list[dict[str, Any]]:
    """All steps, near duplicates too; the rows of `contained`."""
    numbers = corpus_parts.write(root, parts)
    for part in numbers:
        stages = {"sign": near.sign(root, NEAR, part), "keys": contained.find_keys(root, part)}
        sweep(root, part, stages, NEAR.ngram, ("url",))
    for partition in range(num):
        near_join.forest(root, NEAR, numbers, partition, num)
    near_join.join(root, num)
    for part in numbers:
        near.shingle(root, NEAR, part, num)
    for partition in range(num):
        near_join.verify(root, NEAR, numbers, partition, num)
    contained_join.make_filter(root, numbers)
    for part in numbers:
        contained.find_hits(root, NEAR, part)
    for partition in range(num):
        contained_join.propose(root, numbers, partition, num)
    contained_join.join(root, NEAR, numbers, num)
    for part in numbers:
        contained.shingle(root, NEAR, part)
    for partition in range(num):
        contained_join.verify(root, NEAR, numbers, partition, num)
    settings = {"near": NEAR.model_dump()}
    write_json(root / "corpus.json", {"format": schema.FORMAT_VERSION, "settings": settings})
    tables = [pq.read_table(path) for path in part_paths(root, "contained")]
    return pa.concat_tables(tables).to_pylist()


def kept(
    root: Path, parts: list[list[str]], num: int = 2, prefer: list[str] | None = None
) -> set[str]:
    """The texts that stay, the most preferred first (default: by content hash)."""
    find(root, parts, num)
    return staying(root, prefer or sorted({text for part in parts for text in part}, key=content))


def staying(root: Path, texts: list[str]) -> set[str]:
    """Of these, the most preferred first."""
    names = pa.array([content(text) for text in texts], schema.HASH)
    left = near_unique(root, names)
    stays = outermost(root, names.filter(pa.array(left)))
    return {texts[at] for at in np.flatnonzero(left)[stays]}


def words(seed: int, num: int = 80) -> str:
    return " ".join(random.Random(seed).choices(WORDS, k=num))


def definition(texts: list[str], threshold: float = 0.9) -> dict[tuple[bytes, bytes], float]:
    """Who is contained in whom, by sets of shingles; of equal sizes, both."""
    named = {content(text): text for text in texts}
    names = sorted(named)
    hashes, offsets = shingles(pa.array([named[n] for n in names], pa.string()), NEAR.ngram)
    sets = [set(s.tolist()) for s in np.split(hashes, offsets[1:-1])]
    return {
        (a, b): float(np.float32(len(left & right) / len(left)))
        for a, left in zip(names, sets, strict=True)
        for b, right in zip(names, sets, strict=True)
        if a != b and len(right) >= len(left) >= MIN_SHINGLES
        if len(left & right) >= threshold * len(left)
    }


def rows_of(found: list[dict[str, Any]]) -> dict[tuple[bytes, bytes], float]:
    return {(row["content_hash"], row["holder"]): row["containment"] for row in found}


def nested(seed: int) -> list[str]:
    """Texts in English words and in Han; pieces of them, whole or with words replaced; and others
    that hold several."""
    pick = random.Random(seed)
    texts = []
    for family in range(30):
        units, between = (WORDS, " ") if family % 2 else (HANS, "")
        whole = pick.choices(units, k=pick.randint(120, 500))
        texts.append(between.join(whole))
        for _ in range(pick.randint(0, 4)):
            begin = pick.randrange(len(whole) - 20)
            piece = whole[begin : begin + pick.randint(5, 200)]
            for _ in range(pick.randint(0, 3)):
                piece[pick.randrange(len(piece))] = pick.choice(units)
            around = [pick.choices(units, k=pick.randint(0, 40)) for _ in range(2)]
            texts.append(between.join(around[0] * pick.randint(0, 1) + piece + around[1]))
            texts.append(between.join(piece))
    return texts


@pytest.mark.parametrize(("num_parts", "num"), [(1, 1), (3, 2), (4, 8)])
def test_pairs_are_those_of_the_definition(tmp_path: Path, num_parts: int, num: int) -> None:
    texts = nested(1)
    found = find(tmp_path, [texts[p::num_parts] for p in range(num_parts)], num)
    expected = definition(texts)
    assert rows_of(found).items() <= expected.items()
    both = {frozenset(pair) for pair in expected}
    assert {frozenset(pair) for pair in rows_of(found)} == both
    assert (len(texts), len(both), len(found)) == (148, 88, 88)
    sizes = {content(text): len(shingles(pa.array([text]))[0]) for text in texts}
    assert all(row["num_shingles"] == sizes[row["content_hash"]] for row in found)
    assert all(row["holder_shingles"] == sizes[row["holder"]] for row in found)


@pytest.mark.parametrize("turn", range(4))
def test_any_parts_and_any_order_of_inputs_keep_the_same(tmp_path: Path, turn: int) -> None:
    texts = nested(2)
    texts += texts[::5]
    expected = kept(tmp_path / "one", [texts], 1)
    rows = sorted(rows_of(find(tmp_path / "rows", [texts], 1)).items())
    shuffled = random.Random(turn).sample(texts, len(texts))
    num_parts, num = ((2, 1), (9, 2), (5, 4), (3, 8))[turn]
    parts = [shuffled[part::num_parts] for part in range(num_parts)]
    assert kept(tmp_path / "many", parts, num) == expected
    assert sorted(rows_of(find(tmp_path / "again", parts, num)).items()) == rows


def test_what_stays_follows_from_the_definition(tmp_path: Path) -> None:
    """Of what near duplicates leave, a text stays unless a longer one that stays holds it."""
    texts = nested(3)
    find(tmp_path, [texts[::2], texts[1::2]])
    names = pa.array(sorted(map(content, set(texts))), schema.HASH)
    left = names.filter(pa.array(near_unique(tmp_path, names))).to_pylist()
    size = {content(text): len(shingles(pa.array([text]))[0]) for text in texts}
    pairs, stays = definition(texts), list[bytes]()
    for name in sorted(left, key=lambda n: (-size[n], n)):
        if not any((name, other) in pairs for other in stays):
            stays.append(name)
    assert {content(text) for text in staying(tmp_path, sorted(set(texts), key=content))} == set(
        stays
    )
    assert len(stays) < len(left) < len(names)


def test_a_quoted_paragraph_and_an_article_in_a_digest_go(tmp_path: Path) -> None:
    paragraph, article = words(1, 40), words(2, 300)
    long = f"{words(3, 800)} {paragraph} {words(4, 800)}"
    digest = " ".join([*(words(n, 250) for n in range(10, 15)), article, words(20, 100)])
    stays = kept(tmp_path, [[paragraph, digest], [long, article]])
    assert stays == {long, digest}


def test_without_the_holder_what_it_holds_stays(tmp_path: Path) -> None:
    """Within the selection: as of near duplicates."""
    inside, long, other = words(1), f"{words(2)} {words(1)}", f"{words(3)} {words(1)} {words(4)}"
    assert kept(tmp_path, [[inside, long, other]]) == {long, other}
    assert staying(tmp_path, [inside, other]) == {other}
    assert staying(tmp_path, [inside]) == {inside}


def test_a_preferred_short_text_takes_no_longer_one_with_it(tmp_path: Path) -> None:
    """A cookie notice of good style would take every page that shows it."""
    notice = words(1, 30)
    pages = [f"{words(n, 100)} {notice}" for n in range(2, 30)]
    assert kept(tmp_path, [[notice, *pages]], prefer=[notice, *pages]) == set(pages)


def test_near_duplicates_go_as_preferred_and_then_what_the_one_that_stays_holds(
    tmp_path: Path,
) -> None:
    """a is in b, b ~ c, and c has lost the half in which a stands."""
    parts = [words(n, 50) for n in range(1, 12)]
    a, b, c = parts[0], " ".join(parts), " ".join(parts[1:])
    assert kept(tmp_path, [[a, b], [c]], prefer=[b, c, a]) == {b}
    assert staying(tmp_path, [c, b, a]) == {c, a}


def test_a_chain_keeps_both_ends_where_they_differ(tmp_path: Path) -> None:
    """a in b, b in c, of a too little in c."""
    a = words(1, 100)
    b = f"{' '.join(a.split()[:95])} {words(2, 100)}"  # 91 of 96 of a
    c = f"{' '.join(b.split()[8:])} {words(3, 300)}"  # 83 of a; 183 of 191 of b
    assert set(rows_of(find(tmp_path, [[a, b, c]]))) == {
        (content(a), content(b)),
        (content(b), content(c)),
    }
    assert staying(tmp_path, [a, b, c]) == {a, c}


def test_short_texts_are_contained_in_nothing(tmp_path: Path) -> None:
    """A title, a word, nothing; from nine shingles on, 13 words or Han, a text is one."""
    long = words(1, 200)
    thirteen = " ".join(long.split()[50:63])
    texts = ["cat", "", "！", "a cat", " ".join(long.split()[100:112]), thirteen, f"cat {long}"]
    assert kept(tmp_path / "en", [texts]) == {*texts} - {thirteen}
    han = "".join(random.Random(1).sample(HANS, 200))
    texts = ["猫", han[20:32], han[40:53], han]
    assert kept(tmp_path / "zh", [texts]) == {"猫", han[20:32], han}


@pytest.mark.parametrize("script", ["en", "zh"])
def test_documents_that_share_a_footer_alone_are_not_contained(tmp_path: Path, script: str) -> None:
    pick = random.Random(5)
    units, between = (WORDS, " ") if script == "en" else (HANS, "")
    footer = between.join(pick.choices(units, k=60))
    texts = [between.join([*pick.choices(units, k=20 + n % 50), footer]) for n in range(200)]
    assert kept(tmp_path / "without", [texts]) == set(texts)
    assert kept(tmp_path / "with", [[footer], texts]) == set(texts)  # the footer as a document


def test_a_traditional_copy_inside_a_simplified_text_goes(tmp_path: Path) -> None:
    simplified = "汉语的书面语言里，传统字形和简化字形写的是同一个词。学习的人都应该知道这件事情。"
    traditional = "漢語的書面語言裡，傳統字形和簡化字形寫的是同一個詞。學習的人都應該知道這件事情。"
    around = "".join(random.Random(1).choices(HANS, k=300))
    long = f"{around[:150]}{simplified}{around[150:]}"
    assert kept(tmp_path, [[traditional], [long]]) == {long}


def test_one_long_document_holds_two_thousand(tmp_path: Path) -> None:
    articles = [words(n, 30) for n in range(2_000)]
    digest = " ".join(articles)
    begin = time.process_time()
    found = find(tmp_path, [articles[:900], [*articles[900:], digest]])
    assert len(found) == 2_000
    assert staying(tmp_path, [*articles, digest]) == {digest}
    assert time.process_time() - begin < 100  # 6, and compilation where it is the first


def test_two_thousand_documents_hold_one(tmp_path: Path) -> None:
    """It goes for one of the longest, which are what is stored."""
    quote = words(0, 60)
    pages = [f"{words(n, 150 + n % 20)} {quote}" for n in range(1, 2_001)]
    found = find(tmp_path, [pages[::2], [quote], pages[1::2]])
    assert MAX_HOT <= len(found) <= MAX_COLD
    assert {row["content_hash"] for row in found} == {content(quote)}
    assert staying(tmp_path, [quote, *pages]) == set(pages)


def test_copies_in_several_parts_are_one_document(tmp_path: Path) -> None:
    inside, long = words(1), f"{words(2)} {words(1)}"
    parts = [[inside] * 5, [long, inside], [long] * 70, *([inside] for _ in range(70))]
    found = find(tmp_path, parts, 1)
    assert rows_of(found) == {(content(inside), content(long)): 1.0}
    assert len(found) == 1


@pytest.mark.parametrize("parts", [[], [[]], [[], ["", "one", "😀"], []]])
def test_nothing_to_find(tmp_path: Path, parts: list[list[str]]) -> None:
    assert find(tmp_path, parts) == []
    (first, *_) = part_paths(tmp_path, "contained")
    assert pq.read_schema(first) == schema.CONTAINED
