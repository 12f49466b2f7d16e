"""`assay prepare`."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from pipeline import heap, runners
from pipeline.config import ConfigError, load
from pipeline.files import read_json
from pipeline.settings import load_corpus, without_tokenizer


def prepare(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="assay prepare",
        description="Read, measure, deduplicate and tokenize raw files into a corpus. A second "
        "call does only what is missing: new inputs, a changed setting, what a kill left undone.",
        epilog="examples:\n  assay prepare corpus.yaml\n  assay prepare corpus.yaml --estimate\n"
        "  assay prepare corpus.yaml --limit 1000 --workers 1\n"
        "  assay prepare corpus.yaml --prices prices.yaml\n"
        "  assay prepare corpus.yaml --runner portable -- --job_endpoint=host:8099\n"
        "  assay prepare corpus.yaml --runner dask -- --dask_client_address=host:8786\n\n"
        f"runners (docs/runners.md; options of Beam follow --):\n{runners.table()}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("corpus", help="corpus.yaml: inputs, tokenizer, held-out share")
    parser.add_argument(
        "--workers", type=int, default=os.cpu_count() or 1, help="processes (default: one a core)"
    )
    parser.add_argument(
        "--limit",
        type=int,
        help="only N documents of all inputs, chosen by hash, into a folder <output>-limit-N",
    )
    parser.add_argument(
        "--estimate",
        action="store_true",
        help="measure a sample and print time, disk and kept share; writes nothing",
    )
    parser.add_argument(
        "--refresh",
        action="store_true",
        help="drop what was made from input files that changed or vanished",
    )
    parser.add_argument(
        "--verify",
        action="store_true",
        help="check the bytes of every file of the corpus first; what is damaged is made again",
    )
    parser.add_argument(
        "--prices",
        type=Path,
        help="prices.yaml: of a core hour, a GPU hour, a GB and month; kept for the view `costs`",
    )
    parser.add_argument(
        "--runner", default="processes", help="where it runs, see below (default: processes)"
    )
    own, options = _split(argv)
    arguments = parser.parse_args(own)
    if arguments.workers < 1:
        parser.error(f"--workers {arguments.workers}: at least 1")
    if arguments.limit is not None and arguments.limit < 1:
        parser.error(f"--limit {arguments.limit}: at least 1")
    settings = load_corpus(arguments.corpus, tokenizer_exists=False)
    if message := without_tokenizer(arguments.corpus, settings):
        from pipeline.preconditions import refusals

        raise ConfigError("\n".join([message, *refusals(arguments.corpus, settings)]))
    runner = runners.choose(arguments.runner, arguments.workers, options, settings.output or "")
    heap.settle()  # before anything loads numpy or pyarrow
    from pipeline.prices import Prices, keep_prices

    prices = load(arguments.prices, Prices) if arguments.prices else None
    if arguments.estimate:
        from pipeline.estimate import estimate

        print(estimate(settings, arguments.workers))
        return 0
    from pipeline.accounts import empty_fields
    from pipeline.prepare import prepare as run
    from pipeline.prepare import require_documents
    from pipeline.report import say, summary

    prepared = run(settings, runner, arguments.limit, arguments.refresh, arguments.verify)
    require_documents(prepared)
    if prices is not None:
        keep_prices(prepared.root, prices)
    say(summary(prepared.root))
    for bad in prepared.manifest.get("bad_files", ()):
        say(f"failed, tried again by the next call: {bad['source']}/{bad['file']}: {bad['reason']}")
    for broken in prepared.manifest.get("broken_files", ()):
        say(
            f"broken: {broken['source']}/{broken['file']}: {broken['detail']}; some of its "
            "documents may be missing or spoilt: get the file anew, then `assay prepare --refresh`"
        )
    for source, field in empty_fields(prepared.root, settings):
        say(f"no document of source {source!r} has the field {field!r} of `keep`: misspelt?")
    for name in _orphaned_sets(prepared.root, {item.source for item in settings.inputs}):
        say(
            f"held-out set {name} stays, with its text, though its source is gone: sets are frozen "
            f"so that scores stay comparable; delete {prepared.root}/heldout.json and heldout/ to "
            "choose all sets anew"
        )
    made = ", ".join(f"{stage} {n}" for stage, n in prepared.made.items())
    done = f"made {made}" if prepared.made else "nothing to do, all stages stand"
    say(f"{done}; {prepared.seconds:.1f} s")
    return 0


def _split(argv: list[str]) -> tuple[list[str], list[str]]:
    """Our own arguments, and what follows `--`."""
    end = argv.index("--") if "--" in argv else len(argv)
    return argv[:end], argv[end + 1 :]


def _orphaned_sets(root: Path, sources: set[str]) -> list[str]:
    from pipeline import frozen

    own = frozen.chosen(read_json(root / "heldout.json")["sets"])
    return [name for name, entry in own.items() if entry["source"] not in sources]
