"""Tasks written for lm-evaluation-harness (read in 0.4.13): what of its YAML can be asked here.

    task: capitals
    dataset_path: json                     # or parquet: local files, relative to the YAML
    dataset_kwargs: {data_files: {test: capitals.jsonl}}
    test_split: test
    output_type: multiple_choice           # or loglikelihood
    doc_to_text: "Q: {{question}}\\nA:"
    doc_to_choice: ["Paris", "Rome"]       # a list, a column, or a template that gives a list
    doc_to_target: answer                  # number or text of the right one

Templates run in Jinja's sandbox. Python (`!function`), data sets by a hub's name, chat templates
and random few-shot examples are refused by name; `fewshot_config: {sampler: first_n}` is read.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import orjson
import pyarrow.parquet as pq
import yaml
from jinja2 import StrictUndefined, TemplateError
from jinja2.sandbox import SandboxedEnvironment

from pipeline.config import ConfigError
from trainer.tasks import Question, Task, checked_task, question_of

Document = Mapping[str, Any]

# Keys that change nothing of what is asked or how a choice is scored here.
UNUSED = frozenset(
    "tag group metric_list metadata dataset_name training_split validation_split test_split repeats"
    " should_decontaminate doc_to_decontamination_query task_alias generation_kwargs".split()
)
KNOWN = frozenset(
    "task dataset_path dataset_kwargs output_type doc_to_text doc_to_choice doc_to_target"
    " description target_delimiter fewshot_delimiter fewshot_split num_fewshot"
    " fewshot_config".split()
)


def load_harness_task(path: Path) -> Task:
    """Read one task.

    Raises:
        ConfigError: no such file, or what cannot be asked here; names file and key.
    """
    raw = _read(path)
    where = str(path)
    for key in raw.keys() - KNOWN - UNUSED:
        if raw[key] not in (None, False, "", []):
            raise ConfigError(
                f"{where}: key `{key}` is not understood here; write the questions out as .jsonl "
                "(docs/evaluation.md), or take the key out if it changes nothing"
            )
    kind = raw.get("output_type", "generate_until")
    if kind not in ("multiple_choice", "loglikelihood"):
        raise ConfigError(
            f"{where}: `output_type: {kind}`; what is scored here: multiple_choice, loglikelihood"
        )
    split = raw.get("test_split") or raw.get("validation_split")
    if split is None:
        raise ConfigError(f"{where}: neither `test_split` nor `validation_split` is given")
    documents = _documents(raw, split, path)
    examples = _examples(raw, path)
    delimiter = str(raw.get("target_delimiter", " "))
    questions = []
    for number, document in enumerate(documents):
        here = f"{where}: document {number}"
        before = str(_filled(raw.get("description") or "", document, here, "description"))
        questions.append(_question(raw, document, kind, before + examples, delimiter, here, number))
    return checked_task(str(raw.get("task") or path.stem), questions, where)


def _question(
    raw: Mapping[str, Any], document: Document, kind: str, before: str, delimiter: str,
    where: str, number: int,
) -> Question:  # fmt: skip
    text = _filled(raw.get("doc_to_text", ""), document, where, "doc_to_text")
    said = raw.get("doc_to_target", "")
    target = said if isinstance(said, int) else _filled(said, document, where, "doc_to_target")
    if kind == "loglikelihood":
        return question_of(number, before + str(text), [str(target)], 0, where)
    choices = _choices(raw, document, where)
    if isinstance(target, str):
        if said not in document and target.isdecimal():  # a column "2" is the text of a choice
            target = int(target)
        elif target in choices:
            target = choices.index(target)
    if isinstance(target, list) or isinstance(text, int):
        raise ConfigError(
            f"{where}: several right answers, or contexts, of one question are not scored here"
        )
    return question_of(number, before + str(text), choices, target, where, delimiter)


def _choices(raw: Mapping[str, Any], document: Document, where: str) -> list[str]:
    given = raw.get("doc_to_choice")
    if isinstance(given, dict):
        return [str(choice) for choice in given.values()]
    if isinstance(given, list):
        return [str(choice) for choice in given]
    found = _filled(given or "", document, where, "doc_to_choice")
    if isinstance(found, str):
        try:
            found = ast.literal_eval(found)
        except (SyntaxError, ValueError):
            found = None
    if not isinstance(found, list):
        raise ConfigError(f"{where}: `doc_to_choice: {given!r}` gives no list of choices")
    return [str(choice) for choice in found]


def _filled(template: Any, document: Document, where: str, key: str) -> Any:
    """A column of the document, or a template filled with it."""
    if not isinstance(template, str):
        raise ConfigError(f"{where}: `{key}: {template!r}`; expected a column or a template")
    if template in document:
        return document[template]
    try:
        return ENVIRONMENT.from_string(template).render(**document)
    except (TemplateError, TypeError, ValueError, ArithmeticError, LookupError) as error:
        columns = ", ".join(document)
        raise ConfigError(f"{where}: `{key}`: {error}; columns: {columns}") from None


ENVIRONMENT = SandboxedEnvironment(undefined=StrictUndefined, keep_trailing_newline=True)


# --- few-shot examples ----------------------------------------------------------------------------


def _examples(raw: Mapping[str, Any], path: Path) -> str:
    """The worked examples before each question: the first `num_fewshot` of their split."""
    wanted = int(raw.get("num_fewshot") or 0)
    if not wanted:
        return ""
    settings = raw.get("fewshot_config") or {}
    if settings.get("sampler") != "first_n":
        raise ConfigError(
            f"{path}: `num_fewshot: {wanted}` with random examples; they would differ from one "
            "version to the next: set `fewshot_config: {sampler: first_n}`"
        )
    split = settings.get("split") or raw.get("fewshot_split")
    samples: Sequence[Document] = settings.get("samples") or ()
    documents = samples if split is None else _documents(raw, split, path)
    if len(documents) < wanted:
        raise ConfigError(
            f"{path}: `num_fewshot: {wanted}`, but {len(documents)} examples are given; name "
            "them by `fewshot_split` or `fewshot_config: {samples: [...]}`"
        )
    text = ""
    for number, document in enumerate(documents[:wanted]):
        where = f"{path}: example {number}"
        asked = _question(
            raw, document, str(raw["output_type"]), "", str(raw.get("target_delimiter", " ")),
            where, number,
        )  # fmt: skip
        answer = asked.delimiter + asked.choices[asked.answer]
        text += asked.context + answer + str(raw.get("fewshot_delimiter", "\n\n"))
    return text


# --- files ----------------------------------------------------------------------------------------


class _Loader(yaml.SafeLoader):
    """Knows `!function` well enough to refuse it."""


_Loader.add_constructor("!function", lambda loader, node: f"!function {node.value}")


def _read(path: Path) -> dict[str, Any]:
    try:
        raw = yaml.load(path.read_text("utf-8"), _Loader)
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: not readable as YAML: {error}") from None
    if not isinstance(raw, dict):
        raise ConfigError(f"{path}: expected `key: value` lines of a task")
    for key, value in raw.items():
        if isinstance(value, str) and value.startswith("!function"):
            raise ConfigError(
                f"{path}: `{key}: {value}` is Python, which is not run here; write the questions "
                "out as .jsonl (docs/evaluation.md)"
            )
    return raw


def _lines(path: Path) -> list[dict[str, Any]]:
    return [orjson.loads(line) for line in path.read_bytes().splitlines() if line.strip()]


READERS: dict[str, Callable[[Path], list[dict[str, Any]]]] = {
    "json": _lines,
    "parquet": lambda path: pq.read_table(path).to_pylist(),
}


def _documents(raw: Mapping[str, Any], split: str, path: Path) -> list[dict[str, Any]]:
    kind = raw.get("dataset_path")
    if kind not in READERS:
        raise ConfigError(
            f"{path}: `dataset_path: {kind}`; a data set of a hub is not fetched here: download "
            "its files, then `dataset_path: json` (or parquet) and `dataset_kwargs: {data_files: "
            "{test: file.jsonl}}`"
        )
    files = (raw.get("dataset_kwargs") or {}).get("data_files") or {}
    files = {split: files} if isinstance(files, str | list) else files
    names = files.get(split)
    if names is None:
        raise ConfigError(f"{path}: `dataset_kwargs.data_files` names no file of `{split}`")
    found: list[dict[str, Any]] = []
    for name in [names] if isinstance(names, str) else names:
        file = path.parent / name
        try:
            found += READERS[kind](file)
        except FileNotFoundError:
            raise ConfigError(f"{path}: {file}: no such file") from None
        except (ValueError, OSError) as error:
            raise ConfigError(f"{path}: {file}: not readable as {kind}: {error}") from None
    return found
