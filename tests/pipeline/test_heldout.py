"""Held-out sets: the same for any parts, never changed, refused where settings ask for others."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any
from unittest import mock

import corpus_parts
import hypothesis
import pyarrow.parquet as pq
import pytest
from corpus_parts import content, language
from hypothesis import settings
from hypothesis import strategies as st

from pipeline import frozen, given, schema
from pipeline.config import ConfigError
from pipeline.dedup_settings import Near
from pipeline.files import read_json, write_json, write_sealed
from pipeline.heldout_settings import Heldout
from pipeline.tables import write_rows
from pipeline.transforms import heldout, heldout_index, heldout_match
from pipeline.transforms.sweep import sweep

TEXTS = [f"text number {n}" for n in range(300)] + [f"第{n}号文本" for n in range(100)]


LANGUAGES = ("zh", "en")


def choose(
    root: Path, parts: list[list[str]], held: Heldout, languages: tuple[str, ...] = LANGUAGES
) -> dict[str, Any]:
    """Both steps over these parts; returns the counters of `choose`."""
    numbers = corpus_parts.write(root, parts)
    for part in numbers:
        heldout.nominate(root, held, languages, part)
    folders = given.kept_folders(held)
    frozen.check(root, held, folders)
    return heldout.choose(
        root,
        held,
        frozen.kept(folders),
        given.independent(held, root)[0],
        dict.fromkeys(numbers, "web"),
    )


def sets(root: Path) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for row in pq.read_table(root / "heldout" / "documents.parquet").to_pylist():
        assert row["content_hash"] == content(row["text"])
        found.setdefault(row["set"], []).append(row["text"])
    return found


def defined(name: str, texts: list[str], held: Heldout) -> dict[str, list[str]]:
    """The rule, over distinct texts: the lowest share of the hash range, topped up."""
    found = {}
    for lang in ("en", "zh"):
        mine = sorted({text for text in texts if language(text) == lang}, key=content)
        bound = held.share * 2**64
        num = sum(int.from_bytes(content(text)[:8], "big") < bound for text in mine)
        num = min(num, held.max_documents)
        if held.share > 0 and len(mine) >= 20 * held.min_documents:
            num = max(num, held.min_documents)
        if num:
            found[f"{name}/{lang}/web"] = mine[:num]
    return found


# --- the rule -------------------------------------------------------------------------------------


@settings(max_examples=40)
@hypothesis.given(
    texts=st.lists(st.sampled_from(TEXTS), max_size=120),
    copies=st.integers(1, 60),
    num_parts=st.integers(1, 9),
    held=st.builds(
        Heldout,
        share=st.sampled_from([0.0, 0.01, 0.1, 0.5]),
        min_documents=st.integers(0, 4),
        max_documents=st.sampled_from([4, 9, 10_000]),
    ),
)
def test_sets_do_not_depend_on_parts_or_copies(
    texts: list[str], copies: int, num_parts: int, held: Heldout
) -> None:
    many = texts[:1] * copies + texts
    with tempfile.TemporaryDirectory() as folder:
        one, cut = Path(folder, "one", "corpus"), Path(folder, "cut", "corpus")
        choose(one, [texts], held)
        with (
            mock.patch.object(heldout, "MERGE_ROWS", 3),
            mock.patch.object(heldout, "SLICE_ROWS", 2),
        ):
            choose(cut, [many[part::num_parts] for part in range(num_parts)], held)
        assert sets(one) == sets(cut) == defined("corpus", texts, held)
        first, second = (read_json(root / "heldout.json")["sets"] for root in (one, cut))
        assert first == second


def test_a_small_source_gives_its_minimum_and_no_more(tmp_path: Path) -> None:
    held = Heldout(share=0.0001, min_documents=4)
    choose(tmp_path / "a", [TEXTS[:79], TEXTS[:1]], held)
    assert sets(tmp_path / "a") == {}
    choose(tmp_path / "b", [TEXTS[:79], TEXTS[79:80]], held)
    assert sets(tmp_path / "b") == {"b/en/web": sorted(TEXTS[:80], key=content)[:4]}


def test_a_large_source_gives_its_maximum_and_no_more(tmp_path: Path) -> None:
    held = Heldout(share=0.5, min_documents=0, max_documents=30)
    parts = [TEXTS[:200], TEXTS[200:]]
    assert choose(tmp_path / "a", parts, held) == {"sets": 2, "documents": 60}
    assert sets(tmp_path / "a")["a/en/web"] == sorted(TEXTS[:300], key=content)[:30]
    # Of 200 English texts 30; of 100 English and 100 Chinese ones 30 each.
    nominees = [
        heldout.nominate(tmp_path / "a", held, LANGUAGES, part)["nominees"] for part in (0, 1)
    ]
    assert nominees == [30, 60]


def test_share_0_makes_no_sets(tmp_path: Path) -> None:
    held = Heldout(share=0, min_documents=4)
    assert heldout.nominate(
        tmp_path, held, LANGUAGES, corpus_parts.write(tmp_path, [TEXTS])[0]
    ) == {
        "documents": 400,
        "contents": 400,
        "nominees": 0,
    }
    assert choose(tmp_path, [TEXTS], held)["sets"] == 0
    assert sets(tmp_path) == {}


def test_new_sets_are_of_the_languages_of_the_corpus(tmp_path: Path) -> None:
    held = Heldout(share=0.1)
    assert choose(tmp_path, [TEXTS], held)["sets"] == 2
    choose(tmp_path / "other", [TEXTS], held, ("zh",))
    assert list(sets(tmp_path / "other")) == ["other/zh/web"]


def test_nominees_that_are_only_counted_have_no_text(tmp_path: Path) -> None:
    held = Heldout(share=0.01, min_documents=2)
    corpus_parts.write(tmp_path, [TEXTS])
    heldout.nominate(tmp_path, held, LANGUAGES, 0)
    nominees = pq.read_table(heldout.nominate_outputs(tmp_path, 0)[0]).to_pylist()
    for lang in ("en", "zh"):
        mine = sorted((text for text in TEXTS if language(text) == lang), key=content)
        num = max(2, sum(content(text)[:8] < (2**64 // 100).to_bytes(8, "big") for text in mine))
        assert [
            (row["content_hash"], row["text"]) for row in nominees if row["language"] == lang
        ] == [(content(text), text if at < num else None) for at, text in enumerate(mine[:40])]


# --- sets that stand ------------------------------------------------------------------------------


def test_heldout_json_tells_what_each_set_was_chosen_with(tmp_path: Path) -> None:
    held = Heldout(share=0.05, min_documents=2)
    choose(tmp_path / "corpus", [TEXTS], held)
    recorded = read_json(tmp_path / "corpus" / "heldout.json")["sets"]
    english = sets(tmp_path / "corpus")["corpus/en/web"]
    assert recorded["corpus/en/web"] == {
        "languages": ["en"],
        "source": "web",
        "documents": len(english),
        "bytes": sum(len(text) for text in english),
        "share": 0.05,
        "min_documents": 2,
        "max_documents": 5_000,
    }


def test_a_set_that_was_chosen_before_there_was_a_maximum_stands(tmp_path: Path) -> None:
    choose(tmp_path, [TEXTS], Heldout(share=0.1))
    before = sets(tmp_path)
    assert len(before[f"{tmp_path.name}/en/web"]) > 9
    told = read_json(tmp_path / "heldout.json")
    for entry in told["sets"].values():
        del entry["max_documents"]
    write_sealed(tmp_path / "heldout.json", {"hash": told["hash"], "sets": told["sets"]})
    choose(tmp_path, [TEXTS], Heldout(share=0.1, max_documents=9))
    assert sets(tmp_path) == before
    assert read_json(tmp_path / "heldout.json")["sets"] == told["sets"]


def test_new_text_changes_no_set_that_stands(tmp_path: Path) -> None:
    held = Heldout(share=0.05)
    choose(tmp_path, [TEXTS[:200]], held)
    before = sets(tmp_path)
    choose(tmp_path, [TEXTS[:200], TEXTS[200:]], held)
    after = sets(tmp_path)
    assert sorted(after) == [f"{tmp_path.name}/en/web", f"{tmp_path.name}/zh/web"]
    assert after | before == after


def test_a_corpus_that_was_moved_knows_its_sets(tmp_path: Path) -> None:
    """It chooses only of what it had no set of, and under the name that it has now."""
    held = Heldout(share=0.05)
    choose(tmp_path / "corpus", [TEXTS[:300]], held)
    before = sets(tmp_path / "corpus")
    (tmp_path / "corpus").rename(tmp_path / "other")
    choose(tmp_path / "other", [TEXTS[100:]], held)
    after = sets(tmp_path / "other")
    assert sorted(after) == ["corpus/en/web", "other/zh/web"]
    assert after | before == after
    recorded = frozen.recorded(tmp_path / "other")
    assert sorted(frozen.chosen(recorded)) == ["corpus/en/web", "other/zh/web"]
    keep = Heldout(share=0.05, keep=(str(tmp_path / "other" / "heldout.json"),))
    choose(tmp_path / "new", [TEXTS[:300]], keep)  # sets that others chose are not its own
    assert sorted(sets(tmp_path / "new")) == ["corpus/en/web", "new/en/web", "other/zh/web"]


@pytest.mark.parametrize(
    ("key", "changed"),
    [
        ("share", Heldout(share=0.1)),
        ("min_documents", Heldout(min_documents=9)),
        ("max_documents", Heldout(max_documents=9)),
    ],
)
def test_other_settings_than_a_set_was_chosen_with_are_refused(
    tmp_path: Path, key: str, changed: Heldout
) -> None:
    choose(tmp_path, [TEXTS], Heldout())
    before = sets(tmp_path)
    value, stood = getattr(changed, key), getattr(Heldout(), key)
    message = (
        rf"key `heldout.{key}`: {value} asked for, but set {tmp_path.name}/en/web stands and was "
        rf"chosen with {stood}; put {stood} back, or delete .*heldout.json and .*/heldout to "
        "choose anew: every earlier comparison is then void"
    )
    with pytest.raises(ConfigError, match=message):
        choose(tmp_path, [TEXTS], changed)
    assert sets(tmp_path) == before
    for path in frozen.paths(tmp_path):
        path.unlink()
    choose(tmp_path, [TEXTS], changed)
    assert read_json(tmp_path / "heldout.json")["sets"][f"{tmp_path.name}/en/web"][key] == value


def test_what_a_killed_attempt_left_does_not_stand(tmp_path: Path) -> None:
    """Killed between documents.parquet and heldout.json: the next call chooses as if first."""
    held = Heldout(share=0.05)
    choose(tmp_path, [TEXTS], held)
    whole = (tmp_path / "heldout.json").read_bytes()
    (tmp_path / "heldout.json").unlink()
    choose(tmp_path, [TEXTS], held)
    assert (tmp_path / "heldout.json").read_bytes() == whole


# --- sets of earlier corpora ----------------------------------------------------------------------


def test_kept_sets_stay_held_out(tmp_path: Path) -> None:
    choose(tmp_path / "old", [TEXTS[:200]], Heldout(share=0.05))
    keep = Heldout(share=0.02, keep=(str(tmp_path / "old" / "heldout.json"),))
    choose(tmp_path / "new", [TEXTS[200:300]], keep)
    found, old = sets(tmp_path / "new"), sets(tmp_path / "old")
    assert sorted(found) == ["new/en/web", "old/en/web"]
    assert found["old/en/web"] == old["old/en/web"]
    recorded = read_json(tmp_path / "new" / "heldout.json")["sets"]
    assert ["share" in recorded[name] for name in sorted(found)] == [True, False]
    choose(tmp_path / "new", [TEXTS[200:300]], Heldout(share=0.02))  # no longer named: still kept
    assert sets(tmp_path / "new") == found


def test_a_kept_set_without_its_text_is_named(tmp_path: Path) -> None:
    choose(tmp_path / "old", [TEXTS], Heldout(share=0.05))
    keep = Heldout(keep=(str(tmp_path / "old" / "heldout.json"),))
    folders = given.kept_folders(keep)
    documents = tmp_path / "old" / "heldout" / "documents.parquet"
    documents.unlink()
    with pytest.raises(ConfigError, match=rf"old/heldout.json names sets .* no {documents}; put"):
        frozen.check(tmp_path / "new", keep, folders)
    (tmp_path / "old" / "heldout.json").unlink()
    with pytest.raises(ConfigError, match=r"key `heldout.keep`: no such file .*old/heldout.json"):
        frozen.check(tmp_path / "new", keep, folders)


def test_a_kept_set_of_the_same_name_and_other_text_is_refused(tmp_path: Path) -> None:
    choose(tmp_path / "a" / "corpus", [TEXTS[:200]], Heldout(share=0.05))
    choose(tmp_path / "b" / "corpus", [TEXTS[100:300]], Heldout(share=0.05))
    keep = Heldout(share=0.05, keep=(str(tmp_path / "a" / "corpus" / "heldout.json"),))
    with pytest.raises(ConfigError, match="set corpus/en/web stands .* `heldout.keep` has .*name"):
        choose(tmp_path / "b" / "corpus", [TEXTS[100:300]], keep)


# --- independent text -----------------------------------------------------------------------------


def independent(path: Path, lines: list[str]) -> Heldout:
    path.write_text("".join(f"{line}\n" for line in lines), "utf-8")
    return Heldout(share=0, independent=(str(path),))


def test_rejected_records_are_counted_and_named(tmp_path: Path) -> None:
    lines = [json.dumps({"text": text}) for text in ("one of them", " \n", "第二篇文章")]
    held = independent(tmp_path / "own.jsonl", [*lines, "{broken", '{"text": null}'])
    choose(tmp_path / "corpus", [TEXTS], held)
    texts, rejected = given.independent(held, tmp_path)
    assert sets(tmp_path / "corpus") == {
        "independent/own": sorted(["one of them", "第二篇文章"], key=content)
    }
    assert len(texts) == 2
    assert [(row["file"], row["reason"]) for row in rejected] == [
        ("own.jsonl", "empty"),
        ("own.jsonl", "bad_json"),
        ("own.jsonl", "null_text"),
    ]
    offsets = [row["offset"] for row in rejected]
    assert offsets[0] == len(lines[0]) + 1
    recorded = read_json(tmp_path / "corpus" / "heldout.json")["sets"]["independent/own"]
    assert "share" not in recorded


def test_a_file_without_any_text_is_refused(tmp_path: Path) -> None:
    held = independent(tmp_path / "own.jsonl", ['{"content": "another field"}'])
    message = "1 record in .*own.jsonl, none of them text; reasons: missing_text; .* field 'text'"
    with pytest.raises(ConfigError, match=message):
        choose(tmp_path / "corpus", [TEXTS], held)


def test_a_changed_file_is_refused_and_its_version_differs(tmp_path: Path) -> None:
    held = independent(tmp_path / "own.jsonl", ['{"text": "as it was"}'])
    choose(tmp_path / "corpus", [TEXTS], held)
    before = given.independent_version(held)
    assert [entry[:2] for entry in before] == [(str(tmp_path / "own.jsonl"), 22)]
    choose(tmp_path / "corpus", [TEXTS], held)  # as it was: nothing to say
    independent(tmp_path / "own.jsonl", ['{"text": "as it is!"}'])
    assert given.independent_version(held) != before
    with pytest.raises(ConfigError, match="set independent/own stands with 1 texts, and .*name"):
        choose(tmp_path / "corpus", [TEXTS], held)


# --- what may not be trained on -------------------------------------------------------------------

HELD = " ".join(f"word{n}" for n in range(40))


def match_part(root: Path, held: Heldout, near: Near) -> dict[str, Any]:
    heldout_index.write(root, held, near)
    stages = {"matches": heldout_match.match(root, held, near, 0)}
    return sweep(root, 0, stages, near.ngram)["matches"].counters


def match(
    root: Path, texts: list[str], held: Heldout, near: Near, out: str = HELD
) -> dict[str, Any]:
    write_json(root / "heldout.json", {"hash": root.name, "sets": {}})
    row = {"set": "s", "content_hash": content(out), "language": "en", "source": "w", "text": out}
    write_rows(root / "heldout/documents.parquet", schema.HELDOUT, [row])
    corpus_parts.write(root, [texts])
    return match_part(root, held, near)


def test_a_near_copy_matches_whatever_the_containment(tmp_path: Path) -> None:
    """The last word changed: Jaccard 35/38, containment 35/36; the middle one: 31/41, 31/36."""
    near_copy = HELD.replace("word39", "other and more")
    texts = [HELD, near_copy, near_copy, "something else", HELD.replace("word20", "other")]
    held = Heldout(containment=1)
    counters = match(tmp_path / "a", texts, held, Near(threshold=0.8))
    assert counters == {"documents": 5, "excluded": 3, "matches": 2}
    table = pq.read_table(heldout_match.outputs(tmp_path / "a", 0)[0]).to_pylist()
    assert {row["content_hash"] for row in table} == {content(HELD), content(near_copy)}
    strict = match(tmp_path / "b", texts, held, Near(threshold=1))
    assert strict == {"documents": 5, "excluded": 1, "matches": 1}
    contained = match(tmp_path / "c", texts, Heldout(containment=0.8), Near(threshold=1))
    assert contained == {"documents": 5, "excluded": 4, "matches": 3}


def test_a_near_copy_of_a_kept_text_is_found_in_the_new_corpus(tmp_path: Path) -> None:
    choose(tmp_path / "old", [[HELD]], Heldout(share=0.5))  # its hash lies below
    assert sets(tmp_path / "old") == {"old/en/web": [HELD]}
    keep = Heldout(share=0, keep=(str(tmp_path / "old" / "heldout.json"),))
    texts = [f"{HELD} and more", f"{HELD.upper()}!", "something else"]
    choose(tmp_path / "new", [texts], keep)
    counters = match_part(tmp_path / "new", keep, Near())
    assert counters == {"documents": 3, "excluded": 2, "matches": 2}


def test_documents_are_counted_not_contents(tmp_path: Path) -> None:
    counters = match(tmp_path, [HELD] * 30 + ["else"] * 5, Heldout(), Near())
    assert counters == {"documents": 35, "excluded": 30, "matches": 1}


def test_other_sets_are_seen_by_the_same_process(tmp_path: Path) -> None:
    for out in (HELD, "short"):  # too short for a shingle: only its hash tells
        match(tmp_path, [HELD, "short"], Heldout(), Near(), out)
        table = pq.read_table(heldout_match.outputs(tmp_path, 0)[0]).to_pylist()
        assert [row["content_hash"] for row in table] == [content(out)]


def test_a_part_without_documents(tmp_path: Path) -> None:
    assert match(tmp_path, [], Heldout(), Near()) == {"documents": 0, "excluded": 0, "matches": 0}
    assert heldout.nominate(tmp_path, Heldout(), LANGUAGES, 0) == {
        "documents": 0,
        "contents": 0,
        "nominees": 0,
    }
    assert choose(tmp_path / "none", [], Heldout())["sets"] == 0
