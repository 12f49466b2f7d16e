from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from mixture_corpus import Doc, Tiny, write_corpus

from mixtures.select import Selection, select
from mixtures.spec import load_mixture
from pipeline import schema
from pipeline.config import ConfigError

ENGLISH = {"from": "web", "where": "lang = 'en'"}
CHINESE = {"from": "web", "where": "lang = 'zh'"}


def choose(root: Path, sources: dict[str, Any], **settings: Any) -> Selection:
    path = root / "mixture.yaml"
    spec = {"corpora": {"web": "web"}, "sequence_length": 8, "unique": "none", "sources": sources}
    path.write_text(yaml.safe_dump(spec | settings, sort_keys=False), "utf-8")
    return select(load_mixture(path))


def numbers(selection: Selection, tiny: Tiny) -> dict[str, list[int]]:
    return {name: tiny.numbers(docs.id) for name, docs in selection.documents.items()}


def make(root: Path, tiny: Tiny, **options: int) -> Tiny:
    write_corpus(root / "web", tiny, **options)
    return tiny


def test_rows_and_counts(tmp_path: Path) -> None:
    docs = [Doc("one"), Doc("二", "zh"), Doc("three"), Doc("", "und"), Doc("ひと", "ja", "qa")]
    tiny = make(tmp_path, Tiny(docs), shard_rows=2)
    selection = choose(tmp_path, {"english": ENGLISH, "chinese": CHINESE})
    assert numbers(selection, tiny) == {"english": [0, 2], "chinese": [1]}
    english = selection.counts[0]
    assert (english.documents, english.num_bytes, english.num_tokens) == (2, 8, 10)
    assert (english.claimed, english.copies, english.near) == (2, 0, 0)
    assert [(u.source, u.language, u.documents, u.num_bytes) for u in selection.unclaimed] == [
        ("qa", "ja", 1, 6),
        ("web", "und", 1, 0),
    ]
    chosen = selection.documents["english"]
    places = zip(chosen.part.tolist(), chosen.row.tolist(), chosen.num_tokens.tolist(), strict=True)
    assert sorted(places) == [(0, 0, 4), (1, 0, 6)]
    assert [i.tobytes() for i in chosen.id] == sorted(i.tobytes() for i in chosen.id)


# --- rule 2: copies are resolved within the selection ---------------------------------------------


def chain() -> Tiny:
    """a ~ b ~ c by pairs; d is an exact copy of b. Preference follows the score."""
    docs = [Doc("text a", score=0.9), Doc("text b", score=0.8), Doc("text c", score=0.7)]
    return Tiny([*docs, Doc("text b", score=0.1)], pairs=[(0, 1), (1, 2)])


def test_the_end_of_a_chain_stays(tmp_path: Path) -> None:
    tiny = make(tmp_path, chain())
    near = {"unique": "near", "prefer": ["quality.score desc"]}
    selection = choose(tmp_path, {"all": {"from": "web"}}, **near)
    assert numbers(selection, tiny) == {"all": [0, 2]}
    assert (selection.counts[0].copies, selection.counts[0].near) == (1, 1)


def test_the_middle_of_a_chain_drops_both_ends(tmp_path: Path) -> None:
    tiny = make(tmp_path, chain())
    near = {"unique": "near", "prefer": ["quality.score between 0.75 and 0.85"]}
    assert numbers(choose(tmp_path, {"all": {"from": "web"}}, **near), tiny) == {"all": [1]}


def test_a_better_copy_outside_of_the_selection_drops_nothing(tmp_path: Path) -> None:
    """Anchor-only pairs fail here: with the best copy not selected, both others would stay."""
    tiny = make(tmp_path, chain())
    below = {"from": "web", "where": "quality.score < 0.85"}
    near = {"unique": "near", "prefer": ["quality.score desc"]}
    assert numbers(choose(tmp_path, {"below": below}, **near), tiny) == {"below": [1]}


def test_duplicates_are_resolved_over_all_sources(tmp_path: Path) -> None:
    docs = [Doc("same", source="b"), Doc("same", source="a"), Doc("other", source="b")]
    tiny = make(tmp_path, Tiny(docs))
    sources = {s: {"from": "web", "where": f"source = '{s}'"} for s in "ab"}
    chosen = choose(tmp_path, sources, unique="exact", prefer=["source = 'a'"])
    assert numbers(chosen, tiny) == {"a": [1], "b": [2]}
    assert [count.copies for count in chosen.counts] == [0, 1]
    assert numbers(choose(tmp_path, sources), tiny) == {"a": [1], "b": [0, 2]}


def test_null_comes_last_and_ties_go_by_content_hash_then_id(tmp_path: Path) -> None:
    tiny = make(tmp_path, Tiny([Doc("same", score=None), Doc("same", score=0.1), Doc("same")]))
    by_score = {"unique": "exact", "prefer": ["quality.score"]}
    assert numbers(choose(tmp_path, {"all": {"from": "web"}}, **by_score), tiny) == {"all": [1]}
    first = min(range(3), key=tiny.id)
    tied = choose(tmp_path, {"all": {"from": "web"}}, unique="exact")
    assert numbers(tied, tiny) == {"all": [first]}


def test_unique_by_address_keeps_documents_without_one(tmp_path: Path) -> None:
    docs = [Doc("old", url="u", score=0.1), Doc("new", url="u", score=0.2), Doc("x"), Doc("y")]
    tiny = make(tmp_path, Tiny(docs))
    chosen = choose(tmp_path, {"all": {"from": "web"}}, unique="url", prefer=["quality.score desc"])
    assert numbers(chosen, tiny) == {"all": [1, 2, 3]}


def test_unique_by_address_is_by_its_canonical_form(tmp_path: Path) -> None:
    urls = ["http://www.a.com/p/", "https://a.com/p?utm_source=x#top", "https://a.com/P", ""]
    tiny = make(tmp_path, Tiny([Doc(f"text {url}", url=url) for url in urls]))
    chosen = choose(tmp_path, {"all": {"from": "web"}}, unique="url", prefer=["url"])
    assert numbers(chosen, tiny) == {"all": [0, 2, 3]}


def test_unique_by_folded_text(tmp_path: Path) -> None:
    """Script, case, width, punctuation and spaces make no other text; the order of words does."""
    texts = ["他說：「好」", "他说，好！", "好他说", "Ａ b", "a  B.", "b a", "!!", "??", "!!"]
    tiny = make(tmp_path, Tiny([Doc(text) for text in texts]))
    chosen = choose(tmp_path, {"all": {"from": "web"}}, unique="folded", prefer=["num_chars desc"])
    last = max if tiny.id(6) > tiny.id(8) else min  # of equal contents the smaller id stays
    assert numbers(chosen, tiny) == {"all": [0, 2, 4, 5, *sorted((7, last(6, 8)))]}
    assert chosen.counts[0].copies == 3


@pytest.mark.parametrize("level", ["url", "folded"])
def test_a_corpus_that_does_not_know_its_copies(tmp_path: Path, level: str) -> None:
    make(tmp_path, Tiny([Doc("a")]))
    shutil.rmtree(tmp_path / "web" / "copies")
    with pytest.raises(
        ConfigError, match=rf"'web' .* of an older version, .*`unique: {level}`; call"
    ):
        choose(tmp_path, {"all": {"from": "web"}}, unique=level)
    assert choose(tmp_path, {"all": {"from": "web"}}, unique="exact").counts[0].documents == 1


def test_one_folder_under_two_names(tmp_path: Path) -> None:
    make(tmp_path, Tiny([Doc("a"), Doc("b")]))
    (tmp_path / "link").symlink_to(tmp_path / "web")
    sources = {name: {"from": name} for name in ("link", "web")}
    with pytest.raises(ConfigError, match=r"'link' and 'web' are one folder, .*; name it once"):
        choose(tmp_path, sources, corpora={"web": "web", "link": "link"})


def test_exact_copies_across_corpora(tmp_path: Path) -> None:
    web = Tiny([Doc("same"), Doc("web only")], name="web")
    books = Tiny([Doc("same", source="book"), Doc("book only", source="book")], name="books")
    write_corpus(tmp_path / "web", web)
    write_corpus(tmp_path / "books", books)
    chosen = choose(
        tmp_path,
        {"web": {"from": "web"}, "books": {"from": "books"}},
        corpora={"web": "web", "books": "books"},
        unique="exact",
        prefer=["corpus = 'books'"],
    )
    assert web.numbers(chosen.documents["web"].id) == [1]
    assert books.numbers(chosen.documents["books"].id) == [0, 1]


# --- rule 3: NULL never drops silently, overlap is an error ---------------------------------------


def test_null_stops_the_plan_with_column_source_and_count(tmp_path: Path) -> None:
    docs = [Doc("a", score=None), Doc("b", score=None, source="qa"), Doc("c"), Doc("d", score=None)]
    make(tmp_path, Tiny(docs))
    good = {"good": {"from": "web", "where": "quality.score >= 0.5 and lang = 'en'"}}
    with pytest.raises(ConfigError) as error:
        choose(tmp_path, good)
    assert str(error.value).splitlines()[1:3] == [
        "  source 'good': column quality.score is NULL for 1 document of 'qa'",
        "  source 'good': column quality.score is NULL for 2 documents of 'web'",
    ]
    assert "`missing: keep` or `missing: drop`" in str(error.value)


@pytest.mark.parametrize(("missing", "expected"), [("keep", [0, 2]), ("drop", [2])])
def test_missing_states_the_intent(tmp_path: Path, missing: str, expected: list[int]) -> None:
    tiny = make(tmp_path, Tiny([Doc("a", score=None), Doc("b", score=0.1), Doc("c")]))
    good = {"from": "web", "where": "quality.score >= 0.5", "missing": missing}
    assert numbers(choose(tmp_path, {"good": good}), tiny) == {"good": expected}


def test_a_predicate_that_is_null_although_its_columns_are_not(tmp_path: Path) -> None:
    make(tmp_path, Tiny([Doc("a")]))
    where = "nullif(lang, 'en') = 'zh'"
    with pytest.raises(ConfigError, match="the predicate is NULL for 1 document of 'web'"):
        choose(tmp_path, {"x": {"from": "web", "where": where}})


def test_null_that_does_not_matter_stops_nothing(tmp_path: Path) -> None:
    """`false and NULL` is false: nothing is left open."""
    tiny = make(tmp_path, Tiny([Doc("a"), Doc("二", "zh", score=None)]))
    good = {"from": "web", "where": "lang = 'en' and quality.score > 0"}
    assert numbers(choose(tmp_path, {"good": good}), tiny) == {"good": [0]}


def test_overlap_is_an_error_with_count_and_example(tmp_path: Path) -> None:
    tiny = make(tmp_path, Tiny([Doc("a"), Doc("b", score=0.9), Doc("二", "zh", score=0.9)]))
    sources = {"english": ENGLISH, "good": {"from": "web", "where": "quality.score > 0.8"}}
    with pytest.raises(ConfigError) as error:
        choose(tmp_path, sources)
    assert str(error.value) == (
        f"{tmp_path}/mixture.yaml: 1 document selected by more than one source, for instance "
        f"{tiny.id(1)} by english and good; make their `where` exclude each other, or give them "
        "to the first with `overlap: first`"
    )
    chosen = choose(tmp_path, sources, overlap="first")
    assert numbers(chosen, tiny) == {"english": [0, 1], "good": [2]}
    assert chosen.overlap == 1


# --- rule 5: held-out text ------------------------------------------------------------------------


def test_heldout_text_and_its_copies_are_never_selected(tmp_path: Path) -> None:
    docs = [Doc("held"), Doc("train"), Doc("held"), Doc("held nearly"), Doc("z", score=None)]
    tiny = make(tmp_path, Tiny(docs, heldout=[0, 4], matches=[3]))
    chosen = choose(tmp_path, {"all": {"from": "web", "where": "true or quality.score > 0"}})
    assert numbers(chosen, tiny) == {"all": [1]}
    assert chosen.heldout == 4
    assert chosen.unclaimed == ()


def test_no_predicate_breaks_out_of_the_exclusion(tmp_path: Path) -> None:
    make(tmp_path, Tiny([Doc("held"), Doc("train")], heldout=[0]))
    for where in ("true) or (true", "true; select 1", "id in (select id from documents)"):
        with pytest.raises(ValueError, match="predicate"):
            choose(tmp_path, {"all": {"from": "web", "where": where}})


def test_heldout_text_of_one_corpus_stays_out_of_another(tmp_path: Path) -> None:
    old = Tiny([Doc("shared"), Doc("own")], heldout=[0], name="old")
    write_corpus(tmp_path / "old", old)
    docs = [Doc("shared"), Doc("new"), Doc("shared nearly")]
    tiny = make(tmp_path, Tiny(docs, matches=[2], kept=[old.docs[0]]))
    corpora = {"web": "web", "old": "old"}
    chosen = choose(tmp_path, {"all": {"from": "web"}}, corpora=corpora)
    assert numbers(chosen, tiny) == {"all": [1]}
    assert chosen.heldout == 2


def test_a_corpus_that_was_not_searched_for_the_held_out_text_of_another_is_refused(
    tmp_path: Path,
) -> None:
    """Near and contained copies are found by `prepare`, in a corpus that knows the text."""
    old = Tiny([Doc("one"), Doc("two"), Doc("more")], heldout=[0, 1], name="old")
    web = Tiny([Doc("a"), Doc("b")], heldout=[0], kept=[old.docs[1]], name="web")
    write_corpus(tmp_path / "old", old)
    write_corpus(tmp_path / "web", web)
    corpora = {"web": "web", "old": "old"}
    message = (
        r"corpus 'web' was not searched for copies of the held-out text of 'old': 1 of its 2 texts "
        r"are unknown in .*web; add `heldout: \{keep: \[.*old/heldout.json\]\}` to the "
        r"corpus.yaml of 'web' and call `assay prepare` again"
    )
    with pytest.raises(ConfigError, match=message):
        choose(tmp_path, {"all": {"from": "web"}}, corpora=corpora)
    both = {"web": {"from": "web"}, "old": {"from": "old"}}
    write_corpus(tmp_path / "web", Tiny(web.docs, heldout=[0], kept=old.docs[:2], name="web"))
    with pytest.raises(ConfigError, match="'old' was not searched .* of 'web': 1 of its 3 texts"):
        choose(tmp_path, both, corpora=corpora)
    write_corpus(tmp_path / "old", Tiny(old.docs, heldout=[0, 1], kept=web.docs[:1], name="old"))
    chosen = choose(tmp_path, both, corpora=corpora)
    assert web.numbers(chosen.documents["web"].id) == [1]
    assert old.numbers(chosen.documents["old"].id) == [2]


def test_a_corpus_without_its_held_out_text_is_refused(tmp_path: Path) -> None:
    make(tmp_path, Tiny([Doc("a")]))
    (tmp_path / "web" / "heldout" / "documents.parquet").unlink()
    with pytest.raises(ConfigError, match=r"web has no heldout/documents.parquet: .* put it back"):
        choose(tmp_path, {"all": {"from": "web"}})


# --- what cannot be -------------------------------------------------------------------------------


def test_an_unknown_column_is_named(tmp_path: Path) -> None:
    make(tmp_path, Tiny([Doc("a")]))
    place = rf"{tmp_path}/mixture.yaml: key `sources.x.where`: corpus 'web' cannot be asked: "
    with pytest.raises(ConfigError, match=place + r".*langg.*describe"):
        choose(tmp_path, {"a": ENGLISH, "x": {"from": "web", "where": "langg = 'en'"}})
    with pytest.raises(ConfigError, match=r"key `sources.x.where`: .*Conversion Error.* 'web'"):
        choose(tmp_path, {"x": {"from": "web", "where": "source::int = 3"}})
    with pytest.raises(ConfigError, match=r"mixture.yaml: key `prefer`, `num desc`: .*\"num\""):
        choose(tmp_path, {"x": {"from": "web"}}, prefer=["num_chars", "num desc"])


def test_what_is_no_predicate_is_refused_by_its_key(tmp_path: Path) -> None:
    make(tmp_path, Tiny([Doc("a")]))
    with pytest.raises(ConfigError, match=r"mixture.yaml: key `sources.x.where`: .*does not parse"):
        choose(tmp_path, {"a": ENGLISH, "x": {"from": "web", "where": "num_chars >"}})
    with pytest.raises(ConfigError, match=r"mixture.yaml: key `prefer`: .*'\(num_chars'"):
        choose(tmp_path, {"x": {"from": "web"}}, prefer=["(num_chars desc"])


def test_a_source_without_documents_is_an_error(tmp_path: Path) -> None:
    make(tmp_path, Tiny([Doc("a")]))
    for sources in ({"english": ENGLISH, "chinese": CHINESE}, {"chinese": CHINESE}):
        for unique in ("none", "near"):
            with pytest.raises(ConfigError, match="source 'chinese' has no document left"):
                choose(tmp_path, sources, unique=unique)


def test_an_id_of_two_documents_is_refused(tmp_path: Path) -> None:
    tiny = make(tmp_path, Tiny([Doc("one"), Doc("two"), Doc("three")]))
    path = tmp_path / "web" / "documents" / "part-00000.parquet"
    rows = pq.read_table(path)
    ids = pa.array([bytes.fromhex(tiny.id(n)) for n in (0, 1, 1)], schema.HASH)
    pq.write_table(rows.set_column(rows.schema.get_field_index("id"), rows.field("id"), ids), path)
    message = f"1 id of more than one document, for instance {tiny.id(1)}: in its dump of a wiki"
    with pytest.raises(ConfigError, match=message):
        choose(tmp_path, {"all": {"from": "web"}})
