"""What lies about, who uses it, and what may go."""

from __future__ import annotations

import os
import shutil
import signal
from pathlib import Path
from typing import Any

import pytest
import small_corpus

from mixtures.plan import make_plan
from pipeline.corpus import locked
from pipeline.files import read_json, write_json
from pipeline.finished import set_aside
from trainer.garbage import gc
from trainer.inventory import ls

MIXTURE = """
corpora: {corpus: corpus}
sequence_length: 64
sources:
  english: {from: corpus, where: "lang = 'en'"}
"""
RUN: dict[str, Any] = {"device": "cuda:0", "processes": 8, "status": "finished"}
RUN |= {"totals": {"tokens": 5_000, "seconds": 900.0}}


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return small_corpus.prepare(tmp_path_factory.mktemp("garbage"), 60)


@pytest.fixture
def folder(prepared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A corpus, a mixture packed for it, and a finished run of another mixture."""
    shutil.copytree(prepared.parent, tmp_path, dirs_exist_ok=True)
    other = tmp_path / "other.yaml"
    other.write_text(MIXTURE.replace("lang = 'en'", "lang = 'zh'"))
    run = tmp_path / "runs/zh"
    write_json(run / "plan.json", make_plan(other, 2_000).to_dict())
    write_json(run / "run.json", RUN)
    other.unlink()
    (tmp_path / "mixture.yaml").write_text(MIXTURE)
    make_plan(tmp_path / "mixture.yaml", 2_000)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def files(root: Path) -> set[str]:
    return {str(p.relative_to(root)) for p in root.rglob("*") if p.is_file() and p.name != ".lock"}


def lines(capsys: pytest.CaptureFixture[str]) -> list[str]:
    return capsys.readouterr().out.splitlines()


def test_ls_names_what_is_there_and_who_uses_it(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "prices.yaml").write_text(
        "{currency: EUR, cpu_core_hour: 1, gpu_hour: 2.5, storage_gb_month: 0.02, source: test}"
    )
    assert ls(["--prices", "prices.yaml"]) == 0
    said = lines(capsys)
    found = {line.split("  ")[0]: line for line in said if line[0] != " "}
    assert list(found) == ["what", "corpus corpus", "run runs/zh", "mixture mixture.yaml"]
    totals = read_json(folder / "corpus/corpus.json")["stages"]["ingest"]["totals"]
    assert f"{totals['documents']} documents, " in found["corpus corpus"]
    assert found["corpus corpus"].endswith("mixture.yaml, runs/zh")
    assert "5,000 tokens, 2.00 GPU hours, 5.00 EUR" in found["run runs/zh"]
    packed = {line.split()[0]: line for line in said if line.startswith("  packed/")}
    selection = read_json(folder / "runs/zh/plan.json")["sources"][0]["selection"]
    assert len(packed) == 2
    assert packed[f"packed/{selection}"].endswith("runs/zh")
    assert next(line for name, line in packed.items() if selection not in name).endswith(
        "nobody here"
    )


def test_what_is_used_is_no_garbage(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = files(folder)
    assert gc([".", "--delete"]) == 0
    assert lines(capsys) == ["0.0 MB of 1 corpus removed; asked: 1 run, 1 mixture"]
    assert files(folder) == before


def test_what_nothing_refers_to_goes_and_nothing_else(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before, root = files(folder), folder / "corpus"
    planted = (
        "tokens/former/part-00000.arrow",
        "stats/tokens/former/part-00000.json",
        "signals/dropped/part-00000.parquet",
        "edits/dropped/part-00000.parquet",
        "edited/0123/part-00000.4567.arrow",
        "linked/0123/corpus.json",
        "documents/part-00077.parquet",
        "documents/.part-00003.parquet.12.tmp",
        "cut/0123/part-00000",
        "packed/.0123.attempt/part-00000.arrow",
    )
    for name in planted:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(b"x" * 1_000)
    write_json(root / "stats/tokens/former/part-00000.json", {"outputs": {}})
    (folder / "mixture.yaml").write_text(MIXTURE.replace("'en'", "'en' and num_chars > 9"))
    [english] = [
        path
        for path in (root / "packed").glob("[!.]*")
        if path.name != read_json(folder / "runs/zh/plan.json")["sources"][0]["selection"]
    ]
    whole = files(folder)
    assert gc([]) == 0
    shown = lines(capsys)
    assert files(folder) == whole
    assert shown[-1].endswith(
        "MB of 1 corpus could go; --delete removes it; asked: 1 run, 1 mixture"
    )
    assert gc(["--delete"]) == 0
    assert lines(capsys)[:-1] == shown[:-1]
    # num_chars > 9 holds for all: the same selection by another predicate stays
    assert files(folder) == before
    assert english.exists()
    shutil.rmtree(folder / "runs")
    (folder / "mixture.yaml").unlink()
    assert gc(["--delete"]) == 0
    assert list((root / "packed").glob("[!.]*")) == []
    assert files(folder) == {name for name in before if "packed/" not in name} - {
        *("mixture.yaml", "runs/zh/plan.json", "runs/zh/run.json")
    }


def test_windows_whose_mixtures_lie_elsewhere_are_told(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert gc(["corpus"]) == 0
    said = capsys.readouterr().err
    assert "has packed selections, and no run or mixture lies in the folders" in said
    assert "name those in which they lie too" in said
    assert gc(["."]) == 0
    assert capsys.readouterr().err == ""


def test_a_corpus_in_use_is_left_alone(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    orphan = folder / "corpus/documents/part-00077.parquet"
    orphan.write_bytes(b"")
    with locked(folder / "corpus"):
        assert gc(["--delete"]) == 0
    assert "left alone: " in capsys.readouterr().err
    assert orphan.exists()


def test_a_mixture_that_cannot_be_used_keeps_what_is_packed(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.rmtree(folder / "runs")
    (folder / "mixture.yaml").write_text(MIXTURE.replace("lang =", "no_such_column ="))
    before = files(folder)
    assert gc(["--delete"]) == 0
    assert "packed selections of" in capsys.readouterr().err
    assert files(folder) == before


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="no such folder"):
        gc([str(tmp_path / "nowhere")])


def test_a_killed_delete_leaves_nothing_that_looks_whole(folder: Path) -> None:
    """Killed at every file that it deletes: what has its name has all its files, and the last call
    removes what is left."""
    root = folder / "corpus"
    shutil.rmtree(folder / "runs")
    (folder / "mixture.yaml").unlink()
    former = root / "tokens/former"
    former.mkdir()
    for n in range(3):
        (former / f"part-{n:05d}.arrow").write_bytes(b"x")
    whole = {path: set(os.listdir(path)) for path in (former, *(root / "packed").glob("[!.]*"))}
    wanted = {name for name in files(folder) if "packed/" not in name and "/former/" not in name}
    kills = 0
    while kills < 50:
        child = os.fork()
        if child == 0:
            _die_at(1)
            gc(["--delete"])
            os._exit(0)
        _, status = os.waitpid(child, 0)
        for path, names in whole.items():
            assert not path.exists() or set(os.listdir(path)) == names
        if status == 0:
            break
        kills += 1
    assert kills > 3
    assert files(folder) == wanted
    assert not list(root.rglob(".*.tmp"))


def _die_at(moment: int) -> None:
    """This process kills itself when it has deleted `moment` files."""
    real, left = os.unlink, moment

    def unlink(*path: Any, **more: Any) -> None:
        nonlocal left
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        left -= 1
        real(*path, **more)

    os.unlink = unlink


def test_ls_beside_a_run_that_renames_files(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was listed a moment ago may be gone when its size is asked."""
    real = os.lstat

    def lstat(path: Any, **more: Any) -> os.stat_result:
        if str(path).endswith("documents/part-00000.parquet"):
            raise FileNotFoundError(path)
        return real(path, **more)

    monkeypatch.setattr(os, "lstat", lstat)
    assert ls([]) == 0


def test_who_uses_several_selections_of_a_corpus_is_named_once(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    both = folder / "both.yaml"
    both.write_text(MIXTURE + "  chinese: {from: corpus, where: \"lang = 'zh'\"}\n")
    write_json(folder / "runs/both/plan.json", make_plan(both, 2_000).to_dict())
    write_json(folder / "runs/both/run.json", RUN)
    both.unlink()
    assert ls([]) == 0
    [line] = [line for line in lines(capsys) if line.startswith("corpus ")]
    assert line.endswith("  mixture.yaml, runs/both, runs/zh")


def test_a_damaged_manifest_of_packed_windows_is_told(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for manifest in (folder / "corpus/packed").glob("*/manifest.json"):
        manifest.write_bytes(manifest.read_bytes().replace(b"windows", b"winxows", 1))
    assert ls([]) == 0
    told = [line for line in lines(capsys) if line.startswith("  packed/")]
    assert len(told) == 2
    assert all("  damaged: delete the folder, and it will be packed again  " in t for t in told)


def test_ls_tells_a_run_at_work_from_one_that_was_killed(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def told() -> str:
        assert ls([]) == 0
        [line] = [line for line in lines(capsys) if line.startswith("corpus ")]
        return line

    root = folder / "corpus"
    with locked(root):
        set_aside(root)
        assert " tokens; a run is changing it  " in told()
    again = " tokens; a run left it unfinished: run `assay prepare` for it again  "
    assert again in told(), "nobody holds it: killed"
    shutil.rmtree(root / ".finished")
    assert "  unfinished: run `assay prepare` for it again  " in told()
    with locked(root):
        assert "  unfinished  " in told()
