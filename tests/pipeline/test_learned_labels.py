"""Export a sample, read answers of all forms, count what could not be read, train on the labels."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import small_corpus
from hypothesis import given
from hypothesis import strategies as st

from pipeline.config import ConfigError, check
from pipeline.files import read_json
from pipeline.learned import rubric
from pipeline.learned.answers import read_score
from pipeline.learned.batches import choose
from pipeline.learned.examples import examples, rows_of
from pipeline.learned.settings import ClassifierSettings
from pipeline.seeing import labels as by_hand
from trainer.cli import main


@pytest.mark.parametrize(
    ("text", "score"),
    [
        ("Clear and complete.\nScore: 4", 4),
        ("Score: 3/5", 3),
        ("**Score:** 2", 2),
        ("Score is 3.5", 3.5),
        ("+1 readable, +1 definite. Educational score: 2", 2),
        ("I first thought score: 1, but then\nScore: 5", 5),
        ('{"reason": "ok", "score": 3}', 3),
        ('```json\n{"score": "4"}\n```', 4),
        ("条理清楚。\n评分：３", 3),
        ("总分为 4 分", 4),
        ("得分: 0", 0),
        ("4分", 4),
        ("4 out of 5", 4),
        (" 3. ", 3),
        ("5", 5),
        ("Score: <2>", 2),
        ("", "no_score"),
        ("I cannot judge this.", "no_score"),
        ("In 1984 two men met.", "no_score"),
        ("Score: none", "no_score"),
        ("Score: 10", "out_of_range"),
        ("Score: -1", "out_of_range"),
        ("7/5", "out_of_range"),
    ],
)
def test_scores_in_answers(text: str, score: float | str) -> None:
    assert read_score(text) == score


@given(st.text(max_size=200))
def test_any_answer_is_a_score_or_a_reason(text: str) -> None:
    found = read_score(text)
    assert found in ("no_score", "out_of_range") if isinstance(found, str) else 0 <= found <= 5


def test_a_sample_takes_small_strata_whole() -> None:
    keys = [f"{n:032x}" for n in range(1_000)]
    strata = [("rare",) if n < 3 else ("some",) if n < 50 else ("many",) for n in range(1_000)]
    of_key = dict(zip(keys, strata, strict=True))
    chosen = choose(keys, strata, 63, 17)
    assert Counter(of_key[key] for key in chosen) == {("rare",): 3, ("some",): 30, ("many",): 30}
    assert set(chosen) < set(choose(keys, strata, 200, 17))
    assert chosen == choose(keys[::-1], strata[::-1], 63, 17)
    assert chosen != choose(keys, strata, 63, 18)
    assert len(choose(keys, strata, 5_000, 17)) == 1_000


def openai(key: str, text: str, **body: Any) -> dict[str, Any]:
    usage = {"prompt_tokens": 1_000, "completion_tokens": 100, "total_tokens": 1_100}
    message = {"role": "assistant", "content": text}
    made = {"model": "m-1", "choices": [{"message": message}], "usage": usage} | body
    return {"custom_id": key, "response": {"status_code": 200, "body": made}, "error": None}


def anthropic(key: str, text: str) -> dict[str, Any]:
    message = {
        "model": "c-1",
        "content": [{"type": "text", "text": text}],
        "usage": {"input_tokens": 500, "output_tokens": 50},
    }
    return {"custom_id": key, "result": {"type": "succeeded", "message": message}}


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return small_corpus.prepare(tmp_path_factory.mktemp("labels"))


def exported(corpus: Path, *arguments: str) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    output = corpus.parent / "batch.jsonl"
    command = ["labels", "export", str(corpus), "--output", str(output), "--model", "m"]
    assert main([*command, *arguments]) == 0
    requests = [json.loads(line) for line in output.read_text("utf-8").splitlines()]
    return requests, read_json(corpus.parent / "batch.jsonl.meta.json")


def test_requests(corpus: Path, capsys: pytest.CaptureFixture[str]) -> None:
    per = ("--per", "lang,source,score", "--score", "gopher.num_words")
    requests, meta = exported(corpus, "-n", "40", *per)
    assert "wrote" in capsys.readouterr().out
    assert len(requests) == 40
    assert meta["prompt_hash"] == rubric.prompt_hash(rubric.PROMPT)
    assert {(row["lang"], row["source"]) for row in meta["strata"]} == {
        ("en", "tales-en"),
        ("zh", "tales-zh"),
    }
    assert {row["score"] for row in meta["strata"]} <= set("01234")
    sampled = [row["sampled"] for row in meta["strata"]]
    assert sum(sampled) == 40
    assert max(sampled) - min(sampled) <= 1
    first = requests[0]
    assert (first["method"], first["url"]) == ("POST", "/v1/chat/completions")
    content = first["body"]["messages"][0]["content"]
    assert content.startswith(rubric.PROMPT[:40])
    question = (
        f"select left(text, 4000) t from documents where content_hash = '{first['custom_id']}'"
    )
    text = small_corpus.assay("sql", corpus, question, "--format", "json").stdout
    assert json.loads(text)["t"] in content
    assert exported(corpus, "-n", "40", *per)[0] == requests
    held = small_corpus.assay("sql", corpus, "select content_hash from heldout", "--format", "csv")
    everything, _ = exported(corpus, "-n", "10k")
    assert len(everything) == 232
    assert not {r["custom_id"] for r in everything} & set(held.stdout.split())


def test_what_each_server_is_sent(corpus: Path) -> None:
    """gpt-5 refuses `max_tokens` and a `temperature`; others know no `max_completion_tokens`."""
    body = exported(corpus, "-n", "1")[0][0]["body"]
    assert list(body) == ["model", "messages", "max_completion_tokens"]
    assert body["max_completion_tokens"] == 4_000
    hosted, meta = exported(corpus, "-n", "1", "--api", "vllm", "--temperature", "0")
    assert hosted[0]["url"] == "/v1/chat/completions"
    assert (hosted[0]["body"]["max_tokens"], hosted[0]["body"]["temperature"]) == (300, 0)
    assert "max_completion_tokens" not in hosted[0]["body"]
    assert (meta["api"], meta["max_tokens"], meta["temperature"]) == ("vllm", 300, 0)
    longer, meta = exported(corpus, "-n", "1", "--api", "anthropic", "--max-tokens", "2k")
    assert list(longer[0]["params"]) == ["model", "messages", "max_tokens"]
    assert (longer[0]["params"]["max_tokens"], meta["max_tokens"]) == (2_000, 2_000)


def test_own_prompt_and_the_other_api(corpus: Path, tmp_path: Path) -> None:
    (tmp_path / "prompt.txt").write_text("Rate 0-5: {text}")
    arguments = ("--prompt", str(tmp_path / "prompt.txt"), "--api", "anthropic", "-n", "4")
    requests, meta = exported(corpus, *arguments, "--where", "lang = 'zh'", "--max-chars", "10")
    assert list(requests[0]) == ["custom_id", "params"]
    content = requests[0]["params"]["messages"][0]["content"]
    assert content.startswith("Rate 0-5: ")
    assert len(content) == 20
    assert meta["prompt"] == "Rate 0-5: {text}"
    (tmp_path / "prompt.txt").write_text("Rate it")
    with pytest.raises(ConfigError, match="stands in it 0 times, and must once"):
        rubric.load(tmp_path / "prompt.txt")


def test_what_cannot_be_exported(corpus: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["labels", "export", str(corpus), "--output", "x.jsonl", "--model", "m"]
    assert main([*command, "--per", "score"]) == 2
    assert "needs a number to go by" in capsys.readouterr().err
    assert main([*command, "--per", "genre"]) == 2
    assert "known: lang, source, score" in capsys.readouterr().err
    assert main([*command, "--where", "lang = 'fr'"]) == 2
    assert "nothing to label" in capsys.readouterr().err


def test_answers_of_all_forms(
    corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    requests, meta = exported(corpus, "-n", "12")
    keys = [request["custom_id"] for request in requests]
    answers: list[Any] = [
        openai(keys[0], "Score: 4"),
        anthropic(keys[1], "评分：２"),
        {"custom_id": keys[2], "text": "3"},
        openai(keys[3], "no idea"),
        openai(keys[4], "Score: 9"),
        openai(keys[5], ""),
        {"custom_id": keys[6], "response": {"status_code": 400, "body": {"error": {}}}},
        {"custom_id": keys[7], "result": {"type": "expired"}},
        openai(keys[0], "Score: 1"),
        openai("f" * 32, "Score: 1"),
        [],
        openai(keys[8], "Score: 0", usage=None),
        openai(keys[9], "", choices=[{"message": {"content": [{"type": "text", "text": "5"}]}}]),
        openai(keys[10], "", choices=[]),
    ]
    lines = [json.dumps(answer) for answer in answers] + ["{broken", ""]
    (tmp_path / "answers.jsonl").write_text("\n".join(lines))
    output = tmp_path / "labels.parquet"
    command = ["labels", "import", str(tmp_path / "answers.jsonl"), "--output", str(output)]
    command += ["--batch", str(corpus.parent / "batch.jsonl")]
    capsys.readouterr()
    assert main([*command, "--price-in", "2", "--price-out", "10"]) == 0
    out = capsys.readouterr().out
    for why, count in (
        ("no_score", 1), ("out_of_range", 1), ("no_answer", 2), ("failed", 2), ("twice", 1),
        ("unknown_id", 1), ("bad_json", 2), ("missing", 1),
    ):  # fmt: skip
        assert f"not read: {count}: " in "".join(
            line for line in out.splitlines() if f"({why})" in line
        ), why
    rows = {row["content_hash"].hex(): row for row in pq.read_table(output).to_pylist()}
    assert {key: row["score"] for key, row in rows.items()} == {
        keys[0]: 4, keys[1]: 2, keys[2]: 3, keys[8]: 0, keys[9]: 5,
    }  # fmt: skip
    assert {row["prompt_hash"] for row in rows.values()} == {meta["prompt_hash"]}
    assert (rows[keys[0]]["model"], rows[keys[0]]["cost"]) == ("m-1", 0.003)
    assert (rows[keys[1]]["model"], rows[keys[1]]["cost"]) == ("c-1", 0.0015)
    assert rows[keys[8]]["cost"] is None
    assert "cost 0.0075, 2.5000 for 1,000 labels" in out
    (tmp_path / "answers.jsonl").write_text("{}\n")
    assert main(command) == 2
    assert "no answer could be read: 1 not readable as JSON" in capsys.readouterr().err


def test_from_labels_to_a_classifier(
    corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    requests, _ = exported(corpus, "-n", "200")
    answers, hand = [], ["content_hash,score"]
    for n, request in enumerate(requests):
        content = request["body"]["messages"][0]["content"].split("---")[2]
        score = (1 if content.count("the") > 5 else 4) + n % 2
        answers.append(json.dumps(openai(request["custom_id"], f"Score: {score}")))
        hand += [f"{request['custom_id']},{score}"] if n < 60 else []
    (tmp_path / "answers.jsonl").write_text("\n".join(answers))
    (tmp_path / "hand.csv").write_text("\n".join(hand) + "\n")
    labels = str(tmp_path / "labels.parquet")
    command = ["labels", "import", str(tmp_path / "answers.jsonl"), "--output", labels]
    assert main([*command, "--batch", str(corpus.parent / "batch.jsonl")]) == 0
    assert main(["labels", "agree", labels, str(tmp_path / "hand.csv")]) == 0
    assert "60 documents labelled by both: weighted kappa 1.000" in capsys.readouterr().out
    reviewed: dict[str, float | None] = {}
    for key, score in (line.split(",") for line in hand[1:]):
        reviewed[key] = float(score)
    by_hand.append(tmp_path, "ann", "education/1", reviewed)
    assert main(["labels", "agree", labels, str(tmp_path)]) == 0
    assert "60 documents labelled by both: weighted kappa 1.000" in capsys.readouterr().out
    entry = {"corpus": str(corpus), "labels": labels}
    settings = {
        "positive": [entry | {"at_least": 4}],
        "negative": [entry | {"at_most": 2}],
        "hand": {"file": "."},  # the labels of the review
        "output": "edu.bin",
    }
    (tmp_path / "edu.yaml").write_text(json.dumps(settings))
    assert main(["classifier", "train", str(tmp_path / "edu.yaml")]) == 0
    card = read_json(tmp_path / "edu.json")
    assert card["agreement"]["documents"] == 60
    assert card["heldout"]["all"]["auc"] == 1
    assert "weighted kappa 1.000" in (tmp_path / "edu.md").read_text("utf-8")


def test_labels_of_a_corpus_are_sampled_as_its_documents_are(corpus: Path, tmp_path: Path) -> None:
    """`where` before `max_documents`, and none that is NULL."""
    every = rows_of(str(corpus), "select distinct content_hash from documents where not heldout")
    keys = [bytes.fromhex(key) for key in every["content_hash"].to_pylist()]
    labels = str(tmp_path / "labels.parquet")
    pq.write_table(pa.table({"content_hash": keys, "score": [5.0] * len(keys)}), labels)
    chinese = {"corpus": str(corpus), "where": "lang = 'zh'", "max_documents": 9}
    english = {"corpus": str(corpus), "where": "lang = 'en'"}

    def drawn(entry: dict[str, Any]) -> list[bytes]:
        settings = {"positive": [entry], "negative": [english], "output": "x.bin"}
        settings |= {"hand": {"file": "hand.csv"}}
        table, _ = examples(check(settings, ClassifierSettings, "a test"))
        return [row["content_hash"] for row in table.to_pylist() if row["good"]]

    labelled = drawn(chinese | {"labels": labels, "at_least": 3})
    assert len(labelled) == 9
    assert labelled == drawn(chinese), "the same nine of the seed"
    unclear = chinese | {"where": "nullif(lang, 'en') = 'zh'"}
    for more in ({}, {"labels": labels, "at_least": 3}):
        with pytest.raises(ConfigError, match="is NULL for 12[0-9] documents; say what is meant"):
            drawn(unclear | more)
