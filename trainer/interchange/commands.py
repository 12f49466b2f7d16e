"""`assay model`: to transformers, and from it."""

from __future__ import annotations

import argparse
from pathlib import Path

import yaml

from mixtures import heldout
from mixtures.spec import load_mixture
from pipeline.config import ConfigError
from trainer.trained import trained

TOLERANCE = 1e-3  # of two logits in fp32; a 0.4M model differs by 1e-5
HELP = """\
examples:
  assay model export runs/small --output hf/small
  assay model export runs/small --checkpoint step-00000120 --dtype bfloat16 --output hf/small
  assay model check weights/Llama-3.2-1B --mixture mixture.yaml

`export` writes what transformers loads, reads it back and compares the logits on held-out text.
`check` does the same with a Llama or Qwen to go on from, and prints the lines for run.yaml."""


def main(argv: list[str]) -> int:
    """Export a checkpoint for transformers, or check one of its models to go on from."""
    parser = argparse.ArgumentParser(
        "assay model",
        description=main.__doc__,
        epilog=HELP,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    actions = parser.add_subparsers(dest="action", required=True)
    out = actions.add_parser("export", help="a checkpoint of a run as a folder of transformers")
    out.add_argument("run", metavar="RUN", help="folder of a run")
    out.add_argument("--checkpoint", metavar="NAME", help="step-00000120; default: the newest")
    out.add_argument("--output", metavar="FOLDER", required=True)
    out.add_argument("--dtype", choices=["float32", "bfloat16"], default="float32")
    out.add_argument("--tolerance", type=float, default=TOLERANCE, help="of two logits, fp32")
    check = actions.add_parser("check", help="is a Llama or Qwen the same model here")
    check.add_argument("folder", metavar="FOLDER", help="config.json, safetensors, tokenizer.json")
    check.add_argument("--mixture", metavar="mixture.yaml", required=True, help="for held-out text")
    check.add_argument("--tolerance", type=float, default=TOLERANCE, help="of two logits, fp32")
    options = parser.parse_args(argv)
    return _export(options) if options.action == "export" else _check(options)


def _export(options: argparse.Namespace) -> int:
    from trainer.interchange.export import export

    job = trained(Path(options.run), options.checkpoint)
    target = Path(options.output)
    proof = export(job, target, options.dtype, options.tolerance)
    print(f"{target}: {job.run.model.depth} layers, {options.dtype}, of {job.checkpoint}")
    print(proof.told())
    return 0


def _check(options: argparse.Namespace) -> int:
    from trainer.interchange.check import check
    from trainer.interchange.llama import shape_in

    folder = Path(options.folder)
    shape = shape_in(folder)
    sets = heldout.evaluation_sets(load_mixture(options.mixture).corpora.values(), 200_000)
    proof = check(folder, shape, [text for group in sets for _, text in group.documents])
    print(proof.told())
    if not proof.largest <= options.tolerance:
        raise ConfigError(
            f"{folder}: not the same model here: the largest difference of two logits is above "
            f"{options.tolerance:g}; do not go on from it"
        )
    keys = yaml.safe_dump({"initial": str(folder)}, allow_unicode=True)
    print(f"the same model here; in run.yaml, in place of `model`:\n{keys}", end="")
    return 0
