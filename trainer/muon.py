"""Muon for hidden matrices and AdamW for all else, as one optimizer.

Muon (Jordan 2024) makes the update of a matrix orthogonal. The update is scaled to the size that
AdamW's has (Moonlight 2502.16982, `match_rms_adamw`), so one learning rate and weight decay serve
both. torch.optim.Muon does the work. Of a matrix that is spread over ranks it would see what
DTensor makes of a Newton-Schulz iteration in bf16, with partial sums rounded between ranks; here
each rank gathers the whole update and orthogonalises that, so that every layout takes the step of
one process. It costs that each rank does the work for all matrices, and one gather a matrix and
step.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.distributed.tensor import DTensor, Replicate

HIDDEN = "muon"  # key of a parameter group: whether it is Muon's


class Muon(torch.optim.Optimizer):
    """Parameter groups with `muon: True` hold matrices; the others go to AdamW.

    Args:
        groups: with `params`, `weight_decay` and `muon`; those of AdamW with `betas` and `eps` too.
        lr: of all groups.
        momentum: of Muon.
        fused: of AdamW.
    """

    def __init__(
        self, groups: list[dict[str, Any]], lr: float, momentum: float, fused: bool
    ) -> None:
        hidden = [g for g in groups if g[HIDDEN]]
        others = [g for g in groups if not g[HIDDEN]]
        self._muon = torch.optim.Muon(
            hidden, lr=lr, momentum=momentum, adjust_lr_fn="match_rms_adamw"
        )
        self._adamw = torch.optim.AdamW(others, lr=lr, fused=fused)
        super().__init__([*self._muon.param_groups, *self._adamw.param_groups], {"lr": lr})

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> None:  # type: ignore[override]
        assert closure is None, "the gradient is there"
        groups = self.param_groups  # load_state_dict replaces them, and `state`
        self._adamw.param_groups = [g for g in groups if not g[HIDDEN]]
        self._muon.param_groups, spread = [], []
        for group in (g for g in groups if g[HIDDEN]):
            whole = [p for p in group["params"] if not isinstance(p, DTensor)]
            spread += [(p, group) for p in group["params"] if isinstance(p, DTensor)]
            self._muon.param_groups.append({**group, "params": whole})
        for part in (self._muon, self._adamw):
            part.state = self.state
            part.step()  # type: ignore[no-untyped-call]
        for parameter, group in spread:
            if parameter.grad is not None:
                self._spread(parameter, group)

    def _spread(self, parameter: DTensor, group: dict[str, Any]) -> None:
        """The step of one matrix that is spread over ranks. Momentum and weight decay go element
        by element, so shards do; their formulas are torch.optim.Muon's."""
        gradient, state = cast(DTensor, parameter.grad), self.state[parameter]
        if "momentum_buffer" not in state:
            state["momentum_buffer"] = torch.zeros_like(gradient)
        buffer = state["momentum_buffer"]
        buffer.lerp_(gradient, 1 - group["momentum"])
        update = cast(DTensor, gradient.lerp(buffer, group["momentum"]))
        step = self._orthogonal(update.full_tensor(), group)
        whole = DTensor.from_local(
            step, update.device_mesh, [Replicate()] * update.device_mesh.ndim, run_check=False
        )
        parameter.mul_(1 - group["lr"] * group["weight_decay"])
        parameter.add_(whole.redistribute(placements=update.placements))

    @staticmethod
    def _orthogonal(update: Tensor, group: dict[str, Any]) -> Tensor:
        """What torch.optim.Muon adds to a matrix for this update."""
        matrix = nn.Parameter(torch.zeros_like(update))
        matrix.grad = update
        kept = {k: group[k] for k in ("lr", "ns_coefficients", "eps", "ns_steps", "adjust_lr_fn")}
        muon = torch.optim.Muon([matrix], weight_decay=0.0, momentum=0.0, nesterov=False, **kept)
        muon.step()  # type: ignore[no-untyped-call]
        return matrix.detach()
