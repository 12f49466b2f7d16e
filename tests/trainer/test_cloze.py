"""Cloze tasks: ids by the definition, nats by the model alone, scores by hand."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import tiny_run
import tokenizers
import torch

from pipeline.config import ConfigError
from trainer.attention import Scope
from trainer.cloze import (
    ANSWERS,
    TaskScore,
    answers_of,
    encode_tasks,
    keep_answers,
    kept_answers,
    task_scores,
)
from trainer.evaluate import answer
from trainer.model import Decoder, initialize
from trainer.parallel.world import World
from trainer.shapes import Shape
from trainer.tasks import Question, Task

ONE = World(0, 1, torch.device("cpu"), None)
BOS, EOS = 7, 8
QUESTIONS = (
    Question("a", "The cat sat on the ", ("mat", "cat 我们", "m"), 1),
    Question("b", "", ("the cat", "我"), 0, " "),
    Question("c", "long " * 30, ("我们",), 0),
    Question("d", "the c", ("at", "ow"), 0),  # `cat` is one token
    Question("e", "the c", ("at on",), 0),  # its first id is of another text than the context's
)
TASK = Task("t", QUESTIONS)


@pytest.fixture(scope="module")
def tokenizer_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tokenizer")
    tiny_run.make_data(folder)
    return folder / "tokenizer.json"


def _nats(model: torch.nn.Module, ids: list[int], begin: int) -> float:
    """By the definition."""
    tokens = torch.tensor([ids])
    with torch.no_grad():
        logits = model(tokens[:, :-1], Scope(torch.zeros_like(tokens[:, :-1])))
    each = -logits.log_softmax(-1)[0].gather(1, tokens[0, 1:, None])[:, 0]
    return float(each[begin - 1 :].sum())


@pytest.mark.parametrize("bos", [BOS, None])
@pytest.mark.parametrize("batch_windows", [1, 3, 100])
def test_each_choice_is_scored_after_its_context(
    tokenizer_file: Path, bos: int | None, batch_windows: int
) -> None:
    model = Decoder(Shape(width=16, depth=1, heads=2, kv_heads=1, ffn=16), tiny_run.VOCABULARY)
    initialize(model, 0)
    length = 24
    cloze = encode_tasks([TASK], tokenizer_file, bos, EOS, length)
    found = answers_of(cloze, 3, answer(model, cloze, length, batch_windows, ONE))
    encode = tokenizers.Tokenizer.from_file(str(tokenizer_file)).encode
    rows = iter(found.to_pylist())
    for question in QUESTIONS:
        for number, choice in enumerate(question.choices):
            context, text = question.context.rstrip(), question.delimiter + choice
            spaces = question.context[len(context) :]
            whole = encode(context + spaces + text).ids
            first = [] if bos is None else [bos]
            apart = encode(context).ids
            if not context:
                ids, begin = [EOS if bos is None else bos, *whole], 1
            elif len(whole) > len(apart):
                ids = first + apart + whole[len(apart) :]
                begin = len(first + apart)
            else:
                ids, begin = first + whole, len(first + whole) - 1
            cut = max(0, len(ids) - length - 1)
            alone = [EOS if bos is None else bos, *encode(text).ids]
            row = next(rows)
            assert row["nats"] == pytest.approx(_nats(model, ids[cut:], begin - cut), rel=1e-5)
            assert row["nats_alone"] == pytest.approx(_nats(model, alone, 1), rel=1e-5)
            known = (question.id, number, number == question.answer, len(choice), 3)
            shown = ("question", "choice", "right", "num_chars", "step")
            assert tuple(row[name] for name in shown) == known
            assert row["num_bytes"] == len(choice.encode())
            assert row["num_tokens"] == len(ids) - begin
    assert next(rows, None) is None


def test_what_cannot_be_scored_is_named(tokenizer_file: Path) -> None:
    long = Task("t", (Question("a", "x", ("我" * 40,), 0),))
    with pytest.raises(ConfigError, match=r"task t, question a, choice 0: \d+ tokens; the model"):
        encode_tasks([long], tokenizer_file, BOS, EOS, 8)
    with pytest.raises(ConfigError, match="neither `bos` nor `eos` is set"):
        encode_tasks([TASK], tokenizer_file, None, None, 8)


def _answers(*rows: tuple[str, int, bool, float, float, int, int, int]) -> pa.Table:
    names = ("question", "choice", "right", "nats", "nats_alone", "num_bytes", "num_chars")
    columns = dict(zip((*names, "num_tokens"), zip(*rows, strict=True), strict=True))
    more = {"step": [1] * len(rows), "task": ["t"] * len(rows), "fingerprint": ["f"] * len(rows)}
    return pa.table({name: {**columns, **more}[name] for name in ANSWERS.names}, schema=ANSWERS)


def test_each_rule_has_its_own_winner() -> None:
    rows = [
        # the right one of six is preferred by one rule a question
        ("sum", 0, True, 1.0, 1.0, 1, 1, 1),
        ("sum", 1, False, 2.0, 9.0, 9, 9, 9),
        ("char", 0, True, 6.0, 1.0, 6, 6, 1),
        ("char", 1, False, 5.0, 9.0, 6, 2, 1),
        ("byte", 0, True, 6.0, 1.0, 18, 6, 1),
        ("byte", 1, False, 5.0, 9.0, 6, 6, 1),
        ("token", 0, True, 6.0, 1.0, 6, 6, 6),
        ("token", 1, False, 5.0, 9.0, 6, 6, 1),
        ("pmi", 0, True, 6.0, 9.0, 6, 6, 1),
        ("pmi", 1, False, 5.0, 1.0, 6, 6, 1),
    ]
    for at in range(0, len(rows), 2):
        rule = rows[at][0]
        score = task_scores(_answers(*rows[at : at + 2]))["t"]
        won = [name for name, value in score.accuracy.items() if value == 1.0]
        assert rule in won
        if rule != "sum":
            assert "sum" not in won
    score = task_scores(_answers(*rows))["t"]
    bits = (1 + 6 * 4) / math.log(2) / (1 + 6 + 18 + 6 + 6)
    assert score == TaskScore(5, score.accuracy, pytest.approx(bits))
    assert score.accuracy["sum"] == pytest.approx(0.2)


def test_one_choice_has_bits_but_no_accuracy() -> None:
    assert task_scores(_answers(("a", 0, True, math.log(2), 1.0, 4, 2, 1))) == {
        "t": TaskScore(1, {}, pytest.approx(0.25))
    }


def test_answers_are_replaced_by_step_and_task(tmp_path: Path) -> None:
    path = tmp_path / "answers.parquet"
    first = _answers(("a", 0, True, 1.0, 1.0, 1, 1, 1))
    keep_answers(path, first)
    other = first.set_column(1, "task", pa.array(["u"]))
    keep_answers(path, other)
    again = _answers(("a", 0, True, 2.0, 1.0, 1, 1, 1))
    keep_answers(path, again)
    task = Task("t", (Question("a", "", ("x",), 0),))
    assert len(kept_answers(path, 1, [task])) == 0  # other questions than those that were asked
    found = kept_answers(path, 1, [_named("f")])
    assert np.sort(found["nats"].to_numpy()).tolist() == [1.0, 2.0]


def _named(fingerprint: str) -> Task:
    class Fixed(Task):
        @property
        def fingerprint(self) -> str:
            return fingerprint

    return Fixed("t", ())
