"""`assay prepare` and `assay report`."""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path

from pipeline.settings import load_corpus


def prepare(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="assay prepare",
        description="Read, measure, deduplicate and tokenize raw files into a corpus. A second "
        "call does only what is missing: new inputs, a changed setting, what a kill left undone.",
        epilog="examples:\n  assay prepare corpus.yaml\n  assay prepare corpus.yaml --estimate\n"
        "  assay prepare corpus.yaml --limit 1000 --workers 1",
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
    arguments = parser.parse_args(argv)
    if arguments.workers < 1:
        parser.error(f"--workers {arguments.workers}: at least 1")
    if arguments.limit is not None and arguments.limit < 1:
        parser.error(f"--limit {arguments.limit}: at least 1")
    settings = load_corpus(arguments.corpus)
    if arguments.estimate:
        from pipeline.estimate import estimate

        print(estimate(settings, arguments.workers))
        return 0
    from pipeline.prepare import prepare as run
    from pipeline.prepare import require_documents
    from pipeline.report import summary

    prepared = run(settings, arguments.workers, arguments.limit, arguments.refresh)
    require_documents(prepared)
    print(summary(prepared.root))
    made = ", ".join(f"{stage} {n}" for stage, n in prepared.made.items())
    done = f"made {made}" if prepared.made else "nothing to do, all stages stand"
    print(f"{done}; {prepared.seconds:.1f} s")
    return 0


def report(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="assay report",
        description="What became of the input of a corpus.",
        epilog="example:\n  assay report runs/web",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("corpus", type=Path, help="folder of a corpus")
    parser.add_argument("--json", action="store_true", help="the funnel as JSON")
    arguments = parser.parse_args(argv)
    from pipeline.report import funnel, summary

    if arguments.json:
        print(json.dumps(funnel(arguments.corpus), ensure_ascii=False, indent=1))
    else:
        print(summary(arguments.corpus))
    return 0
