"""`assay shape`: what a shape comes to, and whether muP holds."""

from __future__ import annotations

import argparse

import yaml

from mixtures.commands import table
from pipeline.config import Settings, check
from trainer.model_settings import Model, spelled_out

HELP = """\
examples:
  assay shape show "{depth: 12}" --vocabulary 32768
  assay shape check-coordinates --widths 64 128 256 512"""


def main(argv: list[str]) -> int:
    """The numbers of a model's shape, and the coordinate check of muP."""
    parser = argparse.ArgumentParser(
        "assay shape",
        description=main.__doc__,
        epilog=HELP,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    verbs = parser.add_subparsers(dest="verb", required=True)
    show = verbs.add_parser("show", help="all keys of a shape, and its parameters")
    show.add_argument("model", help="as the key `model` of run.yaml: 100M, or {depth: 12}")
    show.add_argument("--vocabulary", type=int, default=32_768, help="default: 32,768")
    verb = verbs.add_parser(
        "check-coordinates",
        help="do activations grow with width, with muP and without?",
        description="Trains tiny models of several widths for a few steps and prints how much "
        "activations changed, and the slope of log size against log width: near 0 with muP.",
    )
    verb.add_argument("--widths", type=int, nargs="+", default=[64, 128, 256], metavar="WIDTH")
    verb.add_argument("--depth", type=int, default=2)
    verb.add_argument("--steps", type=int, default=4)
    verb.add_argument("--learning-rate", type=float, default=1e-2)
    options = parser.parse_args(argv)
    return _show(options) if options.verb == "show" else _check(options)


class _Asked(Settings):
    model: Model


def _show(options: argparse.Namespace) -> int:
    import torch

    from trainer.encoder_decoder import make_model
    from trainer.model import num_parameters

    model = check({"model": spelled_out(yaml.safe_load(options.model))}, _Asked, "MODEL").model
    with torch.device("meta"):
        size = num_parameters(make_model(model.shape, options.vocabulary))
    for key, value in model.model_dump().items():
        print(f"{key}: {value}")
    print(f"{size / 1e6:,.1f}M parameters with a vocabulary of {options.vocabulary:,}")
    return 0


def _check(options: argparse.Namespace) -> int:
    from trainer.coordinates import FLAT, check_coordinates

    holds = True
    for mup in (False, True):
        rows = check_coordinates(
            options.widths,
            depth=options.depth,
            mup=mup,
            num_steps=options.steps,
            learning_rate=options.learning_rate,
        )
        print("with muP" if mup else "standard parametrization")
        widths = [f"width {width}" for width in options.widths]
        lines: list[tuple[str, ...]] = [("change of", *widths, "slope")]
        lines += [
            (row.name, *(f"{size:.3f}" for size in row.sizes), f"{row.slope:+.2f}") for row in rows
        ]
        print("\n".join(table(lines)))
        flat = sum(row.flat for row in rows)
        print(f"{flat} of {len(rows)} are flat (slope within {FLAT})\n")
        holds = holds and (not mup or flat == len(rows))
    print("muP holds" if holds else "muP does not hold: try more widths, or a lower learning rate")
    return 0 if holds else 1
