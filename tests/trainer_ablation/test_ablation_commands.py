from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from pipeline.config import ConfigError
from pipeline.files import read_json
from trainer.ablation.commands import ablate


def test_a_dry_run_shows_the_study_and_writes_nothing(
    folder: Path, capsys: pytest.CaptureFixture[str]
):
    assert ablate([str(folder / "study.yaml"), "--dry-run"]) == 0
    shown = capsys.readouterr()
    assert shown.err == "planning arm 1 of 2: as-it-comes\n"
    assert shown.out == (
        "Does removing <near> duplicates help | at equal training tokens?\n"
        "\n"
        "arm as-it-comes (baseline): 3 runs x 1,000,000 tokens, 0 finished\n"
        "    source  documents  unique tokens  epochs\n"
        "    pages          40          8,820  114.05\n"
        "arm deduplicated: 3 runs x 1,000,000 tokens, 0 finished\n"
        "    mixture.unique: near\n"
        "    source  documents  unique tokens  epochs\n"
        "    pages          39          8,618  116.60\n"
        "\n"
        "to run: 6 of 6 runs, 6,000,000 training tokens, 2 at a time\n"
        "decides: bits per byte, mean over zh 50%, en 50%; lower is better\n"
        f"output: {folder / 'study'}\n"
    )
    assert not (folder / "study").exists()


def test_it_prints_the_verdict_and_where_the_report_is(
    trained: Path, capsys: pytest.CaptureFixture[str]
):
    assert ablate([str(trained / "study.yaml")], ("must-not-run",)) == 0
    found = read_json(trained / "study" / "verdict.json")
    assert capsys.readouterr().out == (
        f"{found['sentences']['deduplicated']}\n"
        f"report: {trained / 'study' / 'report.md'}\n"
        f"report: {trained / 'study' / 'report.html'}\n"
    )


def test_weights_are_shares_and_it_says_so(folder: Path, capsys: pytest.CaptureFixture[str]):
    content = (folder / "study.yaml").read_text().replace("zh: 0.5", "zh: 3").replace("0.5", "1")
    (folder / "study.yaml").write_text(content)
    assert ablate([str(folder / "study.yaml"), "--dry-run"]) == 0
    shown = capsys.readouterr()
    note = "weights of `primary.languages` sum to 4; shares: zh 75%, en 25%\n"
    assert shown.err.startswith(note)
    assert "decides: bits per byte, mean over zh 75%, en 25%; lower is better\n" in shown.out


def test_held_out_sets_that_disagree(
    folder: Path,
    fake_train: tuple[str, ...],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
):
    monkeypatch.setenv("FAKE_SPLIT", "1")
    assert ablate([str(folder / "study.yaml")], fake_train) == 0
    assert capsys.readouterr().out.startswith(
        "Undecided, because it depends on the held-out set: “deduplicated” is better than "
        "“as-it-comes” on web/en/pages and worse on web/zh/页面 & <b> ("
    )


def test_a_report_of_an_unfinished_study_is_refused(folder: Path):
    with pytest.raises(
        ConfigError, match=r"not finished under these settings, data and code: 6 of 6 runs"
    ):
        ablate([str(folder / "study.yaml"), "--report-only"])


def test_a_study_loads_neither_torch_nor_beam():
    code = (
        "import sys, trainer.ablation.commands; "
        "print([name for name in ('torch', 'apache_beam') if name in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout == "[]\n"


def test_finished_runs_of_other_settings_are_not_replaced_unasked(
    trained: Path, fake_train: tuple[str, ...], capsys: pytest.CaptureFixture[str]
):
    path, run = str(trained / "study.yaml"), trained / "run.yaml"
    before = (trained / "study" / "verdict.json").read_bytes()
    run.write_text(run.read_text().replace("tokens: 1M", "tokens: 900k"))
    note = f"6 finished runs in {trained / 'study'} of other settings, data or code than now"
    with pytest.raises(ConfigError, match=f"{note}; give another `output` .* or --fresh"):
        ablate([path], ("must-not-run",))
    assert (trained / "study" / "verdict.json").read_bytes() == before
    ablate([path, "--dry-run"])
    assert note in capsys.readouterr().out
    assert ablate([path, "--fresh"], fake_train) == 0
    assert (trained / "study" / "verdict.json").read_bytes() != before
    assert ablate([path], ("must-not-run",)) == 0
