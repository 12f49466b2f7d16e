"""What holds for all edits and levels together: a copy of each text stays, none of held-out text is
trained on, and corpora of nothing and of one document give what they should."""

from __future__ import annotations

import random
import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import several_corpora
import small_corpus
import yaml
from tokenizers import Tokenizer

from mixtures.indexing import index
from mixtures.plan import make_plan
from pipeline.config import ConfigError
from pipeline.corpus import manifest
from pipeline.embed import embed
from pipeline.seeing.asking import rows

EDITS = ["substrings", "repeated_lines", "repeated_paragraphs"]
EVERYTHING: dict[str, Any] = {
    "near": {"containment": 0.9},
    "substrings": {"min_bytes": 80},
    "across": {"repeated_lines": {"documents": 2}, "repeated_paragraphs": {"documents": 2}},
    "edits": EDITS,
}
LEVELS = ["none", "url", "exact", "folded", "near", "contained", "semantic"]


def counts(texts: list[str]) -> list[list[float]]:
    return [[text.count(sign) + 1.0 for sign in "aeiou的了在"] for text in texts]


def of_level(unique: str) -> dict[str, Any]:
    return {"unique": unique} | ({"semantic": {"threshold": 0.999}} if unique == "semantic" else {})


def embedded(root: Path) -> None:
    embed(root, lambda texts: np.array(counts(texts)), "counts", "semantic", 32)


# --- several edits --------------------------------------------------------------------------------


def pages(seed: int) -> list[str]:
    """Of pieces with words of their own, in lines and paragraphs that others cut otherwise."""
    pick = random.Random(seed)
    pieces = [
        " ".join(f"w{seed}x{n}x{at}" for at in range(pick.choice([6, 12, 30]))) for n in range(24)
    ]
    found = []
    for n in range(30):
        some = pick.sample(pieces, pick.randrange(2, 7))
        text = some[0]
        for piece in some[1:]:
            text += pick.choice([" ", "\n", "\n\n", "\n\n"]) + piece
        found.append(f"{text}\n\nown{seed}x{n} page")
    return found


@pytest.fixture(scope="module")
def pieced(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pieced")
    texts = [text for seed in range(4) for text in pages(seed)]
    given = [{"id": str(n), "text": text} for n, text in enumerate(texts)]
    several_corpora.prepare(folder, "web", given, shard_bytes=20_000, **EVERYTHING)
    return folder


def words(folder: Path, edits: list[str], where: str) -> set[str]:
    """Of the windows that are packed; the last word of a page may be cut off."""
    source = {"from": "web", "where": where, "max_epochs": 999}
    spec = {"corpora": {"web": "web"}, "sequence_length": 2, "sources": {"all": source}}
    (folder / "m.yaml").write_text(yaml.safe_dump(spec | {"edits": edits, "unique": "exact"}))
    plan = make_plan(folder / "m.yaml", 2_000)
    name = manifest(folder / "web")["tokenizer"]["hash"]
    decoder = Tokenizer.from_file(str(folder / "web/tokens" / name / "tokenizer.json"))
    said = []
    for part in sorted(Path(plan.sources[0].folder).glob("part-*.arrow")):
        windows = pa.ipc.open_file(str(part)).read_all()["ids"].to_pylist()
        ids = [i for window in windows for i in window[:-1]] + windows[-1][-1:]
        said.append(decoder.decode(ids))
    return set(re.findall(r"w\d+x\d+x\d+", " ".join(said)))


@pytest.mark.parametrize("edits", [EDITS, EDITS[::-1], EDITS[:2]])
@pytest.mark.parametrize("where", ["true", "source_id::int % 3 > 0"])
def test_of_all_that_several_edits_take_out_a_copy_stays(
    pieced: Path, edits: list[str], where: str
) -> None:
    assert words(pieced, edits, where) == words(pieced, [], where)
    taken = rows(pieced / "web", "select name, count(*) n from edits group by all order by all")
    assert [row["name"] for row in taken] == sorted(EDITS)
    assert min(row["n"] for row in taken) > 9


# --- held-out text --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def held(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Corpus `own` holds texts out; `other` has them too: as they are, in other letters, with a
    sentence more, a piece of each, and each inside a longer one."""
    folder = tmp_path_factory.mktemp("held")
    make = (small_corpus.english, small_corpus.chinese)
    texts = [make[n % 2](4 * n + 3) for n in range(40)]
    given = [{"id": f"own-{n}", "text": text} for n, text in enumerate(texts)]
    given += [{"id": f"own-{n}", "text": small_corpus.english(9_000 + n)} for n in range(40, 60)]
    settings = EVERYTHING | {"heldout": {"share": 0.1, "min_documents": 2}}
    several_corpora.prepare(folder, "own", given, **settings)
    copies = []
    for n, text in enumerate(texts):
        around = make[n % 2](4 * n + 1_001)
        of = {
            "exact": text,
            "folded": text.upper().replace(",", " -").replace("，", "、"),
            "near": text + " So it was.",
            "part": text[: len(text) * 2 // 3],
            "inside": f"{around}\n\n{text}\n\n{make[n % 2](4 * n + 2_001)}",
        }
        copies += [{"id": f"{n} {how}", "text": copy} for how, copy in of.items()]
    settings["heldout"] = {"share": 0, "keep": ["own/heldout.json"]}
    several_corpora.prepare(folder, "other", copies, **settings)
    for name in ("own", "other"):
        embedded(folder / name)
    return folder


@pytest.mark.parametrize("unique", LEVELS)
def test_no_level_trains_on_a_copy_of_held_out_text(held: Path, unique: str) -> None:
    out = {
        row["source_id"].removeprefix("own-")
        for row in rows(held / "own", "select source_id from documents where heldout")
    }
    assert len(out) >= 2
    edits = EDITS if unique in ("none", "contained") else []
    selection = several_corpora.choose(held, "own", "other", edits=edits, **of_level(unique))
    names = {
        row["id"]: row["source_id"]
        for name in ("own", "other")
        for row in rows(held / name, "select id, source_id from documents")
    }
    kept = [names[i.tobytes().hex()] for docs in selection.documents.values() for i in docs.id]
    leaked = {name for name in kept if name.removeprefix("own-").split(" ")[0] in out}
    assert leaked == set()
    assert len(kept) > 15


# --- one document ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def few(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A corpus of nothing is none: `prepare` says so."""
    folder = tmp_path_factory.mktemp("few")
    for n, name in enumerate(("one", "other")):
        given = [{"id": "1", "text": small_corpus.english(3 + n), "url": f"https://site.org/{n}"}]
        several_corpora.prepare(folder, name, given, **EVERYTHING)
        embedded(folder / name)
        index(str(folder / name), str(folder / f"{name}-index"))
    return folder


@pytest.mark.parametrize("unique", LEVELS)
def test_one_document_stays_and_of_none_it_is_said(few: Path, unique: str) -> None:
    how = of_level(unique) | {"edits": EDITS}
    (count,) = several_corpora.choose(few, "one", **how).counts
    assert (count.claimed, count.documents, count.changes.removed_bytes) == (1, 1, 0)
    if unique == "none":
        return
    (count,) = several_corpora.choose(few, "one", **how, not_in=["other-index"]).counts
    assert (count.claimed, count.documents) == (1, 1)
    with pytest.raises(ConfigError, match="all copies of others, or of documents in `not_in`"):
        several_corpora.choose(few, "one", **how, not_in=["one-index"])
