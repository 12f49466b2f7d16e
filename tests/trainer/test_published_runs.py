"""Runs over a published plan, on machines that have no corpus: the same losses, and what can be
told of them afterwards."""

from __future__ import annotations

import json
import shutil
import signal
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import clean_process
import hub
import pytest
import small_corpus
import tiny_run_jobs as jobs
import yaml
from gs_server import gs_bucket
from s3_server import s3_bucket
from tiny_run import losses, train
from web_server import Web, web_server

from mixtures import packed
from mixtures.commands import mix
from mixtures.loader import Loader
from mixtures.pieces import positions_of
from mixtures.plan import Plan
from mixtures.published import open_plan
from pipeline.config import ConfigError
from pipeline.files import read_json, write_sealed
from trainer import cli, commands, seen, skipped
from trainer.ablation.study import load_study
from trainer.record import RunResult

TOKENS = 64 * 4 * 12  # 12 steps of 4 windows
MIXTURE = {
    "corpora": {"tales": "corpus"},
    "sequence_length": 64,
    "shuffle": 1,  # a part at a time
    "sources": {
        "en": {"from": "tales", "where": "lang = 'en'", "max_epochs": 9},
        "zh": {"from": "tales", "where": "lang = 'zh'", "max_epochs": 9},
    },
}
RUN: dict[str, Any] = {
    "model": {"width": 16, "depth": 1, "heads": 2, "kv_heads": 1, "ffn": 16},
    "tokens": TOKENS,
    "batch_tokens": 256,
    "checkpoint": {"every": 512},
    "threads": 1,
}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A corpus, its mixture in parts of 400 tokens, and plan/, to which it was published."""
    folder = tmp_path_factory.mktemp("published")
    small_corpus.prepare(folder, 40)
    (folder / "mixture.yaml").write_text(yaml.safe_dump(MIXTURE))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(packed, "PART_TOKENS", 400)
        mix([str(folder / "mixture.yaml"), "--tokens", str(TOKENS), "--publish", f"{folder}/plan"])
    return folder


@pytest.fixture(scope="module")
def whole(made: Path) -> RunResult:
    """The run where the corpus is."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(packed, "PART_TOKENS", 400)
        return train(write(made, "local", mixture="mixture.yaml"))


@pytest.fixture(scope="module")
def web(made: Path) -> Iterator[Web]:
    with web_server() as server:
        serve(server, made / "plan")
        yield server


def serve(web: Web, folder: Path) -> None:
    for path in folder.rglob("*"):
        if path.is_file():
            web.files[f"/plan/{path.relative_to(folder)}"] = path.read_bytes()


def write(folder: Path, name: str, **settings: Any) -> Path:
    path = folder / f"{name}.yaml"
    path.write_text(yaml.safe_dump(RUN | settings))
    return path


def part_bytes(folder: Path) -> int:
    return max(path.stat().st_size for path in (folder / "plan").rglob("part-*.arrow"))


def test_what_is_published_names_its_held_out_text_and_no_place_of_this_machine(
    made: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names = {str(path.relative_to(made / "plan")) for path in (made / "plan").rglob("*.*")}
    assert {"plan.json", "tokenizer.json", "heldout.parquet"} <= names
    assert str(made) not in (made / "plan" / "plan.json").read_text()
    assert all(len(source.windows) > 4 for source in open_plan(made / "plan").sources)


@pytest.mark.parametrize("key", ["folder", "tokenizer_file", "selection"])
def test_a_plan_that_names_files_elsewhere_is_refused(made: Path, tmp_path: Path, key: str) -> None:
    found = read_json(made / "plan" / "plan.json")
    del found["seal"]
    of = found if key == "tokenizer_file" else found["sources"][0]
    of[key] = "../../elsewhere"
    if key == "selection":
        of["folder"] = "packed/../../elsewhere"
    write_sealed(tmp_path / "plan.json", found)
    with pytest.raises(ConfigError, match="plan.json names '../../elsewhere'"):
        open_plan(tmp_path)


def test_a_machine_without_the_corpus_trains_and_is_scored_as_one_with_it(
    made: Path, whole: RunResult, web: Web, tmp_path: Path
) -> None:
    """By the command line; the cache holds what is read now and next, not all."""
    texts = (made / "plan" / "heldout.parquet").stat().st_size
    size = max(4 * part_bytes(made), texts)
    cache = {"folder": "shards", "max_bytes": size}
    path = write(tmp_path, "far", mixture=f"{web.url}/plan", cache=cache)
    assert cli.main(["train", str(path)]) == 0
    folder = tmp_path / "runs" / "far"
    assert losses(folder) == losses(whole.folder)
    assert len(whole.bits_per_byte) == 2
    record = read_json(folder / "run.json")
    assert record["totals"]["bits_per_byte"] == whole.bits_per_byte
    assert record["fingerprints"] == read_json(whole.folder / "run.json")["fingerprints"]
    kept = [file.stat().st_size for file in (tmp_path / "shards").iterdir()]
    assert len(kept) > 1
    assert sum(kept) <= size
    assert size < texts + sum(f.stat().st_size for f in (made / "plan").rglob("part-*"))
    assert train(path).skipped, "a finished run is not run again"
    shutil.rmtree(tmp_path / "shards")
    (folder / "evaluations.parquet").unlink()
    assert cli.main(["evaluate", str(folder)]) == 0  # which fetches the text again


@pytest.mark.parametrize("bucket_of", [s3_bucket, gs_bucket])
def test_a_plan_is_published_to_a_bucket_and_trained_on_from_there(
    made: Path,
    whole: RunResult,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    bucket_of: Callable[[], AbstractContextManager[str]],
) -> None:
    monkeypatch.setattr(packed, "PART_TOKENS", 400)
    monkeypatch.setenv("ASSAY_CACHE", str(tmp_path / "cache"))
    with bucket_of() as bucket:
        plan = f"{bucket}/plan"
        mix([str(made / "mixture.yaml"), "--tokens", str(TOKENS), "--publish", plan])
        size = max(4 * part_bytes(made), (made / "plan" / "heldout.parquet").stat().st_size)
        cache = {"folder": "shards", "max_bytes": size}
        assert cli.main(["train", str(write(tmp_path, "far", mixture=plan, cache=cache))]) == 0
        assert losses(tmp_path / "runs" / "far") == losses(whole.folder)
        asked = ("--batch-tokens", 256, "--step", 3, "--json")
        assert windows(capsys, plan, *asked) == windows(capsys, made / "plan", *asked)


def test_a_plan_on_the_hub_is_trained_on(
    made: Path, whole: RunResult, web: Web, tmp_path: Path
) -> None:
    """From a server that answers as huggingface.co does."""
    pytest.importorskip("huggingface_hub", reason="huggingface_hub is not installed")
    plan = hub.serve(web, "me/plan", made / "plan")
    path = write(tmp_path, "far", mixture=plan, cache={"folder": "shards"})
    job = (jobs.train_from_hub, (web.url, tmp_path / "home", path))
    assert clean_process.run(tmp_path, job) == [0]
    assert losses(tmp_path / "runs" / "far") == losses(whole.folder)


def test_a_published_folder_is_read_in_its_place(
    made: Path, whole: RunResult, tmp_path: Path
) -> None:
    shutil.copytree(made / "plan", tmp_path / "copied")
    short = write(tmp_path, "a", mixture="copied", tokens=TOKENS // 2, schedule={"decay": 0})
    result = train(short)
    assert result.tokens == TOKENS // 2
    assert (
        read_json(result.folder / "plan.json")["fingerprint"]
        == open_plan(made / "plan").fingerprint
    )
    with pytest.raises(ConfigError, match=rf"key `tokens`: 9,999 asked .* for {TOKENS:,}; ask for"):
        train(write(tmp_path, "b", mixture="copied/plan.json", tokens=9_999))


@pytest.mark.parametrize("after", ["the same", "another size", "two ranks"])
def test_killed_and_resumed_with_any_cache_and_ranks_the_losses_are_equal(
    made: Path, whole: RunResult, web: Web, tmp_path: Path, after: str
) -> None:
    size = part_bytes(made)
    settings = {"mixture": f"{web.url}/plan", "cache": {"folder": "shards", "max_bytes": 9 * size}}
    path = write(tmp_path, "run", **settings)
    [code] = clean_process.run(tmp_path, (jobs.train_killed_after, (7, None, path)))
    assert code == -signal.SIGKILL
    if after == "another size":
        settings["cache"] = {"folder": "other", "max_bytes": 3 * size}
    path = write(tmp_path, "run", **settings)
    if after == "two ranks":
        ranks = [(jobs.train_rank, (rank, 2, None, path)) for rank in range(2)]
        assert clean_process.run(tmp_path, *ranks) == [0, 0]
    else:
        train(path)
    found, wanted = losses(tmp_path / "runs" / "run"), losses(whole.folder)
    if after != "two ranks":
        assert found == wanted
    else:  # sums over ranks round otherwise
        for ours, theirs in zip(found, wanted, strict=True):
            assert ours == pytest.approx(theirs, abs=1e-5)


def test_a_run_moves_from_the_corpus_to_what_was_published(
    made: Path, whole: RunResult, web: Web, tmp_path: Path
) -> None:
    path = write(tmp_path, "run", mixture=f"{made}/plan", output="run")
    [code] = clean_process.run(tmp_path, (jobs.train_killed_after, (7, None, path)))
    assert code == -signal.SIGKILL
    cache = {"folder": "shards"}
    train(write(tmp_path, "run", mixture=f"{web.url}/plan", output="run", cache=cache))
    assert losses(tmp_path / "run") == losses(whole.folder)


# --- what is told of it ---------------------------------------------------------------------------


def windows(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    capsys.readouterr()
    assert seen.main([*map(str, arguments)]) == 0
    return capsys.readouterr().out


def test_which_step_saw_what_is_told_without_the_corpus(
    made: Path, whole: RunResult, web: Web, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cache = {"folder": "shards"}
    far = train(write(tmp_path, "far", mixture=f"{web.url}/plan", cache=cache)).folder
    for asked in (("--step", 3), ("--step", 3, "--text", 20)):
        here, there = (windows(capsys, run, *asked, "--json") for run in (whole.folder, far))
        known = ("corpus_source", "source_id", "url")
        assert any(row["source_id"] for row in json.loads(here))
        assert json.loads(there) == [row | dict.fromkeys(known) for row in json.loads(here)]
    name = json.loads(here)[0]["id"]
    rows = json.loads(windows(capsys, far, "--document", name, "--json"))
    assert 3 in {row["step"] for row in rows}
    for plan in (made / "plan", made / "plan" / "plan.json", f"{web.url}/plan"):
        published = windows(capsys, plan, "--batch-tokens", 256, "--step", 3, "--json")
        assert [row["id"] for row in json.loads(published)] == [r["id"] for r in json.loads(here)]


def first_part(plan: Plan) -> tuple[str, int]:
    places = Loader(plan).places(0, 1)
    source = plan.sources[int(places.source[0])]
    return f"packed/{source.selection}/part-{int(places.part[0]):05d}.arrow", int(places.source[0])


def test_a_skipped_window_was_trained_on_by_no_step(
    made: Path, whole: RunResult, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A published part is damaged: the run goes on without it, and `windows` does not say that its
    documents were seen, neither while it is damaged nor when it has been mended."""
    name, _ = first_part(open_plan(made / "plan"))
    with web_server() as web:
        serve(web, made / "plan")
        right = web.files[f"/plan/{name}"]
        broken = bytearray(right)
        broken[len(broken) // 2] ^= 1
        web.files[f"/plan/{name}"] = bytes(broken)
        cache = {"folder": "shards"}
        settings = {"mixture": f"{web.url}/plan", "cache": cache, "on_damage": "skip"}
        run = train(write(tmp_path, "run", **settings)).folder
        gone = {one.position for one in skipped.read(run)}
        assert read_json(run / "run.json")["skipped"] == len(gone) > 4
        step = min(gone) // 4 + 1
        mine = [at for at in sorted(gone) if at // 4 + 1 == step]
        text = windows(capsys, run, "--step", step)
        assert text.count("is blank, no loss of it counts: http") == len(mine)
        rows = json.loads(windows(capsys, run, "--step", step, "--json"))
        assert gone.isdisjoint(row["position"] for row in rows)
        seen_whole = json.loads(windows(capsys, whole.folder, "--step", step, "--json"))
        lost = next(row["id"] for row in seen_whole if row["position"] in gone)
        assert "windows more were blank, of parts that cannot be read: they may hold it" in windows(
            capsys, run, "--document", lost
        )
        web.files[f"/plan/{name}"] = right  # it is published again
        rows = json.loads(windows(capsys, run, "--step", step, "--json"))
        told = [(row["position"], row["id"], row["skipped"]) for row in rows]
        assert told == [(r["position"], r["id"], r["position"] in gone) for r in seen_whole]
        text = windows(capsys, run, "--document", lost)
        assert f"{lost} (skipped)" in text
        assert "of these were blank, and no loss of them counted" in text


# --- damage ---------------------------------------------------------------------------------------


def test_another_tokenizer_or_held_out_text_is_told(
    made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(made / "plan", tmp_path / "plan")
    file = tmp_path / "plan" / "tokenizer.json"
    whole = file.read_bytes()
    token = next(t for t in json.loads(whole)["model"]["vocab"] if t.isascii() and len(t) > 1)
    at = whole.index(f'"{token}"'.encode()) + 1
    for data, message in (
        (
            whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :],
            "tokenizer.json is another tokenizer, or damaged",
        ),
        (whole[: len(whole) // 2], "tokenizer.json is no tokenizer.json"),
    ):
        file.write_bytes(data)
        with pytest.raises(ConfigError, match=rf"{message} .*; the windows hold ids of tokenizer"):
            train(write(tmp_path, "a", mixture="plan"))
    file.unlink()
    with pytest.raises(ConfigError, match=r"tokenizer.json is missing; .* --publish URL`"):
        train(write(tmp_path, "a", mixture="plan"))
    file.write_bytes(whole)
    texts = tmp_path / "plan" / "heldout.parquet"
    data = bytearray(texts.read_bytes())
    data[len(data) // 2] ^= 1
    texts.write_bytes(data)
    for mixture, cache in (("plan", "c"), (f"file://{tmp_path}/plan", "c")):
        run = write(tmp_path, "a", mixture=mixture, cache={"folder": cache})
        with pytest.raises(ConfigError, match="heldout.parquet is missing, or not as it was"):
            train(run)
    with pytest.raises(ConfigError, match=r"nothing/plan.json is missing, or not as it was"):
        commands.train([str(write(tmp_path, "a", mixture=f"file://{tmp_path}/nothing"))])


def test_a_study_wants_a_mixture(made: Path, tmp_path: Path) -> None:
    study = {
        "question": "which?",
        "base": {"mixture": f"{made}/plan", "run": "run.yaml"},
        "arms": {"a": {}, "b": {"mixture": {"unique": "none"}}},
        "seeds": [0, 1, 2],
        "primary": {"metric": "bits_per_byte", "languages": {"en": 1.0}},
    }
    (tmp_path / "study.yaml").write_text(yaml.safe_dump(study))
    with pytest.raises(ConfigError, match="key `base.mixture`: .*plan is a published plan; arms"):
        load_study(tmp_path / "study.yaml")


# --- forgetting -----------------------------------------------------------------------------------


def test_a_receipt_tells_of_published_copies(
    made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = Path(shutil.copytree(made, tmp_path / "made", symlinks=True))
    shutil.rmtree(folder / "runs", ignore_errors=True)
    shutil.rmtree(folder / "plan")
    monkeypatch.setattr(packed, "PART_TOKENS", 400)
    mixture, place = str(folder / "mixture.yaml"), f"file://{tmp_path}/store"
    mix([mixture, "--tokens", str(TOKENS), "--publish", place])
    cache = {"folder": "shards"}
    run = train(write(folder, "far", mixture=place, cache=cache)).folder
    plan = open_plan(place)
    names = list(dict.fromkeys(n for _, of in Loader(plan).documents_at(0, 48) for n in of))
    skipped.add(run, [skipped.Skipped(0, plan.sources[0].name, 0, 0, "damaged")])

    def receipt(number: int) -> tuple[dict[str, Any], str]:
        (folder / "ids.txt").write_text(names[number - 1])
        call = ["forget", str(folder / "corpus"), "--ids", str(folder / "ids.txt"), "--reason", "x"]
        assert cli.main([*call, "--runs", str(folder), "--delete"]) == 0
        path = folder / "corpus" / "forgotten" / f"{number:08d}.receipt.json"
        return read_json(path), path.with_suffix(".md").read_text()

    found, text = receipt(1)
    (told,) = found["runs"]
    where = positions_of(Loader(plan), *told["documents"])
    assert told["blank"] == 1
    made_of = {at // 4 + 1 for at in where if at}  # position 0 was skipped
    steps = [step for first, last in told["steps"] for step in range(first, last + 1)]
    assert steps == sorted(made_of)
    assert "1 window with them, damaged and skipped, not among these" in text
    (copy,) = found["published"]
    assert (copy["masked"], copy["why"], copy["runs"]) == (False, "", [str(run)])
    assert names[0] in copy["documents"]
    assert f"{copy['place']} (read by {run}): still holds" in text
    # published again, the copy is masked too, and a run goes on with it
    before = losses(run)
    mix([mixture, "--tokens", str(TOKENS), "--publish", place])
    assert open_plan(place).fingerprint == plan.fingerprint
    _, text = receipt(2)
    assert any("still holds" in line for line in text.splitlines())  # of the second document
    record = (run / "run.json").read_text()
    (run / "run.json").write_text(record.replace('"finished"', '"running"'))
    shutil.rmtree(run / "checkpoints" / "step-00000012")
    train(folder / "far.yaml")
    assert [row[0] for row in losses(run)] == [row[0] for row in before]
    shutil.rmtree(tmp_path / "store")
    _, text = receipt(3)
    assert "cannot be told: " in text
