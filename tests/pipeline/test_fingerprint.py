"""A fingerprint follows what a result depends on, and nothing else."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from pipeline import fingerprint as subject
from pipeline import transforms
from pipeline.readers.formats import packages_of

TRANSFORMS = Path(transforms.__file__).parent


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two modules of a project of its own: `kernel` imports `table`."""
    files = {"a.kernel": "from a.table import LIMIT\n\ndef f(x):\n    return x + LIMIT\n"}
    files["a.table"] = '"""A table."""\nLIMIT = 3\n'
    for name, text in files.items():
        (tmp_path / f"{name.split('.')[1]}.py").write_text(text)
    monkeypatch.setattr(subject, "PACKAGES", ("a",))
    found = {name: tmp_path / f"{name.split('.')[1]}.py" for name in files}
    monkeypatch.setattr(subject, "_path", found.get)
    return tmp_path


def code() -> str:
    subject.code.cache_clear()
    subject._module.cache_clear()
    return subject.code("a.kernel")


def test_code_follows_imports(project: Path) -> None:
    before = code()
    (project / "table.py").write_text('"""A table."""\nLIMIT = 4\n')
    assert code() != before


def test_code_ignores_comments_docstrings_and_layout(project: Path) -> None:
    before = code()
    (project / "table.py").write_text('"""Another docstring."""\n\n# why 3\nLIMIT  =  3\n')
    assert code() == before


def test_what_only_types_need_does_not_count() -> None:
    tree = ast.parse("if TYPE_CHECKING:\n    from pipeline.settings import Near\n")
    assert list(subject._imports(tree)) == []


def test_fingerprint_is_stable_and_sees_order_of_lists() -> None:
    assert subject.fingerprint("x", {"b": 1, "a": 2}) == subject.fingerprint("x", {"a": 2, "b": 1})
    assert subject.fingerprint([1, 2]) != subject.fingerprint([2, 1])
    assert len(subject.fingerprint()) == 32


def test_a_reader_depends_on_its_own_packages_and_an_archive_on_all() -> None:
    assert packages_of("jsonl") == ("orjson",)
    assert packages_of("parquet") == ()
    assert packages_of("warc") == ("fastwarc", "resiliparse")
    everything = {"fastwarc", "ijson", "mwparserfromhell", "orjson", "resiliparse"}
    assert set(packages_of("zip")) - {"pypdfium2"} == everything


def modules(name: str) -> set[str]:
    """A module of this project, and all that it imports from it."""
    waiting, found = [name], set()
    while waiting:
        name = waiting.pop()
        path = subject._path(name)
        if path is not None and name not in found:
            found.add(name)
            waiting += subject._module(path)[1]
    return found


@pytest.mark.parametrize("module", sorted(path.stem for path in TRANSFORMS.glob("[a-z]*.py")))
def test_a_stage_does_not_depend_on_where_a_corpus_is_kept(module: str) -> None:
    """Else a change of uploads would make every table again."""
    found = modules(f"pipeline.transforms.{module}")
    kept = {f"pipeline.{name}" for name in ("corpus", "store", "publish", "lease", "stages")}
    assert found & kept == set()
    if module != "ingest":
        assert "pipeline.readers.formats" not in found


def test_tokens_do_not_depend_on_settings_or_formats_of_tokenizers() -> None:
    """Else a new key of corpus.yaml would make all tokens anew, and refuse every run on them."""
    assert {name for name in modules("pipeline.encoder") if name.startswith("pipeline.")} == {
        "pipeline.encoder",
        "pipeline.literals",
        "pipeline.long_texts",
        "pipeline.tokenizer_engines",
    }
