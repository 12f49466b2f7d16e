"""`assay perplexity`: models of a language's characters, trained on the spot; their percentiles."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from filters.spread import UNITS, View
from pipeline.amounts import parse_amount
from pipeline.config import ConfigError
from pipeline.learned.language_models import adopt, fit_edges, train

EXAMPLE = """examples:
  assay perplexity train runs/web --where "source in ('laws', 'books')" --output models/lm.npz
  assay perplexity edges models/lm.npz runs/web-2026-40
  assay perplexity adopt zh=zh.arpa en=en.bin --corpus runs/web-2026-40 --output models/kenlm.npz

corpus.yaml then names it: `perplexity: models/lm.npz`, and SQL has perplexity.bits, .percentile and
.bucket (head, middle, tail). How far a later corpus has moved: `assay classifier shift CORPUS
perplexity`."""


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="assay perplexity",
        description="How expected a text is to a model of good text.",
        epilog=EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    verbs = parser.add_subparsers(dest="verb", required=True)
    verb = verbs.add_parser("train", help="train on documents of a corpus: seconds for 10 MB")
    verb.add_argument("corpus", help="folder or URL of a corpus")
    verb.add_argument("--where", help="predicate over its documents: what is good text")
    verb.add_argument("--languages", default="zh,en", help="(default %(default)s)")
    verb.add_argument("--output", type=Path, required=True, help="models to write, a .npz")
    verb.add_argument("--order", type=int, default=5, help="characters of an n-gram (default 5)")
    verb.add_argument("--chars", default="5M", help="to read of a language (default %(default)s)")
    verb.add_argument(
        "--max-chars", default="10k", help="to read of a document, here and later (default 10k)"
    )
    verb.set_defaults(run=_train)
    verb = verbs.add_parser("edges", help="fit its percentiles on a corpus, once")
    verb.add_argument("model", type=Path, help="lm.npz")
    verb.add_argument("corpus", help="folder or URL of a corpus")
    verb.add_argument("--where", help="predicate over its documents")
    verb.set_defaults(run=_edges)
    verb = verbs.add_parser("adopt", help="take in KenLM models, one of a language")
    verb.add_argument("models", nargs="+", metavar="LANGUAGE=FILE", help="as zh=zh.arpa")
    verb.add_argument("--units", choices=UNITS, default="characters", help="(default %(default)s)")
    verb.add_argument("--fold", action="store_true", help="fold width, case and traditional")
    verb.add_argument("--max-chars", default="10k", help="to read of a document (default 10k)")
    verb.add_argument("--corpus", required=True, help="corpus that its percentiles are taken of")
    verb.add_argument("--where", help="predicate over its documents")
    verb.add_argument("--output", type=Path, required=True, help="a .npz; its card names the files")
    verb.set_defaults(run=_adopt)
    options = parser.parse_args(argv)
    options.run(options)
    return 0


def _train(options: argparse.Namespace) -> None:
    _ends_in_npz(options.output)
    if not 1 <= options.order <= 8:
        raise ConfigError(f"--order {options.order}: expected 1 to 8")
    card = train(
        options.corpus,
        options.where,
        [name.strip() for name in options.languages.split(",")],
        options.output,
        order=options.order,
        num_chars=parse_amount(options.chars),
        max_chars=parse_amount(options.max_chars),
    )
    for language, of_it in card["languages"].items():
        print(
            f"{language}: {of_it['documents']:,} documents, {of_it['characters']:,} characters; "
            f"{of_it['bits']:.3f} bits a character of texts held aside"
        )
    _told(options.output, card)


def _edges(options: argparse.Namespace) -> None:
    _told(options.model, fit_edges(options.model, options.corpus, options.where))


def _adopt(options: argparse.Namespace) -> None:
    pairs = [named.partition("=") for named in options.models]
    if wrong := [language for language, _, file in pairs if not file]:
        raise ConfigError(f"{wrong[0]!r}: expected LANGUAGE=FILE, as zh=models/zh.arpa")
    _ends_in_npz(options.output)
    view = View(options.units, options.fold, parse_amount(options.max_chars))
    files = {language: Path(file) for language, _, file in pairs}
    _told(options.output, adopt(files, options.output, options.corpus, options.where, view))


def _ends_in_npz(output: Path) -> None:
    if output.suffix != ".npz":
        raise ConfigError(f"--output {output}: models end in .npz")


def _told(model: Path, card: dict[str, Any]) -> None:
    edges = card["edges"]
    print(
        f"percentiles of {edges['corpus']}: {edges['documents']:,} documents, "
        f"{', '.join(sorted(edges['bits']))}"
    )
    print(f"wrote {model} and its card {model.with_suffix('.json')}")
