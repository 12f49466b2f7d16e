"""Answers of a batch API to labels: a score from 0 to 5, or the reason why there is none."""

from __future__ import annotations

import json
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from pipeline import schema
from pipeline.config import ConfigError
from pipeline.files import read_json, replacing
from pipeline.learned.batches import meta_path

LABELS = pa.schema(
    [
        ("content_hash", schema.HASH),
        ("score", pa.float32()),  # 0 to 5
        ("model", pa.string()),  # as the answer names it
        ("prompt_hash", pa.string()),
        ("input_tokens", pa.int64()),
        ("output_tokens", pa.int64()),
        ("cost", pa.float64()),  # null without prices
    ]
)
REASONS = {
    "bad_json": "not readable as JSON",
    "unknown_id": "custom_id of no request of the batch",
    "twice": "a second answer to one request",
    "failed": "the request failed, expired or was cancelled",
    "no_answer": "an answer without text",
    "no_score": "a text without a score",
    "out_of_range": "a score outside of 0 to 5",
    "missing": "requests without an answer",
}
_NUMBER = r"(-?\d+(?:\.\d+)?)"
_NAMED = re.compile(
    r"(?:score|rating|points|评分|得分|分数|总分)[\"'*_`\s]*(?:is|of|为|是)?[\s:=*_`\"'<]*"
    + _NUMBER,
    re.IGNORECASE,
)
_OF_FIVE = re.compile(_NUMBER + r"\s*(?:/\s*5\b|out of 5\b|分)", re.IGNORECASE)
_ALONE = re.compile(rf"[\s*_`]*{_NUMBER}[\s*_`.。]*")


@dataclass
class Imported:
    rows: list[dict[str, Any]] = field(default_factory=list)
    unread: Counter[str] = field(default_factory=Counter)  # reason -> how many
    examples: dict[str, str] = field(default_factory=dict)  # reason -> where the first one is


def read_score(text: str) -> float | str:
    """The score of an answer, or why there is none. The last one that is named counts: reasons may
    name points before it."""
    plain = unicodedata.normalize("NFKC", text)
    for pattern in (_NAMED, _OF_FIVE):
        found = pattern.findall(plain)
        if found:
            return _in_range(float(found[-1]))
    alone = _ALONE.fullmatch(plain)
    return _in_range(float(alone[1])) if alone else "no_score"


def _in_range(score: float) -> float | str:
    return score if 0 <= score <= 5 else "out_of_range"


def import_answers(
    files: Iterable[Path],
    batch: Path,
    output: Path,
    *,
    price_in: float | None,
    price_out: float | None,
) -> Imported:
    """Write labels.parquet of the answers to a batch; prices are for a million tokens.

    Raises:
        ConfigError: a file is not there, or no answer could be read.
    """
    requests = _requests(batch)
    meta = read_json(meta_path(batch))
    imported = Imported()
    answered: set[str] = set()
    for file in files:
        for number, line in enumerate(_lines(file), 1):
            found = _read(line, requests, answered)
            if isinstance(found, str):
                imported.unread[found] += 1
                imported.examples.setdefault(found, f"{file}, line {number}")
            else:
                imported.rows.append(found | {"prompt_hash": meta["prompt_hash"]})
    if missing := len(requests - answered):
        imported.unread["missing"] = missing
        imported.examples["missing"] = f"custom_id {min(requests - answered)}"
    if not imported.rows:
        raise ConfigError(
            "no answer could be read: "
            + "; ".join(f"{count} {REASONS[why]}" for why, count in imported.unread.items())
            + f"; is {batch} the batch that was asked?"
        )
    for row in imported.rows:
        row["cost"] = _cost(row, price_in, price_out)
    table = pa.Table.from_pylist(imported.rows, LABELS).sort_by("content_hash")
    with replacing(output) as temporary:
        pq.write_table(table, temporary)
    return imported


def _lines(file: Path) -> Iterator[str]:
    if not file.is_file():
        raise ConfigError(f"{file}: no such file")
    with open(file, encoding="utf-8", errors="replace") as lines:
        yield from (line for line in lines if line.strip())


def _requests(batch: Path) -> set[str]:
    try:
        return {str(json.loads(line)["custom_id"]) for line in _lines(batch)}
    except (ValueError, KeyError, TypeError):
        raise ConfigError(
            f"{batch} holds no requests; give the file that `assay labels export` wrote"
        ) from None


def _read(line: str, requests: set[str], answered: set[str]) -> dict[str, Any] | str:
    """A label without prompt and cost, or why there is none."""
    try:
        answer = json.loads(line)
        key = str(answer["custom_id"])
    except (ValueError, KeyError, TypeError):
        return "bad_json"
    if key not in requests:
        return "unknown_id"
    if key in answered:
        return "twice"
    answered.add(key)
    body = _body(answer)
    if body is None:
        return "failed"
    text = _text(body)
    if not text.strip():
        return "no_answer"
    score = read_score(text)
    if isinstance(score, str):
        return score
    usage = body.get("usage") if isinstance(body.get("usage"), dict) else {}
    assert isinstance(usage, dict)
    return {
        "content_hash": bytes.fromhex(key),
        "score": score,
        "model": str(body.get("model", "")),
        "input_tokens": _count(usage, "prompt_tokens", "input_tokens"),
        "output_tokens": _count(usage, "completion_tokens", "output_tokens"),
    }


def _body(answer: dict[str, Any]) -> dict[str, Any] | None:
    """What the model gave back: OpenAI's form, Anthropic's, or `{"custom_id", "text"}`."""
    result, response = answer.get("result"), answer.get("response")
    if isinstance(result, dict):
        found = result.get("message") if result.get("type") == "succeeded" else None
    elif isinstance(response, dict):
        found = response.get("body") if response.get("status_code", 200) == 200 else None
    else:
        found = answer if "text" in answer and not answer.get("error") else None
    return found if isinstance(found, dict) else None


def _text(body: dict[str, Any]) -> str:
    try:
        content = (
            body["choices"][0]["message"]["content"]
            if "choices" in body
            else body.get("content", body.get("text"))
        )
        if isinstance(content, list):
            content = "".join(part.get("text") or "" for part in content)
    except (KeyError, IndexError, TypeError, AttributeError):
        return ""
    return content if isinstance(content, str) else ""


def _count(usage: dict[str, Any], *names: str) -> int | None:
    return next((usage[name] for name in names if isinstance(usage.get(name), int)), None)


def _cost(row: dict[str, Any], price_in: float | None, price_out: float | None) -> float | None:
    tokens = row["input_tokens"], row["output_tokens"]
    if price_in is None or price_out is None or None in tokens:
        return None
    return float((tokens[0] * price_in + tokens[1] * price_out) / 1e6)
