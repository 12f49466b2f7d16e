"""`assay labels`: a sample to be judged by a model, its answers, their agreement with people."""

from __future__ import annotations

import argparse
from collections import Counter
from pathlib import Path

from pipeline.amounts import counted, parse_amount
from pipeline.config import ConfigError
from pipeline.learned import rubric
from pipeline.learned.agreement import RUBRIC, agreement, scores
from pipeline.learned.answers import REASONS, import_answers
from pipeline.learned.batches import APIS, PER, export, meta_path

EXAMPLE = """examples:
  assay labels export runs/web -n 2000 --per lang,source,score --score quality.percentile \\
      --model gpt-5-mini --output batch.jsonl
  assay labels export runs/web --api vllm --model Qwen/Qwen3-8B --temperature 0 --output b.jsonl
  assay labels import answers.jsonl --batch batch.jsonl --output labels.parquet \\
      --price-in 0.25 --price-out 2
  assay labels agree labels.parquet hand.csv
  assay labels agree labels.parquet runs/web        (labels of `assay review --rubric education`)

Send batch.jsonl to the API's batch endpoint yourself (custom_id is the content hash). hand.csv has
the columns content_hash and score. Train on labels.parquet: `assay classifier train`, or look at
them in SQL: `assay attach runs/web labels.parquet --on content_hash --name edu`."""


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="assay labels",
        description="Labels of a model for a sample of documents.",
        epilog=EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    verbs = parser.add_subparsers(dest="verb", required=True)
    verb = verbs.add_parser("export", help="requests for a sample, as a batch API takes them")
    verb.add_argument("corpus", help="folder or URL of a corpus")
    verb.add_argument("--output", type=Path, required=True, help="requests to write, a .jsonl")
    verb.add_argument("-n", "--number", default="1000", help="documents (default %(default)s)")
    verb.add_argument("--where", help="predicate over its documents")
    verb.add_argument(
        "--per", default="lang,source", help="alike many of each; also score (default %(default)s)"
    )
    verb.add_argument("--score", help="SQL expression, as quality.percentile; fifths by language")
    verb.add_argument("--prompt", type=Path, help="file with {text} in it; default: our rubric")
    verb.add_argument("--model", required=True, help="name of the model that the API knows")
    verb.add_argument(
        "--api",
        choices=APIS,
        default="openai",
        help="vllm: OpenAI's form for vLLM, SGLang and hosts that want max_tokens, not "
        "max_completion_tokens (default %(default)s)",
    )
    bounds = ", ".join(f"{api.max_tokens:,} {name}" for name, api in APIS.items())
    verb.add_argument(
        "--max-tokens", help=f"of an answer, with what the model thinks (default {bounds})"
    )
    verb.add_argument(
        "--temperature", type=float, help="default: the model's own; gpt-5 refuses others"
    )
    verb.add_argument("--max-chars", default="4k", help="of a text (default %(default)s)")
    verb.add_argument("--seed", type=int, default=17, help="(default %(default)s)")
    verb.set_defaults(run=_export)
    verb = verbs.add_parser("import", help="answers to labels.parquet")
    verb.add_argument("answers", type=Path, nargs="+", help="what the batch API gave back")
    verb.add_argument("--batch", type=Path, required=True, help="the requests, as exported")
    verb.add_argument("--output", type=Path, required=True, help="labels to write, a .parquet")
    verb.add_argument("--price-in", type=float, help="of a million tokens of the requests")
    verb.add_argument("--price-out", type=float, help="of a million tokens of the answers")
    verb.set_defaults(run=_import)
    verb = verbs.add_parser("agree", help="do labels say what people say")
    verb.add_argument("labels", type=Path, help="labels.parquet")
    verb.add_argument(
        "hand",
        type=Path,
        help="Parquet, CSV or JSONL: content_hash, score; or a corpus with labels of review",
    )
    verb.add_argument("--rubric", default=RUBRIC, help="of such labels (default %(default)s)")
    verb.set_defaults(run=_agree)
    options = parser.parse_args(argv)
    options.run(options)
    return 0


def _export(options: argparse.Namespace) -> None:
    per = [name.strip() for name in options.per.split(",")]
    if unknown := [name for name in per if name not in PER]:
        raise ConfigError(f"--per {unknown[0]!r}: known: {', '.join(PER)}")
    meta = export(
        options.corpus,
        options.output,
        number=parse_amount(options.number),
        per=per,
        score=options.score,
        where=options.where,
        prompt=rubric.load(options.prompt),
        model=options.model,
        api=options.api,
        max_tokens=parse_amount(options.max_tokens) if options.max_tokens else None,
        temperature=options.temperature,
        max_chars=parse_amount(options.max_chars),
        seed=options.seed,
    )
    print(
        f"wrote {options.output}: {counted(meta['documents'], 'request')} of "
        f"{counted(len(meta['strata']), 'stratum', 'strata')}, prompt {meta['prompt_hash'][:16]}; "
        f"what they are: {meta_path(options.output)}"
    )


def _import(options: argparse.Namespace) -> None:
    if options.output.suffix != ".parquet":
        raise ConfigError(f"--output {options.output}: labels end in .parquet")
    found = import_answers(
        options.answers,
        options.batch,
        options.output,
        price_in=options.price_in,
        price_out=options.price_out,
    )
    of_score = Counter(round(row["score"]) for row in found.rows)
    print(
        f"wrote {options.output}: {counted(len(found.rows), 'label')}, "
        + ", ".join(f"{of_score[score]:,} of {score}" for score in range(6))
    )
    costs = [row["cost"] for row in found.rows if row["cost"] is not None]
    if costs:
        print(f"cost {sum(costs):.4f}, {1000 * sum(costs) / len(costs):.4f} for 1,000 labels")
    for why, count in found.unread.most_common():
        print(f"not read: {count:,}: {REASONS[why]} ({why}), first: {found.examples[why]}")


def _agree(options: argparse.Namespace) -> None:
    found = agreement(scores(options.labels), scores(options.hand, options.rubric))
    if found["documents"] < 2:
        raise ConfigError(
            f"{options.labels} and {options.hand} have {found['documents']} documents in common"
        )
    low, high = found["kappa_interval"]
    print(
        f"{found['documents']:,} documents labelled by both: weighted kappa {found['kappa']:.3f} "
        f"(95 % interval {low:.3f} to {high:.3f}), Spearman {found['spearman']:.3f}, equal in "
        f"{100 * found['equal']:.1f} %"
    )
