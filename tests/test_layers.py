"""The one arrow between folders: kernels | filters | dedup <- pipeline <- mixtures <- trainer.

Read from the syntax trees, so an import inside a function counts too. What a process loads is
asked of a fresh interpreter.
"""

from __future__ import annotations

import ast
import functools
import json
import os
import subprocess
import sys
from collections.abc import Collection
from pathlib import Path

import pytest

from pipeline import heap
from trainer.cli import VERBS

ROOT = Path(__file__).resolve().parents[1]

# Folder -> the folders that its files may import from, besides itself.
MAY_IMPORT: dict[str, set[str]] = {
    "kernels": set(),
    "filters": {"kernels"},
    "dedup": {"kernels"},
    "pipeline": {"kernels", "filters", "dedup"},
    "mixtures": {"kernels", "filters", "dedup", "pipeline"},
    "trainer": {"kernels", "filters", "dedup", "pipeline", "mixtures"},
}
# Framework -> the files that may import it, by the beginning of their path.
FRAMEWORKS: dict[str, tuple[str, ...]] = {
    "apache_beam": ("pipeline/build.py", "pipeline/launch.py", "pipeline/workers.py"),
    "torch": ("trainer/",),
}
FILES = sorted(path for folder in MAY_IMPORT for path in (ROOT / folder).rglob("*.py"))
MODULES = {  # dotted name -> file
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
    for path in FILES
}


@functools.cache
def imports_in(path: Path) -> list[ast.Import | ast.ImportFrom]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]


def imported(path: Path) -> set[str]:
    """Top-level names that a file imports, anywhere in it."""
    names: set[str] = set()
    for node in imports_in(path):
        if isinstance(node, ast.Import):
            names |= {alias.name.split(".")[0] for alias in node.names}
        else:
            assert node.level == 0, f"{path}:{node.lineno}: relative import; name the package"
            assert node.module is not None
            names.add(node.module.split(".")[0])
    return names


def test_each_folder_imports_only_from_those_to_its_left() -> None:
    wrong = []
    for path in FILES:
        folder = path.relative_to(ROOT).parts[0]
        above = imported(path) & MAY_IMPORT.keys() - MAY_IMPORT[folder] - {folder}
        wrong += [f"{path.relative_to(ROOT)} imports {name}" for name in sorted(above)]
    assert wrong == []


def test_frameworks_stay_at_the_edge() -> None:
    wrong = []
    for path in FILES:
        place = path.relative_to(ROOT).as_posix()
        for framework, edge in FRAMEWORKS.items():
            if framework in imported(path) and not place.startswith(edge):
                wrong.append(f"{place} imports {framework}")
    assert wrong == []


def test_the_check_sees_imports_inside_functions(tmp_path: Path) -> None:
    path = tmp_path / "late.py"
    path.write_text("def f():\n    import torch.nn\n    from apache_beam.io import fileio\n")
    assert imported(path) == {"torch", "apache_beam"}


IMPORT_EACH = """
import importlib, json, os, sys
modules, names, before = map(json.loads, sys.argv[1:])
for name in before:
    importlib.import_module(name)
assert not [name for name in names if name in sys.modules], names
for module in modules:
    child = os.fork()
    if child == 0:
        importlib.import_module(module)
        print(json.dumps([module, [name for name in names if name in sys.modules]]))
        sys.exit()
    if os.waitpid(child, 0)[1]:
        sys.exit(f"import {module} failed")
"""
# What most verbs load, and no framework is in it: loaded once, not once for each verb.
SHARED = ("mixtures.commands", "pipeline.prepare")


def loaded(module: str, names: Collection[str] = FRAMEWORKS) -> list[str]:
    """Which of these a fresh interpreter holds after `import module`."""
    return loaded_by_each([module], names)[module]


def loaded_by_each(
    modules: Collection[str], names: Collection[str], before: Collection[str] = ()
) -> dict[str, list[str]]:
    """Which of these names are there after `import module`, for each: in a fork of its own, of an
    interpreter that has loaded `before`, and none of these names by it."""
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            IMPORT_EACH,
            *(json.dumps(sorted(x)) for x in (modules, names, before)),
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | heap.ENVIRONMENT,  # no thread of a library holds a lock while it forks
    )
    assert done.returncode == 0, done.stderr
    return dict(json.loads(line) for line in done.stdout.splitlines())


def test_importing_a_verb_loads_no_framework_of_the_other_side() -> None:
    modules = {"trainer.cli"} | {target.split(":")[0] for target, _ in VERBS.values()}
    found = loaded_by_each(modules, FRAMEWORKS, SHARED)
    assert found.keys() == modules
    for module, frameworks in found.items():
        allowed = {"torch"} if module.startswith("trainer.") else set()
        if module == "trainer.cli":
            allowed = set()  # `assay --help` answers at once
        assert set(frameworks) <= allowed, module


@pytest.mark.parametrize("module", ["pipeline.sql", "mixtures.questions", "pipeline.sql_commands"])
def test_a_question_loads_no_compiler(module: str) -> None:
    """numba takes half a second, and a slip of the pen is to be told at once."""
    assert loaded(module, ["numba", "torch", "apache_beam"]) == []


def test_a_statement_is_parsed_before_anything_is_opened() -> None:
    assert loaded("pipeline.sql_commands", ["filters.presets", "pipeline.sql"]) == []


def test_no_module_leads_to_both_frameworks() -> None:
    """Follow imports of our own modules, those inside functions too: none reaches both."""
    edges = {name: own_imports(path) for name, path in MODULES.items()}
    frameworks = {name: imported(path) & FRAMEWORKS.keys() for name, path in MODULES.items()}
    for start in edges:
        if start == "trainer.cli":
            continue  # names the verbs as text; each process calls one
        seen: set[str] = set()
        todo = [start]
        while todo:
            name = todo.pop()
            if name not in seen:
                seen.add(name)
                todo += edges[name]
        reached = set().union(*(frameworks[name] for name in seen))
        assert len(reached) < len(FRAMEWORKS), f"{start} leads to torch and to Beam"


def own_imports(path: Path) -> set[str]:
    """Modules of the project that a file imports; `from package import module` counts as both."""
    found: set[str] = set()
    for node in imports_in(path):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif node.module is not None:
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return found & MODULES.keys()
