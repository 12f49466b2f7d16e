"""`assay advise`: learning rate and batch by published laws, for a run or for numbers."""

from __future__ import annotations

import argparse

from pipeline.amounts import parse_amount
from pipeline.config import ConfigError
from trainer.advice import advice
from trainer.flops import hidden_parameters
from trainer.settings import load_run

HELP = """\
example:
  assay advise run.yaml
  assay advise --parameters 1B --tokens 20B"""


def main(argv: list[str]) -> int:
    """Learning rate and batch by several published laws, and whether each was measured there."""
    parser = argparse.ArgumentParser(
        "assay advise",
        description=main.__doc__,
        epilog=HELP,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("settings", metavar="run.yaml", nargs="?")
    parser.add_argument("--parameters", metavar="N", help="without embeddings, as in 1B")
    parser.add_argument("--tokens", metavar="D", help="as in 20B")
    options = parser.parse_args(argv)
    given = options.parameters is not None and options.tokens is not None
    if given == (options.settings is not None):
        raise ConfigError("give run.yaml, or both --parameters and --tokens")
    if given:
        sizes = parse_amount(options.parameters), parse_amount(options.tokens)
        print("\n".join(advice(*sizes, None, None)))
        return 0
    run = load_run(options.settings)
    batch = run.batch_tokens if isinstance(run.batch_tokens, int) else run.batch_tokens[-1][1]
    size = hidden_parameters(run.model.shape)
    print("\n".join(advice(size, run.tokens, batch, run.learning_rate)))
    return 0
