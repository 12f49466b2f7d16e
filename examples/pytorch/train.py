"""A plain PyTorch loop over windows that assay packed: `python examples/pytorch/train.py PLAN`

PLAN is what `assay mix mixture.yaml --tokens 2M --publish PLAN` wrote: a folder or a URL.
"""

import sys

import torch
from torch.nn.functional import cross_entropy

from trainer.windows import Windows

windows = Windows(sys.argv[1], batch_windows=8)
model = torch.nn.Sequential(
    torch.nn.Embedding(windows.plan.vocab_size, 32), torch.nn.Linear(32, windows.plan.vocab_size)
)
optimizer = torch.optim.AdamW(model.parameters(), 1e-2)
for batch in windows:
    tokens, documents = batch["tokens"], batch["documents"]
    same = documents[:, 1:] == documents[:, :-1]  # no prediction across documents
    loss = cross_entropy(model(tokens[:, :-1])[same], tokens[:, 1:][same])
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    print(f"window {batch['position']:,}: {loss:.4f}")
torch.save({"model": model.state_dict(), "data": windows.state_dict()}, "checkpoint.pt")
