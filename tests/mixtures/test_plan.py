from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from mixture_corpus import Doc, Tiny, write_corpus

from mixtures.commands import mix
from mixtures.loader import Loader
from mixtures.permutation import derive_seed, permute
from mixtures.plan import make_plan, plan_from_dict
from mixtures.questions import sql
from pipeline.config import ConfigError
from pipeline.files import read_json, read_sealed, write_json, write_sealed

SOURCES = {
    "english": {"from": "web", "where": "lang = 'en'", "weight": 3},
    "chinese": {"from": "web", "where": "lang = 'zh'", "weight": 1},
}
DOCS = [
    *(Doc(f"an English sentence with the number {n}") for n in range(30)),
    *(Doc(f"中文句子，第{n}句。", "zh") for n in range(30)),
    Doc("ein Satz", "de", "qa"),
]


def write(
    root: Path, sources: dict[str, Any] = SOURCES, shard_rows: int = 100, **more: Any
) -> Path:
    write_corpus(root / "web", Tiny(DOCS), shard_rows=shard_rows)
    path = root / "mixture.yaml"
    spec = {"corpora": {"web": "web"}, "sequence_length": 16, "seed": 3, "sources": sources}
    path.write_text(yaml.safe_dump(spec | more, sort_keys=False), "utf-8")
    return path


def test_a_plan_says_what_will_be_seen(tmp_path: Path) -> None:
    plan = make_plan(write(tmp_path), 1_600)
    english, chinese = plan.sources
    assert (plan.num_windows, plan.vocab_size, plan.bos_id, plan.eos_id) == (100, 60_000, None, 0)
    num_tokens = [sum(len(d.tokens) for d in DOCS if d.lang == lang) for lang in ("en", "zh")]
    assert [english.num_tokens, chinese.num_tokens] == num_tokens
    assert [english.windows, chinese.windows] == [((n - 1) // 16,) for n in num_tokens]
    assert [english.requested, english.realised, chinese.realised] == [0.75, 0.75, 0.25]
    assert english.epochs == 75 / english.num_windows
    assert (english.claimed, english.copies, english.near, english.documents) == (30, 0, 0, 30)
    assert plan.heldout == 0
    batch = Loader(plan).batch(0, 100)
    assert batch.tokens.shape == (100, 17)
    rows = {bytes(t + 1 for t in doc.text.encode()) + b"\0" for doc in DOCS}
    for ids, documents in zip(batch.tokens, batch.documents, strict=True):
        for number in range(documents[-1] + 1):
            piece = bytes(ids[documents == number].tolist())
            assert any(piece in row for row in rows)


def test_dry_run_gives_the_same_plan_and_writes_nothing(tmp_path: Path) -> None:
    path = write(tmp_path)
    dry = make_plan(path, 1_600, pack=False)
    assert not (tmp_path / "web" / "packed").exists()
    assert make_plan(path, 1_600) == dry


def test_packed_windows_do_not_depend_on_shards(tmp_path: Path) -> None:
    one = make_plan(write(tmp_path / "one", shard_rows=7), 1_600)
    two = make_plan(write(tmp_path / "two", shard_rows=50), 1_600)
    assert one.fingerprint == two.fingerprint
    for a, b in zip(one.sources, two.sources, strict=True):
        assert a.selection == b.selection
        names = sorted(path.name for path in Path(a.folder).iterdir())
        assert names == ["documents.arrow", "manifest.json", "part-00000.arrow"]
        for name in names:
            assert Path(a.folder, name).read_bytes() == Path(b.folder, name).read_bytes()


def test_arms_share_what_they_do_not_change(tmp_path: Path) -> None:
    base = make_plan(write(tmp_path), 1_600)
    same = {"from": "web", "where": "lang = 'en' and num_bytes > 0", "weight": 3}
    arm = make_plan(write(tmp_path, SOURCES | {"english": same}), 1_600)
    assert [source.folder for source in arm.sources] == [source.folder for source in base.sources]


def test_a_plan_goes_through_json(tmp_path: Path) -> None:
    plan = make_plan(write(tmp_path), 1_600)
    again = plan_from_dict(json.loads(json.dumps(plan.to_dict())))
    assert again == plan
    assert again.fingerprint == plan.fingerprint


def test_the_fingerprint_is_over_contents(tmp_path: Path) -> None:
    path = write(tmp_path)
    base = make_plan(path, 1_600).fingerprint
    assert make_plan(path, 3_200).fingerprint == base
    weights = {name: source | {"weight": 1} for name, source in SOURCES.items()}
    assert make_plan(write(tmp_path, weights), 1_600).fingerprint != base
    assert make_plan(write(tmp_path, seed=4), 1_600).fingerprint != base


def test_more_epochs_than_allowed_is_an_error_with_its_remedy(tmp_path: Path) -> None:
    """Megatron-LM #705: a small source must not run past its end."""
    chinese = SOURCES["chinese"] | {"max_epochs": 2}
    english = SOURCES["english"] | {"max_epochs": 1_000}
    path = write(tmp_path, {"english": english, "chinese": chinese})
    with pytest.raises(ConfigError) as error:
        make_plan(path, 16_000)
    message = str(error.value)
    assert message.startswith("source 'chinese' would repeat ")
    assert "lower its `weight`, raise `max_epochs`, add data to it, or train on at most" in message
    fits = int(message.rsplit("at most ", 1)[1].split()[0].replace(",", ""))
    assert make_plan(path, fits).sources[1].epochs <= 2
    with pytest.raises(ConfigError, match="would repeat"):
        make_plan(path, fits + 1)


def test_too_little_text_for_a_window(tmp_path: Path) -> None:
    path = write(tmp_path, {"german": {"from": "web", "where": "lang = 'de'"}})
    with pytest.raises(ConfigError, match="9 tokens do not fill one window of 16"):
        make_plan(path, 1_600)


def test_mix_shows_the_plan(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path)
    assert mix([str(path), "--tokens", "1.6k", "--dry-run"]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert lines[0][:6] == ["source", "documents", "tokens", "bytes", "asked", "gets"]
    assert lines[1][:2] + lines[1][4:8] == ["english", "30", "75.00", "%", "75.00", "%"]
    assert ["web", "qa", "de", "1", "8"] in lines
    assert lines[-3] == ["nothing", "packed", "(--dry-run)"]


def test_mix_as_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert mix([str(write(tmp_path)), "--tokens", "1600", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["selection"]["unclaimed"] == [
        {"corpus": "web", "source": "qa", "language": "de", "documents": 1, "num_bytes": 8}
    ]
    assert [source["name"] for source in found["sources"]] == ["english", "chinese"]
    del found["selection"]
    assert Loader(plan_from_dict(found)).window(0).tokens.shape == (1, 17)


def test_sql_over_the_rows_of_a_mixture(tmp_path: Path) -> None:
    path, output = write(tmp_path), tmp_path / "answer.csv"
    statement = (
        "select mixture_source, count(*) as n, sum(num_tokens) as tokens, min(lang) as lang "
        f"from selected('{path}') group by all order by all"
    )
    corpus = str(tmp_path / "web")
    assert sql([corpus, statement, "--format", "csv", "--output", str(output)]) == 0
    english, chinese = make_plan(path, 1_600, pack=False).sources
    assert output.read_text().split() == [
        "mixture_source,n,tokens,lang",
        f"chinese,30,{chinese.num_tokens},zh",
        f"english,30,{english.num_tokens},en",
    ]


def test_sql_over_a_mixture_of_another_corpus(tmp_path: Path) -> None:
    path = write(tmp_path)
    other = write_corpus(tmp_path / "other", Tiny(DOCS))
    with pytest.raises(ConfigError, match=r"does not read this corpus, but .*web"):
        sql([str(other), f"select count(*) from selected('{path}')"])


REPEATED = {name: source | {"repeats": {1: 2}} for name, source in SOURCES.items()}


@pytest.mark.parametrize(
    ("sources", "now", "before"),
    [
        (SOURCES, "b66eb52403b33a57df87ee54a42df943", "a9e9a8efa80f55b6c626b18d3891e54c"),
        (REPEATED, "2b987d46c2b1d25d84ddb023acd9d8c8", "9967fcb3cc4d7e06ad582dd92917fcd5"),
    ],
)
def test_a_mixture_keeps_its_fingerprint(
    tmp_path: Path, sources: dict[str, Any], now: str, before: str
) -> None:
    """Runs go on with plans made by later versions: what is asked for alike is planned alike, and
    what was packed before the order had a hash of its own keeps fingerprint and order."""
    path = write(tmp_path, sources)
    plan = make_plan(path, 1_600)
    assert plan.fingerprint == make_plan(path, 1_600, pack=False).fingerprint == now
    for source in plan.sources:
        manifest = Path(source.folder) / "manifest.json"
        found = read_sealed(manifest) or {}
        assert found.pop("order") == source.order
        write_sealed(manifest, found)  # as an earlier version wrote it
    older = make_plan(path, 1_600)
    assert (older.fingerprint, {source.order for source in older.sources}) == (before, {""})
    tokens = [Loader(one).batch(0, 100).tokens.tolist() for one in (plan, older)]
    assert tokens[0] != tokens[1]
    places = Loader(older).places(0, 100)  # by the name of the selection
    number = older.sources[0].num_windows
    mine = places.window[(places.source == 0) & (places.epoch == 0)]
    seed = derive_seed(derive_seed(3, older.sources[0].selection, 0), "windows", 0)
    assert mine.tolist() == permute(np.arange(len(mine)), number, seed).tolist()


def test_code_that_changes_no_token_changes_no_order(tmp_path: Path) -> None:
    """Quickstarts on equal bytes gave +0.17 and +0.05: code of the tokenizer had changed."""
    path = write(tmp_path)
    plan = make_plan(path, 1_600)
    corpus = read_json(tmp_path / "web" / "corpus.json")
    corpus["stages"]["tokens"]["fingerprint"] = "made by other code"
    write_json(tmp_path / "web" / "corpus.json", corpus)
    other = make_plan(path, 1_600)
    for source, again in zip(plan.sources, other.sources, strict=True):
        assert source.selection != again.selection  # packed anew, for its ids might be others
        assert source.order == again.order
    tokens = [Loader(one).batch(0, 100).tokens for one in (plan, other)]
    assert np.array_equal(*tokens)
    assert plan.fingerprint != other.fingerprint
    texts = make_plan(write(tmp_path, seed=4), 1_600).sources
    assert {s.order for s in texts}.isdisjoint(s.order for s in plan.sources)
