"""torchtitan's trainer on windows that assay packed: its data loader, and a tiny configuration.

PLAN is what `assay mix mixture.yaml --tokens 2M --publish PLAN` wrote: a folder or a URL. README.md
says how to call it, and what was run.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torchtitan.components.dataloader import BaseDataLoader

from trainer.windows import Windows

IGNORED = -100  # torchtitan.components.loss.IGNORE_INDEX
Batch = tuple[dict[str, torch.Tensor], torch.Tensor]


class WindowsLoader(BaseDataLoader):
    """Windows of a plan as torchtitan wants them: input and positions [B, L], labels [B, L].

    Positions begin anew at each document, from which flex and varlen attention make their masks; no
    label is of another document than its input. The state is one position, the same on every rank,
    so a run goes on with any number of ranks.
    """

    @dataclass(kw_only=True, slots=True)
    class Config(BaseDataLoader.Config):
        plan: str = ""  # a folder or URL

    def __init__(
        self, config: Config, *, dp_world_size: int, dp_rank: int, seq_len: int,
        local_batch_size: int, **_: Any,
    ) -> None:  # fmt: skip
        batch_windows = local_batch_size * dp_world_size
        self.windows = Windows(config.plan, batch_windows, rank=dp_rank, ranks=dp_world_size)
        packed = self.windows.plan.sequence_length
        if packed != seq_len:
            raise ValueError(
                f"training.seq_len is {seq_len}, but the windows of {config.plan} have {packed} "
                f"tokens; pass --training.seq_len {packed}"
            )

    def __iter__(self) -> Iterator[Batch]:
        begin = self.windows.position
        for batch in self.windows:
            tokens, documents = batch["tokens"], batch["documents"]
            if batch["position"] - begin < self.windows.batch_windows:
                return  # the last batch is not full, and torchtitan's are all of one size
            begin = batch["position"]
            border = documents[:, 1:] != documents[:, :-1]
            labels = tokens[:, 1:].masked_fill(border, IGNORED)
            at = torch.arange(labels.shape[1])
            begins = torch.zeros_like(labels)
            begins[:, 1:] = at[1:] * border[:, :-1]
            positions = at - begins.cummax(dim=1).values
            yield {"input": tokens[:, :-1], "positions": positions}, labels

    def state_dict(self) -> dict[str, Any]:
        # as one string: a checkpoint of another plan has other keys, and is to be refused by name
        return {"windows": json.dumps(self.windows.state_dict())}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        if state:  # torchtitan: an empty state is one too
            self.windows.load_state_dict(json.loads(state["windows"]))


def tiny() -> Any:
    """llama3's debug model of 2,048 ids: `--module examples.torchtitan.windows --config tiny`."""
    from torchtitan.models.llama3.config_registry import llama3_debugmodel

    config = llama3_debugmodel()
    config.dataloader = WindowsLoader.Config()
    config.validator.enable = False
    config.training.disable_cuda_graphs = True
    return config
