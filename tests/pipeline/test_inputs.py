"""What globs match, without the corpus itself."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import fsspec
import pytest

from pipeline.config import ConfigError
from pipeline.inputs import input_files
from pipeline.settings import CorpusSettings, Input, Tokenizer


def settings(files: str, output: str) -> CorpusSettings:
    inputs = (Input(source="s", files=files),)
    return CorpusSettings(inputs=inputs, output=output, tokenizer=Tokenizer(file="deepseek"))


@pytest.mark.parametrize("linked", [False, True])
def test_files_of_the_corpus_itself_are_no_input(
    tmp_path: Path, linked: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "disk").mkdir()
    (tmp_path / "runs").symlink_to("disk") if linked else (tmp_path / "runs").mkdir()
    for name in ("a.jsonl", "runs/web.jsonl", "runs/web-2/b.jsonl"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text('{"text": "an input"}\n')
    own = ["runs/web/stats/log.jsonl", "runs/web-limit-10/stats/log.jsonl"]
    for name in own:
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_text("{}\n")
    found = input_files(settings(f"{tmp_path}/**/*.jsonl", f"{tmp_path}/runs/web"))
    wanted = {"a.jsonl", "runs/web.jsonl", "runs/web-2/b.jsonl"}
    seen = wanted | ({name.replace("runs", "disk") for name in wanted} - {"a.jsonl"})
    assert {file for _, file in found} == (seen if linked else wanted)
    told = capsys.readouterr().err
    num = 4 if linked else 2
    first = f"{tmp_path}/{'disk' if linked else 'runs'}/web-limit-10/stats/log.jsonl"
    assert told == f"source 's': {num} files in the corpus itself left out, as {first}\n"
    output = f"{tmp_path}/runs/web"
    with pytest.raises(ConfigError, match=f"the folder of the corpus itself, {output}; move them"):
        input_files(settings(f"{output}/**/*.jsonl", output))


def test_files_of_the_corpus_itself_on_a_store(capsys: pytest.CaptureFixture[str]) -> None:
    store = fsspec.filesystem("memory")
    for name in ("a.jsonl", "runs/web/stats/log.jsonl", "runs/web-limit-5/b.jsonl"):
        store.pipe_file(f"/own-output/{name}", b'{"text": "an input"}\n')
    corpus = settings("memory://own-output/**/*.jsonl", "memory://own-output/runs/web")
    assert input_files(corpus) == {("s", "a.jsonl"): "memory:///own-output/a.jsonl"}
    assert "source 's': 2 files in the corpus itself left out" in capsys.readouterr().err


@pytest.mark.parametrize("pattern", ["**/*.jsonl", "*/*.jsonl", "**", "closed/*.jsonl"])
def test_a_folder_that_cannot_be_listed_is_named(
    pattern: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # glob passes over it: half of the input would be missing without a word
    for name in ("open", "closed", "lost+found"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.jsonl").write_text('{"text": "a"}\n')
    real = os.scandir

    def scandir(folder: str) -> object:  # as for a user who may not; root may list everything
        if str(folder).rstrip("/").endswith(("closed", "lost+found")):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), folder)
        return real(folder)

    monkeypatch.setattr(os, "scandir", scandir)
    with pytest.raises(ConfigError) as error:
        input_files(settings(f"{tmp_path}/{pattern}", f"{tmp_path}/out"))
    assert str(error.value) == (
        f"source 's': the folder {tmp_path}/closed/ cannot be read (Permission denied), and "
        f"{tmp_path}/{pattern} may have files there; let it be read (chmod, chown), or name those "
        "that can be"
    )
    assert input_files(settings(f"{tmp_path}/open/*.jsonl", f"{tmp_path}/out")) == {
        ("s", "a.jsonl"): f"{tmp_path}/open/a.jsonl"
    }
    assert input_files(settings(f"{tmp_path}/closed/a.jsonl", f"{tmp_path}/out")) == {
        ("s", "a.jsonl"): f"{tmp_path}/closed/a.jsonl"
    }
