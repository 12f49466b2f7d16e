"""Evaluation sets that the user gives: files of JSON Lines or Parquet, an item a line or row, as
questions and what goes with them.

An item is the first of QUESTIONS that a record has and all of OTHERS; or the `fields` of its set,
of which the first is the question. Passages (`context`, `passage`) are left out unless they are
named: they come from books and Wikipedia, and a corpus may hold those. A list or mapping is read in
its order, without its keys. What is no text, and one letter alone, only points to a choice.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from pipeline.config import ConfigError, suggestion
from pipeline.ranges import open_file
from pipeline.readers import Piece
from pipeline.readers.files import content_hash, list_files
from pipeline.readers.formats import format_of
from pipeline.readers.jsonl import lines_of
from pipeline.readers.rows import as_text

if TYPE_CHECKING:
    from pipeline.heldout_settings import Decontaminate

# Names of fields, in lower case, as MMLU, ARC, GSM8K, MATH, HellaSwag, PIQA, WinoGrande, TriviaQA,
# HumanEval, MBPP, C-Eval, CMMLU, GAOKAO and AGIEval have them.
QUESTIONS = (
    *("question", "query", "problem", "prompt", "instruction", "goal", "ctx", "sentence"),
    *("question_stem", "question_content", "task", "text", "content", "input"),
)
OTHERS = (
    *("choices", "options", "endings", "a", "b", "c", "d", "e", "f"),
    *("option_a", "option_b", "option_c", "option_d", "option1", "option2", "sol1", "sol2"),
    *("choice1", "choice2", "mc1_targets", "best_answer", "correct_answers"),
    *("answer", "answers", "solution", "canonical_solution", "code", "output", "target"),
)


class Item(NamedTuple):
    set: str
    name: str  # file:line, or file:row from 1
    question: str
    other: str


def versions(settings: Decontaminate) -> list[tuple[str, str, str]]:
    """Set, file and hash of each file: part of the fingerprint.

    Raises:
        ConfigError: nothing matches a glob, or a file is neither JSONL nor Parquet.
    """
    return [(name, file, content_hash(path)) for name, path, file in _files(settings)]


def read_items(settings: Decontaminate) -> Iterator[Item]:
    """All items, set by set.

    Raises:
        ConfigError: a line is no record, or has none of the fields.
    """
    for named in _files(settings):
        yield from _items(settings, *named)


def _files(settings: Decontaminate) -> Iterator[tuple[str, str, str]]:
    for name, given in settings.sets.items():
        key = f"key `decontaminate.sets.{name}`"
        known = set()
        for pattern in given.files:
            try:
                for path, file in list_files(pattern):
                    if path in known:  # matched by a glob before: once
                        continue
                    known.add(path)
                    if format_of(path) not in ROWS:
                        raise ConfigError(
                            f"{key}: {path} is neither JSONL nor Parquet; write an item a line, as "
                            "`assay sql` does with --format jsonl"
                        )
                    yield name, path, file
            except (OSError, ValueError) as error:
                told = str(error) if isinstance(error, ConfigError) else f"{key}: {error}"
                raise ConfigError(told) from None


def _items(settings: Decontaminate, name: str, path: str, file: str) -> Iterator[Item]:
    key, fields = f"key `decontaminate.sets.{name}`", settings.sets[name].fields
    num_items = 0
    for place, number, row in ROWS[format_of(path)](key, path, file):
        found = _chosen(row, fields)
        if found is None:
            hint = (
                suggestion(fields[0], row) if fields else "name them: `{files: ..., fields: [...]}`"
            )
            wanted = f"no field {fields[0]!r}" if fields else "none of the fields of an item"
            known = ", ".join(map(repr, row)) or "none"
            raise ConfigError(f"{place}: {wanted}; the record has {known}; {hint}")
        num_items += 1
        yield Item(name, f"{file}:{number}", *found)
    if num_items == 0:
        raise ConfigError(f"{key}: {path} holds no item")


def _lines(key: str, path: str, file: str) -> Iterator[tuple[str, int, dict[str, Any]]]:
    """Of each record of a JSONL file: its place in words, its line, its fields."""
    for number, line in enumerate(lines_of(Piece(path, file)), 1):
        if line.fault is not None:
            raise ConfigError(f"{key}: {path}: {line.fault}")
        data = line.data.strip().removeprefix(b"\xef\xbb\xbf")
        if not data:
            continue
        place = f"{key}: {path}, line {number}"
        try:
            row = json.loads(data.decode())
            if not isinstance(row, dict):
                raise ValueError("not an object with fields")
        except (ValueError, RecursionError) as error:
            raise ConfigError(f"{place}: {error}; mend the line") from None
        yield place, number, row


def _table(key: str, path: str, file: str) -> Iterator[tuple[str, int, dict[str, Any]]]:
    """Of each row of a Parquet file the same; rows are counted from 1."""
    del file
    number = 0
    try:
        with open_file(path) as stream:
            for batch in pq.ParquetFile(stream).iter_batches(1_000):
                for row in batch.to_pylist():
                    number += 1
                    yield f"{key}: {path}, row {number}", number, row
    except (pa.ArrowException, UnicodeDecodeError) as error:
        raise ConfigError(
            f"{key}: {path}, after row {number}: not readable as Parquet: {error}; write it again"
        ) from None


ROWS = {"jsonl": _lines, "parquet": _table}


def _chosen(row: dict[str, Any], fields: tuple[str, ...]) -> tuple[str, str] | None:
    """Question, and what goes with it; None where there is no question."""
    if fields:
        if fields[0] not in row:
            return None
        first, others = fields[0], [name for name in fields[1:] if name in row]
    else:
        lower = {name.lower(): name for name in row}
        questions = [lower[name] for name in QUESTIONS if name in lower]
        if not questions:
            return None
        first, others = questions[0], [lower[name] for name in OTHERS if name in lower]
    return "\n".join(_texts(row[first])), "\n".join(t for name in others for t in _texts(row[name]))


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        if len(value.strip()) > 1:
            yield as_text(value)
    elif isinstance(value, list):
        for inner in value:
            yield from _texts(inner)
    elif isinstance(value, dict):
        for inner in value.values():
            yield from _texts(inner)
