"""Cloze tasks: which of several continuations does a model expect? Reading them; no torch.

A task is a JSONL file, a question a line, or a task of lm-evaluation-harness (harness_tasks.py):

    {"context": "The capital of France is", "choices": [" Paris", " Rome"], "answer": 0}
    {"context": "法国的首都是", "choices": ["巴黎", "罗马"], "answer": 0, "id": "fr-1"}

Context and choice are joined as they stand: the space before an English word is of the choice, or
is `"delimiter": " "`, which is scored but counts as none of its characters. A question of one
choice has no right or wrong; only the bits of its answer count.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import xxhash

from pipeline.config import ConfigError

KEYS = ("id", "context", "choices", "answer", "delimiter")
FORM = '{"context": "The capital of France is", "choices": [" Paris", " Rome"], "answer": 0}'


@dataclass(frozen=True)
class Question:
    id: str
    context: str
    choices: tuple[str, ...]
    answer: int  # which of `choices`
    delimiter: str = ""  # between context and choice; scored, but not counted in lengths


@dataclass(frozen=True)
class Task:
    name: str
    questions: tuple[Question, ...]

    @property
    def fingerprint(self) -> str:
        """Hash of all that is asked: scores of another wording are not comparable."""
        asked = [[q.id, q.context, q.choices, q.answer, q.delimiter] for q in self.questions]
        return xxhash.xxh3_64_hexdigest(json.dumps(asked, ensure_ascii=False).encode())


def load_tasks(paths: Sequence[str | Path]) -> list[Task]:
    """The tasks of JSONL and YAML files, each name once.

    Raises:
        ConfigError: no such file, a line or key that cannot be used, two tasks of one name.
    """
    tasks = [load_task(Path(path)) for path in paths]
    names = [task.name for task in tasks]
    if twice := {name for name in names if names.count(name) > 1}:
        raise ConfigError(f"two tasks are called {sorted(twice)[0]!r}; rename one of the files")
    return tasks


def load_task(path: Path) -> Task:
    """One task; the file's name is its own."""
    if path.suffix not in (".jsonl", ".yaml", ".yml"):
        raise ConfigError(f"{path}: a task is a .jsonl file, or a .yaml of lm-evaluation-harness")
    if not path.exists():
        raise ConfigError(
            f"{path}: no such file; `evaluate.tasks` are relative to run.yaml, --task to where you "
            "are"
        )
    if path.suffix != ".jsonl":
        from trainer.harness_tasks import load_harness_task

        return load_harness_task(path)
    lines = path.read_text("utf-8").splitlines()
    questions = [
        _question(line, number, f"{path}: line {number}")
        for number, line in enumerate(lines, 1)
        if line.strip()
    ]
    return checked_task(path.stem, questions, str(path))


def checked_task(name: str, questions: Sequence[Question], where: str) -> Task:
    """A task that has questions, each id once."""
    if not questions:
        raise ConfigError(f"{where}: no questions; expected lines such as {FORM}")
    seen: set[str] = set()
    for question in questions:
        if question.id in seen:
            raise ConfigError(f"{where}: two questions have the id {question.id!r}")
        seen.add(question.id)
    return Task(name, tuple(questions))


def _question(line: str, number: int, where: str) -> Question:
    try:
        raw = json.loads(line)
    except json.JSONDecodeError as error:
        raise ConfigError(f"{where}: not JSON ({error.msg}); expected {FORM}") from None
    if not isinstance(raw, dict):
        raise ConfigError(f"{where}: expected {FORM}")
    if unknown := sorted(raw.keys() - set(KEYS)):
        raise ConfigError(f"{where}: unknown key {unknown[0]!r}; known: {', '.join(KEYS)}")
    given = (raw.get("context"), raw.get("choices"), raw.get("answer", 0))
    return question_of(raw.get("id", number), *given, where, raw.get("delimiter", ""))


def question_of(
    name: Any, context: Any, choices: Any, answer: Any, where: str, delimiter: Any = ""
) -> Question:
    """A question whose parts can be used.

    Raises:
        ConfigError: they cannot; names `where`, the key and what is expected.
    """
    if not isinstance(context, str):
        raise ConfigError(f"{where}: `context: {context!r}`; expected text, which may be empty")
    if not isinstance(choices, list) or not choices:
        raise ConfigError(f"{where}: `choices: {choices!r}`; expected a list of texts")
    for choice in choices:
        if not isinstance(choice, str) or not choice:
            raise ConfigError(f"{where}: a choice is {choice!r}; expected text, not empty")
    if isinstance(answer, bool) or not isinstance(answer, int) or not 0 <= answer < len(choices):
        raise ConfigError(
            f"{where}: `answer: {answer!r}`; expected the number of a choice, "
            f"0 to {len(choices) - 1}"
        )
    if not isinstance(delimiter, str):
        raise ConfigError(f"{where}: `delimiter: {delimiter!r}`; expected text")
    return Question(str(name), context, tuple(choices), answer, delimiter)
