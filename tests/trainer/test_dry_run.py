"""The dry run against arithmetic by hand."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from layout_jobs import settings

from pipeline.config import ConfigError
from trainer.parallel.dry_run import Use, dry_run
from trainer.parallel.layout import Layout, make_layout
from trainer.parallel.memory import OutOfMemory, enough_memory
from trainer.parallel.world import World

# Llama 2 7B (2307.09288): 6,738,415,616 parameters
SEVEN = {"width": 4096, "depth": 32, "heads": 32, "kv_heads": 32, "ffn": 11008, "tied": False}
ENDS = 2 * 32_000 * 4096 + 4096  # embedding, output layer, last norm
LAYERS = 6_738_415_616 - ENDS
SMALL = {"width": 64, "depth": 2, "heads": 4, "kv_heads": 4, "ffn": 128, "tied": False}


def test_7b_over_8_is_sixteen_bytes_a_parameter_by_eight() -> None:
    """Layers are gathered for forward and for backward, the ends once; gradients are scattered."""
    run = settings({"model": SEVEN, "parallel": {"fsdp": 8}, "precision": "fp32",
                    "micro_batch": 1, "batch_tokens": 8 * 2 * 4096})  # fmt: skip
    [use] = dry_run(run, 8, 4096, 32_000)
    assert use.parameters * 8 == LAYERS + ENDS
    assert use.weights + use.gradients + use.optimizer == 16 * (LAYERS + ENDS) // 8
    micro_batches = 2
    assert use.traffic == {"fsdp": micro_batches * 4 * (3 * LAYERS + 2 * ENDS) * 7 // 8}


def _small(ranks: int, **parallel: object) -> list[Use]:
    run = settings({"model": SMALL, "parallel": parallel, "precision": "fp32", "micro_batch": 2,
                    "batch_tokens": 64 * 64})  # fmt: skip
    return dry_run(run, ranks, 64, 512)


def test_whole_copies_send_twice_their_gradients_once_a_step() -> None:
    [use] = _small(8, replicate=8, fsdp=1)
    assert use.parameters == 2 * (4 * 64 * 64 + 3 * 64 * 128 + 2 * 64) + 2 * 512 * 64 + 64
    assert use.traffic == {"replicate": 2 * 4 * use.parameters * 7 // 8}


def test_a_pipeline_sends_the_residual_stream_and_holds_it_once_a_stage() -> None:
    first, last = _small(4, pipeline=2, fsdp=2)
    micro_batches = 64 // 2 // 2
    assert first.traffic["pipeline"] == micro_batches * 4 * 2 * 64 * 64 == last.traffic["pipeline"]
    assert (first.rank, last.rank) == (0, 2)


def test_recomputation_keeps_the_input_of_each_layer_alone() -> None:
    [whole], [little] = _small(1), _small(1, recompute=True)
    stream = 4 * 2 * 64 * 64
    assert whole.activations - little.activations > 2 * 10 * stream
    assert little.parameters == whole.parameters


@pytest.mark.parametrize(
    ("case", "ranks", "message"),
    [
        ({"fsdp": 3}, 8, "key `parallel`: pipeline 1 x replicate 1 x fsdp 3 x context 1 x tensor 1 "
         "is for 3 processes, 8 started; change a size, or start `torchrun --nproc-per-node 3"),
        ({"tensor": 8}, 8, "key `parallel.tensor`: it divides `model.heads: 4` into 8 parts, and 4 "
         "is no multiple of 8; change `parallel.tensor` or `model.heads`"),
        ({"pipeline": 4}, 4, "key `parallel.pipeline`: it divides `model.depth: 2` into 4 parts"),
        ({"context": 64}, 64, "key `parallel.context`: it divides `sequence_length: 64` into 128"),
    ],
)  # fmt: skip
def test_what_does_not_divide_names_key_value_and_remedy(
    case: dict[str, object], ranks: int, message: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        _small(ranks, **case)
    assert str(caught.value).startswith(message)


def test_ranks_count_through_the_axes_and_auto_takes_the_rest() -> None:
    run = settings({"parallel": {"replicate": 2, "tensor": 2}})
    layout = make_layout(run, 16)
    assert layout == Layout(pipeline=1, replicate=2, fsdp=4, context=1, tensor=2)
    assert layout.place(13) == Layout(pipeline=0, replicate=1, fsdp=2, context=0, tensor=1)
    assert str(layout) == "replicate 2 x fsdp 4 x tensor 2"


def test_out_of_memory_names_what_helps() -> None:
    import torch

    one = World(0, 1, torch.device("cpu"), None)
    with pytest.raises(OutOfMemory, match="out of memory on cpu with `micro_batch: 2`.*Lower"):
        with enough_memory(settings({}), one):
            torch.empty(1 << 50)
    with pytest.raises(RuntimeError, match="^shape"):
        with enough_memory(settings({}), one):
            raise RuntimeError("shape")


def test_the_command_says_whether_it_fits(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from trainer.commands import train

    path = tmp_path / "run.yaml"
    path.write_text(yaml.safe_dump({"mixture": "m.yaml", "model": SMALL, "tokens": "1M"}))
    arguments = [str(path), "--dry-run", "--ranks", "128", "--vocabulary", "512",
                 "--sequence-length", "64"]  # fmt: skip
    assert train([*arguments, "--set", "parallel={tensor: 2}"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "128 ranks; windows of 64 tokens, vocabulary 512"
    assert lines[-1].endswith("GB of 80.0 GB, 10% kept free: fits")
    assert train([*arguments, "--memory", "1MB"]) == 1
    assert "does not fit" in capsys.readouterr().out
