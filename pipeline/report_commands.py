"""`assay report`."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from pipeline.files import replacing
from pipeline.finished import reading

if TYPE_CHECKING:
    from pipeline.seeing.rules import Rules

# (mixture.yaml, corpus) -> of each source that reads it: `where`, and what `missing` says
Sources = Callable[[str, Path], Mapping[str, tuple[str, str | None]]]


def main(argv: list[str], sources: Sources) -> int:
    """`sources` is of an upper layer: what a mixture selects from a corpus."""
    parser = argparse.ArgumentParser(
        prog="assay report",
        description="What became of the input of a corpus; what the rules of a preset would drop.",
        epilog="examples:\n  assay report runs/web\n  assay report runs/web --rules gopher\n"
        "  assay report runs/web --rules gopher --overlap\n"
        '  assay report runs/web --rules --where "gopher.pass and ads.score < 0.2" '
        "--within \"lang = 'zh'\"\n"
        "  assay report runs/web --rules --mixture mixture.yaml\n"
        "  assay report runs/web --contamination\n  assay report runs/web --html report.html",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("corpus", help="folder or URL of a corpus")
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--json", action="store_true", help="the funnel as JSON")
    how.add_argument(
        "--rules",
        metavar="PRESET",
        nargs="*",
        help="documents that each rule fails, alone and given the others (default: every preset)",
    )
    what = parser.add_mutually_exclusive_group()
    what.add_argument(
        "--where", metavar="SQL", help="with --rules or --html: the parts of this predicate"
    )
    what.add_argument(
        "--mixture", metavar="FILE", help="... of the `where` of each source that reads the corpus"
    )
    parser.add_argument("--within", metavar="SQL", help="... of documents for which this is true")
    parser.add_argument(
        "--overlap",
        action="store_true",
        help="with --rules: a matrix, which share of a rule's documents each other one fails too",
    )
    how.add_argument(
        "--alarms",
        action="store_true",
        help="one phrase over few domains, one template, one text in many copies (reads all text)",
    )
    how.add_argument(
        "--contamination",
        action="store_true",
        help="evaluation items that stand in documents, and those that cannot be found",
    )
    how.add_argument(
        "--html",
        type=Path,
        metavar="FILE",
        help="write a page: funnel, rules, a histogram of each signal with its thresholds",
    )
    arguments = parser.parse_args(argv)
    if arguments.overlap and arguments.rules is None:
        parser.error("--overlap goes with --rules")
    predicates = arguments.where is not None or arguments.mixture is not None
    if (predicates or arguments.within) and arguments.rules is None and arguments.html is None:
        parser.error("--where, --mixture and --within go with --rules or --html")
    if predicates and arguments.rules:
        parser.error("the rules of presets, or those of --where or --mixture: give one of them")
    if arguments.within and arguments.html is not None and not predicates:
        parser.error("--within goes with --rules, --where or --mixture")
    from pipeline.report import funnel, say, summary
    from pipeline.seeing import contamination, page, rules
    from pipeline.seeing.alarms import alarms

    with reading(arguments.corpus) as root:
        if arguments.json:
            print(json.dumps(funnel(root), ensure_ascii=False, indent=1))
        elif arguments.rules is not None:
            shown = rules.overlap if arguments.overlap else rules.shown
            if predicates:
                print("\n".join(shown(_parts(root, arguments, sources))))
                return 0
            for preset in arguments.rules or rules.known_presets(root):
                told = shown(rules.count(root, preset, arguments.within))
                print("\n".join(told) or f"{preset}: no rules for any language of the corpus")
        elif arguments.alarms:
            print("\n".join(alarms(root)) or "no alarm")
        elif arguments.contamination:
            print("\n".join(contamination.report(root)))
        elif arguments.html is not None:
            with replacing(arguments.html) as temporary:
                found = _parts(root, arguments, sources) if predicates else []
                temporary.write_text(page.page(root, found), "utf-8")
            print(f"wrote {arguments.html}")
        else:
            say(summary(root))
    return 0


def _parts(root: Path, arguments: argparse.Namespace, sources: Sources) -> list[Rules]:
    """The parts of the predicates that are asked for, counted."""
    from pipeline.seeing import rules

    if arguments.where is not None:
        return [rules.parts(root, f"where {arguments.where}", arguments.where, arguments.within)]
    return [
        rules.parts(root, f"source {name}", where, arguments.within, null_passes=missing == "keep")
        for name, (where, missing) in sources(arguments.mixture, root).items()
    ]
