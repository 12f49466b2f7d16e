"""Documents to be labelled, as the requests of a batch API; a sample of all kinds of text."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from pipeline.config import ConfigError
from pipeline.files import replacing, write_json
from pipeline.finished import home
from pipeline.learned import rubric
from pipeline.learned.examples import place, rows_of, texts_of
from pipeline.predicates import predicate

SCORE_BINS = 5  # of equal size, within a language
PER = ("lang", "source", "score")
Stratum = tuple[str, ...]


class Api(NamedTuple):
    """How a request to a server looks."""

    chat: bool  # OpenAI's form of a line, else Anthropic's
    bound: str  # key of the most tokens of an answer
    max_tokens: int  # of an answer, where the user says nothing


# Chat completions of gpt-5 and the o series refuse `max_tokens`, and any `temperature` but their
# own; what they think counts for the bound too, and 300 tokens of thought leave an empty answer.
# vLLM, SGLang and hosts of open models (Together, Mistral) read `max_tokens`.
APIS = {
    "openai": Api(True, "max_completion_tokens", 4_000),
    "vllm": Api(True, "max_tokens", 300),
    "anthropic": Api(False, "max_tokens", 300),
}


def request(
    key: str,
    content: str,
    *,
    api: str,
    model: str,
    max_tokens: int | None = None,
    temperature: float | None = None,
) -> dict[str, Any]:
    """One line of a batch; nothing of sampling stands in it that was not asked for."""
    of = APIS[api]
    body: dict[str, Any] = {
        "model": model,
        "messages": [{"role": "user", "content": content}],
        of.bound: max_tokens or of.max_tokens,
    }
    if temperature is not None:
        body["temperature"] = temperature
    if not of.chat:
        return {"custom_id": key, "params": body}
    return {"custom_id": key, "method": "POST", "url": "/v1/chat/completions", "body": body}


def export(
    corpus: str,
    output: Path,
    *,
    number: int,
    per: Sequence[str],
    score: str | None,
    where: str | None,
    prompt: str,
    model: str,
    api: str,
    max_tokens: int | None,
    temperature: float | None,
    max_chars: int,
    seed: int,
) -> dict[str, Any]:
    """Write the requests, one a line, and beside them what they are (`<output>.meta.json`).

    Raises:
        ConfigError: there is nothing to sample, or no score to sample by.
    """
    if "score" in per and score is None:
        raise ConfigError("--per score needs a number to go by, as in --score quality.percentile")
    condition = predicate(where) if where else "true"
    rows = rows_of(
        corpus,
        f"select content_hash, min(lang) lang, min(source) source, "
        f"min({predicate(score) if score else 0})::double score "
        f"from documents where {condition} and not heldout group by content_hash",
    ).to_pylist()
    if not rows:
        raise ConfigError(f"{corpus}: no document where {where}; nothing to label")
    strata = _strata(rows, per)
    chosen = choose([row["content_hash"] for row in rows], strata, number, seed)
    table = texts_of(corpus, condition, sorted(chosen), max_chars)
    with replacing(output) as temporary, open(temporary, "w", encoding="utf-8") as file:
        for key, text in zip(
            table["content_hash"].to_pylist(), table["text"].to_pylist(), strict=True
        ):
            line = request(
                key.hex(),
                prompt.replace(rubric.PLACE, text),
                api=api,
                model=model,
                max_tokens=max_tokens,
                temperature=temperature,
            )
            file.write(json.dumps(line, ensure_ascii=False) + "\n")
    of_hash = dict(zip((row["content_hash"] for row in rows), strata, strict=True))
    taken = Counter(of_hash[key] for key in chosen)
    meta = {
        "corpus": home(Path(corpus)).name,
        "where": where,
        "score": score,
        "seed": seed,
        "model": model,
        "api": api,
        "max_tokens": max_tokens or APIS[api].max_tokens,
        "temperature": temperature,
        "max_chars": max_chars,
        "prompt": prompt,
        "prompt_hash": rubric.prompt_hash(prompt),
        "documents": len(chosen),
        "strata": [
            dict(zip(per, stratum, strict=True)) | {"documents": size, "sampled": taken[stratum]}
            for stratum, size in sorted(Counter(strata).items())
        ],
    }
    write_json(meta_path(output), meta)
    return meta


def meta_path(batch: Path) -> Path:
    return batch.with_name(f"{batch.name}.meta.json")


def choose(keys: Sequence[str], strata: Sequence[Stratum], number: int, seed: int) -> list[str]:
    """As many of each stratum as there are, until `number`: small ones are taken whole.

    In a stratum the order is that of the seed, so a larger sample holds the smaller ones.
    """
    ranked, seen = [], Counter[Stratum]()
    places = [place(bytes.fromhex(key), seed) for key in keys]
    for row in sorted(range(len(keys)), key=lambda row: places[row]):
        ranked.append((seen[strata[row]], places[row], keys[row]))
        seen[strata[row]] += 1
    return [key for *_, key in sorted(ranked)[:number]]


def _strata(rows: list[dict[str, Any]], per: Sequence[str]) -> list[Stratum]:
    bins = _bins(rows) if "score" in per else [""] * len(rows)
    return [
        tuple(bin_ if name == "score" else str(row[name]) for name in per)
        for row, bin_ in zip(rows, bins, strict=True)
    ]


def _bins(rows: list[dict[str, Any]]) -> list[str]:
    """The fifth of its language in which a score lies: 0 (lowest) to 4; none: a bin of its own."""
    found = ["none"] * len(rows)
    by_language: dict[str, list[int]] = {}
    for at, row in enumerate(rows):
        if row["score"] is not None:
            by_language.setdefault(str(row["lang"]), []).append(at)
    for places in by_language.values():
        scores = np.array([rows[at]["score"] for at in places])
        inner = np.quantile(scores, np.linspace(0, 1, SCORE_BINS + 1)[1:-1])
        for at, bin_ in zip(places, np.searchsorted(inner, scores, "right"), strict=True):
            found[at] = str(bin_)
    return found
