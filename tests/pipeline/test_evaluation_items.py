"""Files of evaluation sets to items: which fields, which files, what is refused."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from s3_server import s3_bucket

from pipeline import objects
from pipeline.config import ConfigError
from pipeline.evaluation_items import Item, read_items, versions
from pipeline.heldout_settings import Decontaminate
from pipeline.settings import load_corpus


def items(folder: Path, *rows: dict[str, Any], fields: tuple[str, ...] = ()) -> list[Item]:
    path = folder / "set.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    given = {"files": str(path), "fields": list(fields)}
    return list(read_items(Decontaminate.model_validate({"sets": {"set": given}})))


@pytest.mark.parametrize(
    ("row", "question", "other"),
    [  # as MMLU, ARC, GSM8K, HellaSwag, PIQA, C-Eval, CMMLU and HumanEval write them
        ({"question": "Who?", "choices": ["he", "she"], "answer": 1}, "Who?", "he\nshe"),
        (
            {"question": "Why?", "choices": {"text": ["so", "not"], "label": ["A", "B"]}},
            "Why?",
            "so\nnot",
        ),
        ({"question": "2 + 2?", "answer": "It is #### 4"}, "2 + 2?", "It is #### 4"),
        ({"ctx": "He sat", "endings": ["down", "up"], "label": "0"}, "He sat", "down\nup"),
        ({"goal": "Dry it", "sol1": "sun", "sol2": "rain", "label": 0}, "Dry it", "sun\nrain"),
        (
            {"id": 7, "question": "哪一个？", "A": "这个", "B": "那个", "answer": "A"},
            "哪一个？",
            "这个\n那个",
        ),
        ({"Question": "哪一个？", "A": "这个", "Answer": "A"}, "哪一个？", "这个"),
        ({"prompt": "def f():", "canonical_solution": "  pass"}, "def f():", "  pass"),
        ({"question": "Where?", "passage": "a page of Wikipedia"}, "Where?", ""),
        ({"text": "all of it"}, "all of it", ""),
        ({"question": ["turn one", "turn two"]}, "turn one\nturn two", ""),
        ({"question": None}, "", ""),
        ({"question": "a\ud800b"}, "a?b", ""),
    ],
)
def test_fields_by_default(tmp_path: Path, row: dict[str, Any], question: str, other: str) -> None:
    assert items(tmp_path, row) == [Item("set", "set.jsonl:1", question, other)]


def test_fields_by_name(tmp_path: Path) -> None:
    row = {"question": "no", "stem": "yes", "why": ["because", {"x": "of it"}]}
    found = items(tmp_path, row, fields=("stem", "why", "absent"))
    assert found == [Item("set", "set.jsonl:1", "yes", "because\nof it")]
    message = r"no field 'stm'; the record has 'question', 'stem', 'why'; did you mean 'stem'"
    with pytest.raises(ConfigError, match=message):
        items(tmp_path, row, fields=("stm",))


def test_what_is_no_item_is_named_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "set.jsonl"
    settings = Decontaminate.model_validate({"sets": {"own": [str(path)]}})

    def refused(data: bytes, message: str) -> None:
        path.write_bytes(data)
        with pytest.raises(ConfigError, match=message):
            list(read_items(settings))

    refused(b'{"text": "a"}\n\n{"text": ', f"`decontaminate.sets.own`: {path}, line 3: .*mend the")
    refused(b"[1]\n", "line 1: not an object with fields")
    refused(b'{"q": "a"}\n', r"none of the fields of an item; the record has 'q'; name them")
    refused(b"", "holds no item")
    refused(b"\n\r\n", "holds no item")
    refused(b'{"text": "\xff"}\n', "line 1: 'utf-8' codec")
    path.write_bytes(b'\xef\xbb\xbf{"text": "a b"}\r\n{"text": "b c"}')
    assert [(i.name, i.question) for i in read_items(settings)] == [
        ("set.jsonl:1", "a b"),
        ("set.jsonl:2", "b c"),
    ]


def test_globs_packed_files_and_what_they_depend_on(tmp_path: Path) -> None:
    for subject in ("law", "art"):
        (tmp_path / "c" / subject).mkdir(parents=True)
        with gzip.open(tmp_path / "c" / subject / "test.jsonl.gz", "wt") as file:
            file.write(json.dumps({"question": f"What is {subject}?"}) + "\n")
    (tmp_path / "corpus.yaml").write_text(
        "inputs: [{source: a, files: a.jsonl}]\ntokenizer: deepseek\n"
        "decontaminate: {sets: {ceval: c/**/*.jsonl.gz, art: {files: [c/art/*.gz]}}}\n"
    )
    settings = load_corpus(tmp_path / "corpus.yaml").decontaminate
    assert (settings.words, settings.characters, settings.share) == (8, 10, 0.4)
    names = [(i.set, i.name) for i in read_items(settings)]
    assert names == [
        ("ceval", "art/test.jsonl.gz:1"),
        ("ceval", "law/test.jsonl.gz:1"),
        ("art", "test.jsonl.gz:1"),
    ]
    twice = {"sets": {"set": [f"{tmp_path}/c/**/*.gz", f"{tmp_path}/c/*/test.jsonl.gz"]}}
    assert len(list(read_items(Decontaminate.model_validate(twice)))) == 2
    before = versions(settings)
    (tmp_path / "c/law/test.jsonl.gz").touch()
    assert versions(settings) == before
    (tmp_path / "c/law/test.jsonl.gz").write_text('{"text": "other"}\n')
    assert [a == b for a, b in zip(versions(settings), before, strict=True)] == [True, False, True]


ROWS = [
    {"question": "Who wrote it?", "choices": ["he", "she"], "answer": 1},
    {"question": "哪一个？", "choices": ["这个", "那个"], "answer": 0},
]
ITEMS = [
    Item("set", "{}:1", "Who wrote it?", "he\nshe"),
    Item("set", "{}:2", "哪一个？", "这个\n那个"),
]


def read_from(files: str) -> list[Item]:
    return list(read_items(Decontaminate.model_validate({"sets": {"set": files}})))


def named(file: str) -> list[Item]:
    return [item._replace(name=item.name.format(file)) for item in ITEMS]


def test_a_parquet_file_is_read_as_a_file_of_lines_is(tmp_path: Path) -> None:
    pq.write_table(pa.Table.from_pylist(ROWS), tmp_path / "test.parquet", row_group_size=1)
    assert read_from(str(tmp_path / "test.parquet")) == named("test.parquet")
    pq.write_table(pa.table({"stem": ["no"]}), tmp_path / "other.parquet")
    message = r"other.parquet, row 1: none of the fields of an item; the record has 'stem'"
    with pytest.raises(ConfigError, match=message):
        read_from(str(tmp_path / "other.parquet"))


def test_sets_on_a_store(tmp_path: Path) -> None:
    lines = "".join(json.dumps(row) + "\n" for row in ROWS).encode()
    pq.write_table(pa.Table.from_pylist(ROWS), tmp_path / "test.parquet")
    with s3_bucket() as bucket:
        objects.write(f"{bucket}/evals/test.jsonl", lines)
        objects.upload(tmp_path / "test.parquet", f"{bucket}/evals/test.parquet")
        assert read_from(f"{bucket}/evals/*.jsonl") == named("test.jsonl")
        assert read_from(f"{bucket}/evals/*.parquet") == named("test.parquet")
        settings = Decontaminate.model_validate({"sets": {"set": f"{bucket}/evals/*"}})
        before = versions(settings)
        assert [file for _, file, _ in before] == ["test.jsonl", "test.parquet"]
        objects.write(f"{bucket}/evals/test.jsonl", lines[: len(lines) // 2])
        assert [a == b for a, b in zip(versions(settings), before, strict=True)] == [False, True]


@pytest.mark.parametrize(
    ("sets", "message"),
    [
        ("{a: none.jsonl}", "key `decontaminate.sets.a`: no file matches .*none.jsonl"),
        ("{a: a.csv}", "a.csv is neither JSONL nor Parquet; write an item a line"),
        ("{a: a.parquet}", "a.parquet, after row 0: not readable as Parquet: .*; write it again"),
        ("{a/b: a.jsonl}", "'a/b': a name is made of"),
        ("{a: {file: a.jsonl}}", "unknown key `decontaminate.sets.a.file`.*did you mean `files`"),
        ("{a: []}", "key `decontaminate.sets.a`: expected at least one entry"),
    ],
)
def test_sets_that_cannot_be_used(tmp_path: Path, sets: str, message: str) -> None:
    (tmp_path / "a.parquet").write_bytes(b"PAR1")
    (tmp_path / "a.csv").write_text("question\nWhy?\n")
    (tmp_path / "corpus.yaml").write_text(
        "inputs: [{source: a, files: a.jsonl}]\ntokenizer: deepseek\n"
        f"decontaminate: {{sets: {sets}}}\n"
    )
    with pytest.raises(ConfigError, match=message):
        list(read_items(load_corpus(tmp_path / "corpus.yaml").decontaminate))
