"""Cloze tasks as token ids, and what the nats of their choices come to. Imports no torch.

How a choice is put after its context is lm-evaluation-harness's way, so that the scores are its
scores. White space at the end of the context is of the choice. Both are encoded together; as many
ids as the context has alone are then taken from the context alone, so that a choice that changes
the last id of its context loses a character or so. A context too long loses its beginning. BOS,
without one EOS, stands before a choice that stands alone.

Rules by which the right choice has to win, each with its name:

    sum     log-probability of the choice (harness: acc)
    char    the same per character (acc_norm)
    byte    the same per UTF-8 byte (acc_bytes)
    token   the same per token
    pmi     less its log-probability alone, after no context (acc_mutual_info; Holtzman 2104.08315)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pipeline import tokenizer
from pipeline.config import ConfigError
from pipeline.files import replacing
from pipeline.settings import Tokenizer
from trainer.items import Row
from trainer.scores import alone
from trainer.tasks import Task

Encode = Callable[[str], np.ndarray]

ANSWERS = pa.schema(
    [
        ("step", pa.int64()),
        ("task", pa.string()),
        ("fingerprint", pa.string()),  # of the task's questions
        ("question", pa.string()),
        ("choice", pa.int32()),
        ("right", pa.bool_()),
        ("nats", pa.float64()),  # after the context
        ("nats_alone", pa.float64()),  # after no context
        ("num_bytes", pa.int64()),
        ("num_chars", pa.int64()),
        ("num_tokens", pa.int64()),
    ]
)
RULES: dict[str, Callable[[pa.Table], np.ndarray]] = {
    "sum": lambda rows: -_floats(rows, "nats"),
    "char": lambda rows: -_floats(rows, "nats") / _floats(rows, "num_chars"),
    "byte": lambda rows: -_floats(rows, "nats") / _floats(rows, "num_bytes"),
    "token": lambda rows: -_floats(rows, "nats") / _floats(rows, "num_tokens"),
    "pmi": lambda rows: _floats(rows, "nats_alone") - _floats(rows, "nats"),
}


@dataclass(frozen=True)
class Cloze:
    """Tasks, ready to score: `table` has the columns of ANSWERS that are known; owners of the rows
    are its rows first, then the choices that stand alone."""

    table: pa.Table
    rows: tuple[Row, ...]
    alone: tuple[int, ...]  # of each row of the table, the owner that is its choice alone


@dataclass(frozen=True)
class TaskScore:
    num_questions: int
    accuracy: dict[str, float]  # by rule; empty where no question has two choices
    bits_per_byte: float  # of the right answers, after their context


# --- text to ids ----------------------------------------------------------------------------------


def encode_tasks(
    tasks: Sequence[Task], tokenizer_file: Path, bos_id: int | None, eos_id: int | None, length: int
) -> Cloze:
    """Tasks as rows of at most `length` + 1 ids.

    Raises:
        ConfigError: a choice is longer than a window, or nothing can stand before one.
    """
    encoder = tokenizer.load(Tokenizer(file=str(tokenizer_file), eos=None))
    before = bos_id if bos_id is not None else eos_id
    if before is None:
        raise ConfigError(
            f"{tokenizer_file}: neither `bos` nor `eos` is set, so nothing can stand before a "
            "choice that is scored alone; set one under `tokenizer` in corpus.yaml"
        )
    found = [(task, question) for task in tasks for question in task.questions]
    texts = {
        text
        for _, q in found
        for choice in q.choices
        for text in _texts(q.context, q.delimiter + choice)
    }
    ordered = sorted(texts)
    ids, offsets, _ = encoder.encode(pa.array(ordered, pa.string()))
    known = dict(zip(ordered, np.split(ids.astype(np.int64), offsets[1:-1]), strict=True))
    first = [] if bos_id is None else [bos_id]
    columns: dict[str, list[object]] = {name: [] for name in ANSWERS.names if name in _KNOWN}
    rows: list[Row] = []
    alone: dict[str, int] = {}  # number of each choice
    of_row: list[int] = []
    for task, question in found:
        for number, choice in enumerate(question.choices):
            where = f"task {task.name}, question {question.id}, choice {number}"
            asked = question.delimiter + choice
            row = _row(len(rows), question.context, asked, known, first, before, length, where)
            rows.append(row)
            alone.setdefault(asked, len(alone))
            of_row.append(alone[asked])
            known_now = (
                task.name,
                task.fingerprint,
                question.id,
                number,
                number == question.answer,
                len(choice.encode()),
                len(choice),
                len(row.ids) - row.begin,
            )
            for name, value in zip(columns, known_now, strict=True):
                columns[name].append(value)
    num_rows = len(rows)
    for choice, number in alone.items():
        where = f"choice {choice[:40]!r} alone"
        rows.append(_row(num_rows + number, "", choice, known, first, before, length, where))
    table = pa.table(columns, schema=pa.schema([ANSWERS.field(name) for name in columns]))
    return Cloze(table, tuple(rows), tuple(num_rows + number for number in of_row))


_KNOWN = {name for name in ANSWERS.names if name not in ("step", "nats", "nats_alone")}


def _parts(context: str, choice: str) -> tuple[str, str]:
    """White space at the end of a context is of the choice."""
    kept = context.rstrip()
    return kept, context[len(kept) :] + choice


def _texts(context: str, choice: str) -> tuple[str, ...]:
    kept, rest = _parts(context, choice)
    return kept, kept + rest, choice


def _row(
    owner: int, context: str, choice: str, known: dict[str, np.ndarray], first: list[int],
    before: int, length: int, where: str,
) -> Row:  # fmt: skip
    kept, rest = _parts(context, choice)
    whole = known[kept + rest]
    if kept:
        apart = known[kept]
        scored = whole[len(apart) :]
        if len(scored):
            ids, begin = np.array([*first, *apart, *scored], np.int64), len(first) + len(apart)
        else:  # the tokenizer joins the two: the last id is scored
            ids, begin = np.array([*first, *whole], np.int64), len(first) + len(whole) - 1
    else:
        ids, begin = np.array([before, *whole], np.int64), 1
    if len(ids) - begin > length:
        raise ConfigError(
            f"{where}: {len(ids) - begin} tokens; the model reads {length}: shorten the choice"
        )
    cut = max(0, len(ids) - length - 1)
    return Row(owner, ids[cut:], begin - cut)


# --- nats to scores -------------------------------------------------------------------------------


def answers_of(cloze: Cloze, step: int, nats: np.ndarray) -> pa.Table:
    """Rows of ANSWERS, from the nats of all owners."""
    table = cloze.table
    num_rows = len(table)
    table = table.append_column("step", pa.array([step] * num_rows, pa.int64()))
    table = table.append_column("nats", pa.array(nats[:num_rows], pa.float64()))
    table = table.append_column("nats_alone", pa.array(nats[list(cloze.alone)], pa.float64()))
    return table.select(ANSWERS.names)


def task_scores(answers: pa.Table) -> dict[str, TaskScore]:
    """Scores by task of the rows of one step. Ties go to the first choice, as in numpy."""
    return {
        name: _score(answers.filter(pc.field("task") == name))
        for name in sorted(set(answers["task"].to_pylist()))
    }


def _score(rows: pa.Table) -> TaskScore:
    begins = np.flatnonzero(rows["choice"].to_numpy() == 0)
    ends = np.append(begins[1:], len(rows))
    right = rows["right"].to_numpy(zero_copy_only=False)
    answer = rows.filter(rows["right"])
    bits = _floats(answer, "nats").sum() / math.log(2) / _floats(answer, "num_bytes").sum()
    accuracy = {}
    if (ends - begins).max() > 1:
        for name, rule in RULES.items():
            values = rule(rows)
            won = [right[b + int(values[b:e].argmax())] for b, e in zip(begins, ends, strict=True)]
            accuracy[name] = float(np.mean(won))
    return TaskScore(len(begins), accuracy, float(bits))


def _floats(rows: pa.Table, column: str) -> np.ndarray:
    values: np.ndarray = rows[column].to_numpy().astype(np.float64)
    return values


def keep_answers(path: Path, table: pa.Table) -> None:
    """Add answers to answers.parquet, in place of earlier ones of the same step and task."""
    with alone(path):
        if path.exists() and len(table):
            tasks = pa.array(sorted(set(table["task"].to_pylist())))
            same = (pc.field("step") == table["step"][0]) & pc.field("task").isin(tasks)
            table = pa.concat_tables([pq.read_table(path, schema=ANSWERS).filter(~same), table])
        with replacing(path) as temporary:
            pq.write_table(table, temporary)


def kept_answers(path: Path, step: int, tasks: Sequence[Task]) -> pa.Table:
    """The answers that stand for these tasks at a step: those of the same questions."""
    if not path.exists():
        return ANSWERS.empty_table()
    prints = pa.array([task.fingerprint for task in tasks], pa.string())
    wanted = (pc.field("step") == step) & pc.field("fingerprint").isin(prints)
    return pq.read_table(path, schema=ANSWERS).filter(wanted)
