"""`assay classifier`: train one, fit its percentiles, see how far a corpus has moved from them."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from filters.spread import UNITS, View
from pipeline.learned import percentiles
from pipeline.learned.adopt import adopt
from pipeline.learned.settings import load_classifier
from pipeline.learned.train import train

EXAMPLE = """examples:
  assay classifier train quality.yaml
  assay classifier edges models/quality.bin runs/web-2026-40
  assay classifier shift runs/web-2026-44 quality
  assay classifier adopt dclm.bin --positive hq --units raw --corpus runs/web-2026-40 --where "..."

quality.yaml:
  positive: [{files: "good/*.jsonl"}, {corpus: runs/web, where: "source = 'laws'"}]
  negative: [{corpus: runs/web, where: "lang in ('zh', 'en') and source = 'crawl'"}]
  output: models/quality.bin

corpus.yaml then names it: `classifiers: {quality: models/quality.bin}`, and SQL has quality.score
and quality.percentile. Several together, by rank with the maximum:
  greatest(quality.percentile, edu.percentile) >= 0.9"""


TRAIN = """quality.yaml (all keys: pipeline/learned/settings.py; paths are relative to its folder):
  positive:                            # texts of the wanted class, any number of entries
    - {files: "good/*.jsonl"}          # any format of docs/inputs.md; each file is a source
    - {files: "wiki/*.parquet", text: content, source: wiki}
    - {corpus: runs/web, where: "source = 'laws'"}
    - {corpus: runs/web, labels: labels.parquet, at_least: 3}    # of `assay labels import`
    - {corpus: runs/web, reviewed: keep, at_least: 1}            # of `assay review`, by its rubric
  negative:
    - {corpus: runs/web, where: "source = 'crawl'", max_documents: 20k}
    - {corpus: runs/web, reviewed: keep, at_most: 0}
  output: models/quality.bin
  hand: {file: hand.csv}               # needed with `labels`: content_hash, score by people
  view: {units: characters}            # or jieba, raw; fold, max_chars
  heldout: {by: source}                # or content; sources: [...]; share

example:
  assay classifier train quality.yaml

It prints accuracy with its interval on the texts held out, the share of the larger class, AUC and
calibration error, and writes models/quality.bin, its card quality.json and quality.md.

It refuses a model that is no better there than always saying the larger class; examples of which
no source or too few texts can be held out; labels that do not agree with those by hand; a predicate
that is NULL for some document. A text that stands in both classes is left out of both."""


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="assay classifier",
        description="Classifiers of text that are learnt from examples.",
        epilog=EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    verbs = parser.add_subparsers(dest="verb", required=True)
    verb = verbs.add_parser(
        "train",
        help="train a fastText model; refuse one that learnt nothing",
        description="Train a fastText model on good and bad texts, judge it on texts held out, "
        "write it with its card.",
        epilog=TRAIN,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    verb.add_argument("settings", type=Path, help="quality.yaml: docs/learned.md")
    verb.set_defaults(run=_train)
    verb = verbs.add_parser("edges", help="fit its percentiles on a corpus, once")
    verb.add_argument("model", type=Path, help="quality.bin")
    verb.add_argument("corpus", help="folder or URL of a corpus")
    verb.add_argument("--where", help="predicate over its documents")
    verb.set_defaults(run=_edges)
    verb = verbs.add_parser("shift", help="how far a corpus is from where the edges were fitted")
    verb.add_argument("corpus", help="folder or URL of a corpus that was measured with the model")
    verb.add_argument("group", help="name of the classifier in corpus.yaml; or perplexity")
    verb.add_argument("--where", help="predicate over its documents")
    verb.add_argument("--json", action="store_true", help="as JSON")
    verb.set_defaults(run=_shift)
    verb = verbs.add_parser("adopt", help="make a card for a fastText model of others")
    verb.add_argument("model", type=Path, help="a .bin or .ftz with two labels")
    verb.add_argument("--positive", required=True, help="label of the wanted class, as in hq")
    verb.add_argument("--units", choices=UNITS, default="raw", help="(default %(default)s)")
    verb.add_argument("--fold", action="store_true", help="fold width, case and traditional")
    verb.add_argument("--max-chars", type=int, default=100_000, help="(default %(default)s)")
    verb.add_argument("--corpus", required=True, help="corpus that its percentiles are taken of")
    verb.add_argument("--where", help="predicate over its documents")
    verb.set_defaults(run=_adopt)
    options = parser.parse_args(argv)
    options.run(options)
    return 0


def _train(options: argparse.Namespace) -> None:
    settings = load_classifier(options.settings)
    card = train(settings)
    found = card["heldout"]["all"]
    low, high = found["interval"]
    print(
        f"held out by {card['heldout']['by']}: {found['documents']:,} texts, accuracy "
        f"{found['accuracy']:.3f} ({low:.3f} to {high:.3f}), majority {found['majority']:.3f}, "
        f"AUC {found['auc']:.3f}, calibration error {found['calibration_error']:.3f}"
    )
    _told(Path(settings.output), card)


def _edges(options: argparse.Namespace) -> None:
    _told(options.model, percentiles.fit_classifier(options.model, options.corpus, options.where))


def _adopt(options: argparse.Namespace) -> None:
    view = View(options.units, options.fold, options.max_chars)
    _told(
        options.model, adopt(options.model, options.positive, view, options.corpus, options.where)
    )


def _shift(options: argparse.Namespace) -> None:
    found = percentiles.shifts(options.corpus, options.group, options.where)
    print(json.dumps(found, indent=1) if options.json else "\n".join(percentiles.shown(found)))


def _told(model: Path, card: dict[str, Any]) -> None:
    edges = card["edges"]
    print(
        f"percentiles of {edges['corpus']}: {edges['documents']:,} documents, "
        f"{', '.join(sorted(edges['margins']))}"
    )
    print(f"wrote {model}, its card {model.with_suffix('.json')} and {model.with_suffix('.md')}")
