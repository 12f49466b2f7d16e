"""`assay dedup`: audit what deduplication did to a corpus; choose bands and rows; an index of what
was had, so that later corpora do not repeat it."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from dedup import curve
from pipeline.amounts import counted, parse_amount, parse_bytes
from pipeline.config import ConfigError, load
from pipeline.dedup_settings import Near
from pipeline.finished import reading
from pipeline.prices import Prices

EXAMPLE = """examples:
  assay dedup index runs/web-2026 --out indexes/web-2026
  assay dedup index mixture.yaml --out s3://bucket/seen    (what a mixture selects)
  assay dedup index runs/web-2027 --out indexes/web-2026 --add
  assay dedup audit runs/web
  assay dedup audit runs/web --html audit.html --documents 20000
  assay dedup audit runs/web --max-loss 0.3 --strict      (2 where a source loses more)
  assay dedup semantic runs/web                           (cosines of `assay embed`)
  assay dedup curve --threshold 0.7
  assay dedup curve --threshold 0.8 --bands 14 --rows 8   (FineWeb's)
  assay dedup plan --documents 1B --mean-bytes 3000 --prices examples/prices.yaml"""
POINTS = tuple(i / 20 for i in range(4, 21))  # of Jaccard, at which the curve is printed


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="assay dedup",
        description="Is deduplication right: recall and precision, pairs side by side, what each "
        "source loses; which bands and rows a threshold needs; and an index of what was had.",
        epilog=EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    verbs = parser.add_subparsers(dest="verb", required=True)
    verb = verbs.add_parser(
        "audit",
        help="recall, precision, pairs side by side, losses by source",
        description="A sample of texts is compared with every text, exactly; that is the truth. "
        "Exit code 0, with --strict 2 where there is a warning.",
        epilog=EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    verb.add_argument("corpus", help="folder or URL of a corpus")
    verb.add_argument(
        "--documents", type=int, default=10_000, help="texts of the sample (default %(default)s)"
    )
    verb.add_argument(
        "--seconds",
        type=float,
        default=300,
        help="then as much of the corpus as was read is the truth (default %(default)g)",
    )
    verb.add_argument(
        "--max-loss",
        type=float,
        help="warn of a source that loses more than this share (default 0.5)",
    )
    verb.add_argument("-n", type=int, default=2, help="pairs shown a band (default %(default)s)")
    verb.add_argument("--seed", type=int, default=0, help="another one, other texts")
    verb.add_argument("--strict", action="store_true", help="exit with 2 where there is a warning")
    how = verb.add_mutually_exclusive_group()
    how.add_argument("--html", type=Path, metavar="FILE", help="write a page instead")
    how.add_argument("--json", action="store_true", help="all of it as JSON, without texts")
    verb.set_defaults(run=_audit)
    verb = verbs.add_parser("semantic", help="pairs by the cosine of embeddings: which is a copy?")
    verb.add_argument("corpus", help="folder or URL of a corpus")
    verb.add_argument("--name", default="semantic", help="of the group (default %(default)s)")
    verb.add_argument(
        "--documents", type=int, default=2_000, help="texts of the sample (default %(default)s)"
    )
    verb.add_argument("-n", type=int, default=2, help="pairs shown a band (default %(default)s)")
    verb.add_argument("--seed", type=int, default=0, help="another one, other texts")
    verb.set_defaults(run=_semantic)
    verb = verbs.add_parser(
        "index",
        help="what later corpora are not to repeat, without its text",
        description="Write an index of the documents of a corpus, or of those that a mixture "
        "selects: hashes and no text, in a folder of its own. With `not_in: [FOLDER]` a mixture "
        "leaves out their copies, near ones verified: what stays is what would stay beside the "
        "documents themselves.",
        epilog=EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    verb.add_argument("what", help="folder or URL of a corpus, or mixture.yaml")
    verb.add_argument("--out", required=True, metavar="FOLDER", help="folder or URL to write")
    verb.add_argument("--add", action="store_true", help="to the index that stands there")
    verb.set_defaults(run=_index)
    verb = verbs.add_parser("curve", help="bands and rows for a threshold, and their curve")
    verb.add_argument("--threshold", type=float, default=0.8, help="Jaccard (default %(default)s)")
    verb.add_argument(
        "--permutations", type=int, default=128, help="values of a signature (default %(default)s)"
    )
    verb.add_argument(
        "--recall",
        type=float,
        default=curve.RECALL,
        help="of pairs at the threshold (default %(default)s)",
    )
    verb.add_argument("--bands", type=int, help="show these instead, with --rows")
    verb.add_argument("--rows", type=int)
    verb.set_defaults(run=_curve)
    verb = verbs.add_parser(
        "plan",
        help="what near duplicates of so many documents would take: cores, bytes, cost",
        description="Workers, CPU hours, bytes and cost of near deduplication, from rates that "
        "were measured and are printed with it; what is beyond 10 million documents is worked out.",
        epilog=EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    verb.add_argument("--documents", required=True, help="how many: 500k, 1B")
    verb.add_argument("--mean-bytes", type=float, default=3_000, help="default %(default)s")
    verb.add_argument("--workers", type=int, help="cores (default: as many as end in a day)")
    verb.add_argument("--shard-bytes", help="as in corpus.yaml (default: proposed)")
    verb.add_argument("--prices", type=Path, metavar="FILE", help="pipeline/prices.py has the keys")
    verb.set_defaults(run=_plan)
    options = parser.parse_args(argv)
    if options.verb == "curve":
        if not 0 < options.threshold <= 1:
            parser.error(f"--threshold {options.threshold}: above 0, at most 1")
        if not 0 < options.recall < 1:
            parser.error(f"--recall {options.recall}: between 0 and 1")
        if (options.bands is None) != (options.rows is None):
            parser.error("--bands and --rows go together")
    elif options.verb == "audit" and options.documents < 1:
        parser.error(f"--documents {options.documents}: at least 1")
    if options.verb == "semantic" and options.n < 0:
        parser.error(f"-n {options.n}: at least 0")
    code: int = options.run(options)
    return code


def _audit(options: argparse.Namespace) -> int:
    from pipeline.auditing import shown  # loads numba: not for a curve
    from pipeline.auditing.audit import audit
    from pipeline.auditing.losses import MAX_LOSS
    from pipeline.files import replacing

    with reading(options.corpus) as root:
        found = audit(
            root,
            documents=options.documents,
            seconds=options.seconds,
            max_loss=MAX_LOSS if options.max_loss is None else options.max_loss,
            shown=options.n,
            seed=options.seed,
        )
    if options.json:
        print(json.dumps(shown.as_json(found), ensure_ascii=False, indent=1))
    elif options.html is not None:
        with replacing(options.html) as temporary:
            temporary.write_text(shown.page(found), "utf-8")
        print("\n".join([*shown.figures(found), *shown.alarms(found), f"wrote {options.html}"]))
    else:
        print("\n".join(shown.told(found)))
    return 2 if options.strict and (found.warnings or found.wrong) else 0


def _semantic(options: argparse.Namespace) -> int:
    from pipeline.auditing.semantic import neighbours, told

    with reading(options.corpus) as root:
        found = neighbours(root, options.name, options.documents, options.seed)
        print("\n".join(told(root, found, options.name, options.n)))
    return 0


def _index(options: argparse.Namespace) -> int:
    from mixtures.indexing import index  # loads numba

    made = index(options.what, options.out, options.add)
    documents = sum(group.documents for group in made.groups)
    num_bytes = sum(entry["bytes"] for entry in made.files.values())
    text_bytes = sum(group.text_bytes for group in made.groups)
    print(
        f"wrote {options.out}: {counted(documents, 'document')} of "
        f"{counted(len(made.groups), 'corpus', 'corpora')} of {text_bytes / 1e6:,.1f} MB, now "
        f"{num_bytes / 1e6:,.1f} MB; in mixture.yaml: not_in: [{options.out}]"
    )
    return 0


def _plan(options: argparse.Namespace) -> int:
    from pipeline.auditing.plan import plan, told  # loads numba

    if options.mean_bytes <= 0 or (options.workers is not None and options.workers < 1):
        raise ConfigError("--mean-bytes is above 0, --workers at least 1")
    found = plan(
        parse_amount(options.documents),
        options.mean_bytes,
        Near(),
        parse_bytes(options.shard_bytes) if options.shard_bytes else None,
        options.workers,
    )
    prices = None if options.prices is None else load(options.prices, Prices)
    print("\n".join(told(found, prices)))
    return 0


def _curve(options: argparse.Namespace) -> int:
    bands, rows = options.bands, options.rows
    if bands is None:
        bands, rows = curve.choose(options.threshold, options.permutations, options.recall)
    at = curve.collision_probability(options.threshold, bands, rows)
    print(
        f"{bands} bands of {rows} rows, {bands * rows} of {options.permutations} values: a pair at "
        f"{options.threshold:g} is proposed with probability {at:.4f}; the curve rises around "
        f"{curve.turning_point(bands, rows):.3f}\n\nJaccard  proposed"
    )
    for point in POINTS:
        chance = curve.collision_probability(point, bands, rows)
        bar = "#" * round(50 * chance) + "  <- threshold" * (point == options.threshold)
        print(f"   {point:.2f}  {chance:8.5f}  {bar}".rstrip())
    near = f"{{threshold: {options.threshold:g}, bands: {bands}, rows: {rows}}}"
    print(f"\nin corpus.yaml: near: {near}")
    return 0
