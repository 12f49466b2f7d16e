"""The command line: verbs, mistakes, exit codes, and what it loads."""

from __future__ import annotations

import ast
import contextlib
import importlib.metadata
import os
import signal
import subprocess
import sys
import types
from pathlib import Path

import pytest

from trainer import cli

ROOT = Path(__file__).resolve().parents[2]


def _verb(monkeypatch: pytest.MonkeyPatch, function: object) -> None:
    """Let `mix` call `function`, as if our own package held it."""
    module = types.ModuleType("trainer.fake_verb")
    module.run = function
    monkeypatch.setitem(sys.modules, "trainer.fake_verb", module)
    monkeypatch.setitem(cli.VERBS, "mix", ("trainer.fake_verb:run", "fake"))


def _raiser(code: str, module: str) -> object:
    namespace: dict[str, object] = {"__name__": module}
    exec(f"def run(argv):\n    {code}", namespace)
    return namespace["run"]


def test_help_names_every_verb(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([]) == 0
    shown = capsys.readouterr().out
    assert [verb for verb in cli.VERBS if f"  {verb} " not in shown] == []
    assert cli.main(["--help"]) == 0
    assert capsys.readouterr().out == shown


def test_every_verb_has_its_function() -> None:
    """Read, not imported: no process may load both torch and Beam."""
    missing = []
    for verb, (target, _) in cli.VERBS.items():
        module, function = target.split(":")
        source = Path(*module.split(".")).with_suffix(".py")
        body = ast.parse((ROOT / source).read_text("utf-8")).body
        if function not in {node.name for node in body if isinstance(node, ast.FunctionDef)}:
            missing.append(f"{verb}: {target}")
    assert missing == []


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["--version"]) == 0
    assert capsys.readouterr().out == f"assay {importlib.metadata.version('assay')}\n"


def test_unknown_verb_names_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["trian"]) == 2
    assert capsys.readouterr().err == "assay: unknown verb 'trian'; did you mean `train`?\n"
    assert cli.main(["xyz"]) == 2
    assert capsys.readouterr().err.startswith("assay: unknown verb 'xyz'; verbs: prepare, sql,")


def test_a_verb_gets_its_arguments_and_gives_the_exit_code(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[list[str]] = []
    _verb(monkeypatch, lambda argv: seen.append(argv) or 7)
    assert cli.main(["mix", "a.yaml", "--json"]) == 7
    assert seen == [["a.yaml", "--json"]]


def test_user_errors_are_one_message(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from pipeline.config import ConfigError

    monkeypatch.setattr("builtins.ConfigError", ConfigError, raising=False)
    _verb(
        monkeypatch, _raiser("raise ConfigError('run.yaml: key `seed` is missing')", "mixtures.x")
    )
    assert cli.main(["mix"]) == 2
    assert capsys.readouterr().err == "assay mix: run.yaml: key `seed` is missing\n"
    _verb(monkeypatch, _raiser("open('/no/such/file')", "pipeline.x"))
    assert cli.main(["mix"]) == 2
    assert capsys.readouterr().err == (
        "assay mix: [Errno 2] No such file or directory: '/no/such/file'\n"
    )


def test_a_fault_whose_traceback_is_in_a_log_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class StepError(RuntimeError):
        log = Path("stats/log.jsonl")

    def run(_: object) -> int:
        raise StepError("step 'Ingest' failed")

    _verb(monkeypatch, run)
    assert cli.main(["mix"]) == 1
    assert capsys.readouterr().err == "assay mix: step 'Ingest' failed\n"


def test_faults_keep_their_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    _verb(monkeypatch, _raiser("raise ValueError('shapes do not match')", "numpy.x"))
    with pytest.raises(ValueError, match="shapes do not match"):
        cli.main(["mix"])


def test_interrupt_is_130(monkeypatch: pytest.MonkeyPatch) -> None:
    _verb(monkeypatch, _raiser("raise KeyboardInterrupt", "pipeline.x"))
    assert cli.main(["mix"]) == 130


@pytest.mark.parametrize(
    ("sent", "said", "code"),
    [
        (signal.SIGTERM, "stopped by SIGTERM", 143),
        (signal.SIGINT, "interrupted", 130),
    ],
)
def test_a_signal_that_meets_duckdb_at_work_is_a_signal(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    sent: signal.Signals,
    said: str,
    code: int,
) -> None:
    def run(_: object) -> int:
        with contextlib.suppress(KeyboardInterrupt):  # as DuckDB does
            os.kill(os.getpid(), sent)
        raise RuntimeError("Query interrupted")

    _verb(monkeypatch, run)
    assert cli.main(["mix"]) == code
    assert capsys.readouterr().err == (
        f"\nassay: {said}; the same command goes on where it stopped\n"
    )


def test_help_is_quick_and_loads_neither_torch_nor_beam() -> None:
    code = (
        "import sys, time; t = time.process_time(); from trainer import cli; cli.main(['--help']);"
        "print([m for m in ('torch', 'apache_beam', 'pydantic', 'pyarrow') if m in sys.modules]);"
        "print(time.process_time() - t)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    *_, loaded, seconds = done.stdout.splitlines()
    assert loaded == "[]"
    assert float(seconds) < 0.2
