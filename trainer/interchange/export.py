"""A checkpoint as a folder that transformers loads, with the proof that it is the same model.

    config.json, *.safetensors, tokenizer.json and tokenizer_config.json
    assay.json   the run, checkpoint and plan it is of, and the figures of the proof

The folder appears whole, after the proof held, or not at all.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch

from mixtures.plan_tokenizer import tokenizer_file
from pipeline import tokenizer
from pipeline.config import ConfigError
from pipeline.files import write_json
from pipeline.settings import Tokenizer
from trainer.data import heldout_sets
from trainer.interchange.llama import config_of, name_there
from trainer.interchange.plain import plain, plain_shape
from trainer.interchange.proof import Proof, prove, their_model
from trainer.interchange.weights import MISSING
from trainer.items import tokenize
from trainer.trained import Trained

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}
NUM_TEXTS = 16  # that the proof reads


def export(job: Trained, target: Path, dtype: str, tolerance: float) -> Proof:
    """Write the model of a checkpoint to `target`; `dtype` is that of the weights on disk.

    The proof compares fp32 sums of the weights as they are written, so that rounding to bfloat16 is
    none of it.

    Raises:
        ConfigError: `target` is taken, transformers is missing or has no such model, its tokenizer
            or its logits differ.
    """
    if target.exists():
        raise ConfigError(f"--output {target}: is there already; name another or delete it")
    try:
        import transformers
    except ImportError:
        raise ConfigError(f"assay model export: {MISSING}") from None
    plan = job.plan
    shape = plain_shape(job.run.model.shape)
    config = config_of(shape, plan.vocab_size, plan.sequence_length, plan.bos_id, plan.eos_id)
    model = plain(job.model).to(DTYPES[dtype])
    temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        with torch.device("meta"):
            auto: Any = transformers.AutoModelForCausalLM
            theirs = auto.from_config(
                transformers.AutoConfig.for_model(**config), dtype=DTYPES[dtype]
            )
        weights = {name_there(name): weight for name, weight in model.named_parameters()}
        if shape.tied:
            weights["lm_head.weight"] = weights["model.embed_tokens.weight"]
        theirs.load_state_dict(weights, assign=True)
        theirs.tie_weights()
        theirs.save_pretrained(temporary)
        texts = _texts(job)
        _save_tokenizer(tokenizer_file(plan), temporary, config, texts)
        ids = [ids[: plan.sequence_length] for _, ids in texts]
        proof = prove(model.float(), their_model(temporary), ids)
        if not proof.largest <= tolerance:
            raise ConfigError(
                f"{job.checkpoint}: not exported: {proof.told()}, above the tolerance of "
                f"{tolerance:g}; a fault of ours, unless the model is so large that sums differ by "
                "more: --tolerance"
            )
        write_json(temporary / "assay.json", _record(job, dtype, proof))
        os.replace(temporary, target)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    return proof


def _record(job: Trained, dtype: str, proof: Proof) -> dict[str, Any]:
    return {
        "run": job.folder.name,
        "checkpoint": job.checkpoint.name,
        "step": job.step,
        "plan": job.plan.fingerprint,
        "tokenizer": job.plan.tokenizer,
        "dtype": dtype,
        "proof": asdict(proof),
    }


def _texts(job: Trained) -> list[tuple[str, np.ndarray]]:
    """Held-out texts of each set in turn, with BOS where the corpus has one, and their ids."""
    sets = heldout_sets(job.run)
    items = tokenize(sets, tokenizer_file(job.plan), job.plan.bos_id)
    texts = [text for group in sets for _, text in group.documents]
    order = np.argsort([n for group in sets for n, _ in enumerate(group.documents)], kind="stable")
    found = [(texts[at], items.ids[at]) for at in order if len(items.ids[at])]
    if not found:
        raise ConfigError(f"{job.folder}: no held-out text has a token; nothing can be proved")
    return found[:NUM_TEXTS]


def _save_tokenizer(
    file: Path, folder: Path, config: dict[str, Any], texts: Sequence[tuple[str, np.ndarray]]
) -> None:
    """tokenizer.json for transformers, read back: it rebuilds some tokenizers by itself."""
    from transformers import AutoTokenizer, PreTrainedTokenizerFast

    encoder = tokenizer.load(Tokenizer(file=str(file), eos=None))
    source = folder / "source-tokenizer.json"
    source.write_bytes(encoder.json)
    fast: Any = PreTrainedTokenizerFast
    made = fast(tokenizer_file=str(source))
    for kind in ("bos", "eos"):
        if (number := config[f"{kind}_token_id"]) is not None:
            setattr(made, f"{kind}_token", made.convert_ids_to_tokens(number))
    made.save_pretrained(folder)
    source.unlink()
    read: Any = AutoTokenizer.from_pretrained(str(folder), local_files_only=True)
    before = config["bos_token_id"] is not None
    for text, ids in texts:
        theirs = read(text, add_special_tokens=False)["input_ids"]
        if theirs != ids[before:].tolist():
            at = next(
                (n for n, (a, b) in enumerate(zip(theirs, ids[before:], strict=False)) if a != b),
                min(len(theirs), len(ids) - before),
            )
            raise ConfigError(
                f"{file}: not exported: transformers makes other tokens of a held-out text, from "
                f"token {at} on; {type(read).__name__} does not read this tokenizer.json as it is"
            )
