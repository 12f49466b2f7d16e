"""Task files: what can be read, and what a mistake is told like."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from pipeline.config import ConfigError
from trainer.tasks import Question, load_task, load_tasks

LINE = {"context": "The capital of France is", "choices": [" Paris", " Rome"], "answer": 0}


def _file(folder: Path, *lines: Any, name: str = "capitals.jsonl") -> Path:
    path = folder / name
    path.write_text("\n".join(x if isinstance(x, str) else json.dumps(x) for x in lines), "utf-8")
    return path


def test_a_line_is_a_question(tmp_path: Path) -> None:
    more = {"context": "法国的首都是", "choices": ["罗马", "巴黎"], "answer": 1, "id": "fr"}
    task = load_task(_file(tmp_path, LINE, "", {**more, "delimiter": "："}))
    assert task.name == "capitals"
    assert task.questions == (
        Question("1", "The capital of France is", (" Paris", " Rome"), 0),
        Question("fr", "法国的首都是", ("罗马", "巴黎"), 1, "："),
    )


def test_another_wording_is_another_fingerprint(tmp_path: Path) -> None:
    prints = {
        load_task(_file(tmp_path, {**LINE, **change})).fingerprint
        for change in ({}, {"context": "x"}, {"answer": 1}, {"delimiter": " "}, {"id": "a"})
    }
    assert len(prints) == 5


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "line 1: not JSON"),
        ("[]", "line 1: expected {"),
        ({**LINE, "anser": 1}, "line 1: unknown key 'anser'; known: id, context, choices"),
        ({**LINE, "context": 3}, "line 1: `context: 3`; expected text"),
        ({**LINE, "choices": []}, "line 1: `choices: []`; expected a list"),
        ({**LINE, "choices": ["a", ""]}, "line 1: a choice is ''; expected text, not empty"),
        ({**LINE, "answer": 2}, "line 1: `answer: 2`; expected the number of a choice, 0 to 1"),
        ({**LINE, "answer": True}, "line 1: `answer: True`; expected the number"),
        ({**LINE, "delimiter": 1}, "line 1: `delimiter: 1`; expected text"),
        ("", "no questions; expected lines such as {"),
    ],
)
def test_mistakes_name_line_and_remedy(tmp_path: Path, line: Any, message: str) -> None:
    with pytest.raises(ConfigError) as error:
        load_task(_file(tmp_path, line))
    assert str(tmp_path / "capitals.jsonl") in str(error.value)
    assert message in str(error.value)


def test_names_and_ids_are_unique(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="two questions have the id '7'"):
        load_task(_file(tmp_path, {**LINE, "id": 7}, {**LINE, "id": "7"}))
    path = _file(tmp_path, LINE)
    with pytest.raises(ConfigError, match="two tasks are called 'capitals'"):
        load_tasks([path, path])
    with pytest.raises(ConfigError, match=r"none\.jsonl: no such file"):
        load_task(tmp_path / "none.jsonl")
    with pytest.raises(ConfigError, match=r"a task is a \.jsonl file"):
        load_task(tmp_path / "none.txt")


# --- of lm-evaluation-harness ---------------------------------------------------------------------

HARNESS = {
    "task": "capitals",
    "dataset_path": "json",
    "dataset_kwargs": {"data_files": {"test": "data.jsonl", "train": "shots.jsonl"}},
    "test_split": "test",
    "output_type": "multiple_choice",
    "doc_to_text": "Q: {{question}}\nA:",
    "doc_to_choice": "options",
    "doc_to_target": "answer",
    "metric_list": [{"metric": "acc"}],
}
DOCUMENTS = [
    {"question": "Capital of France?", "options": ["Rome", "Paris"], "answer": 1},
    {"question": "法国的首都？", "options": ["巴黎", "罗马"], "answer": "巴黎"},
]


def _harness(folder: Path, **changes: Any) -> Path:
    _file(folder, *DOCUMENTS, name="data.jsonl")
    _file(folder, {"question": "1+1?", "options": ["2", "3"], "answer": 0}, name="shots.jsonl")
    path = folder / "capitals.yaml"
    path.write_text(yaml.safe_dump({**HARNESS, **changes}))
    return path


def test_a_harness_task(tmp_path: Path) -> None:
    task = load_task(_harness(tmp_path, description="Answer.\n\n"))
    assert task.name == "capitals"
    assert task.questions == (
        Question("0", "Answer.\n\nQ: Capital of France?\nA:", ("Rome", "Paris"), 1, " "),
        Question("1", "Answer.\n\nQ: 法国的首都？\nA:", ("巴黎", "罗马"), 0, " "),
    )


def test_first_examples_stand_before_each_question(tmp_path: Path) -> None:
    shots = {"num_fewshot": 1, "fewshot_split": "train", "fewshot_config": {"sampler": "first_n"}}
    task = load_task(_harness(tmp_path, **shots, target_delimiter=""))
    assert task.questions[1].context == "Q: 1+1?\nA:2\n\nQ: 法国的首都？\nA:"


@pytest.mark.parametrize(
    "choices", [["Rome", "Paris"], {"a": "Rome", "b": "Paris"}, "{{['Rome', 'Paris']}}"]
)
def test_ways_to_give_choices(tmp_path: Path, choices: Any) -> None:
    task = load_task(_harness(tmp_path, doc_to_choice=choices, doc_to_target="{{1}}"))
    assert [q.choices for q in task.questions] == [("Rome", "Paris")] * 2
    assert [q.answer for q in task.questions] == [1, 1]


@pytest.mark.parametrize(
    ("target", "answers"), [("sum", [1, 0]), ("{{place}}", [2, 2]), (1, [1, 1])]
)
def test_a_column_of_digits_is_the_text_of_a_choice_and_a_template_its_number(
    tmp_path: Path, target: str | int, answers: list[int]
) -> None:
    """As the harness has it: `doc_to_target: sum` of 1 + 1 is the choice "2", not the third."""
    path = _harness(tmp_path, doc_to_choice=["1", "2", "4"], doc_to_target=target)
    documents = [
        {"question": "1+1?", "sum": "2", "place": 2},
        {"question": "1*1?", "sum": "1", "place": 2},
    ]
    _file(tmp_path, *documents, name="data.jsonl")
    assert [q.answer for q in load_task(path).questions] == answers


def test_a_description_is_a_template(tmp_path: Path) -> None:
    task = load_task(_harness(tmp_path, description="{{options[0]}}.\n"))
    assert task.questions[0].context == "Rome.\nQ: Capital of France?\nA:"


def test_loglikelihood_has_one_choice(tmp_path: Path) -> None:
    task = load_task(
        _harness(tmp_path, output_type="loglikelihood", doc_to_target="{{options[0]}}")
    )
    assert [q.choices for q in task.questions] == [("Rome",), ("巴黎",)]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"dataset_path": "allenai/ai2_arc"}, "a data set of a hub is not fetched here"),
        ({"output_type": "generate_until"}, "what is scored here: multiple_choice, loglikelihood"),
        ({"test_split": None}, "neither `test_split` nor `validation_split`"),
        ({"test_split": "dev"}, "`dataset_kwargs.data_files` names no file of `dev`"),
        ({"gen_prefix": "A"}, "key `gen_prefix` is not understood here"),
        ({"doc_to_text": "{{quest}}"}, "'quest' is undefined; columns: question, options, answer"),
        ({"doc_to_text": "{{ ''.__class__.__mro__ }}"}, "unsafe"),
        ({"doc_to_text": "{{ 1 / 0 }}"}, "`doc_to_text`: division by zero"),
        ({"doc_to_choice": "question"}, "gives no list of choices"),
        ({"doc_to_target": "options"}, "several right answers"),
        ({"num_fewshot": 2}, "random examples"),
    ],
)
def test_what_is_not_asked_here_is_named(
    tmp_path: Path, changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigError) as error:
        load_task(_harness(tmp_path, **changes))
    assert str(tmp_path) in str(error.value)
    assert message in str(error.value)


def test_python_is_not_run(tmp_path: Path) -> None:
    path = _harness(tmp_path)
    path.write_text(path.read_text() + "process_docs: !function utils.go\n")
    with pytest.raises(ConfigError, match="`process_docs: !function utils.go` is Python"):
        load_task(path)
