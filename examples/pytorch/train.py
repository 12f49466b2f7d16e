"""A plain PyTorch loop over windows that assay packed: `python examples/pytorch/train.py PLAN`

PLAN is what `assay mix mixture.yaml --tokens 2M --publish PLAN` wrote: a folder or a URL. The lines
that end with `# read` are what reads it: ten, to copy into a loop of your own.
"""

import sys

import torch
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader  # read

from trainer.windows import Windows  # read

windows = Windows(sys.argv[1], batch_windows=8)  # read
if len(sys.argv) > 2:  # read
    windows.load_state_dict(torch.load(sys.argv[2])["data"])  # read
model = torch.nn.Sequential(
    torch.nn.Embedding(windows.plan.vocab_size, 32), torch.nn.Linear(32, windows.plan.vocab_size)
)
optimizer = torch.optim.AdamW(model.parameters(), 1e-2)
for batch in DataLoader(windows, batch_size=None):  # read
    tokens, documents = batch["tokens"], batch["documents"]  # read
    same = documents[:, 1:] == documents[:, :-1]  # no prediction across documents  # read
    logits, targets = model(tokens[:, :-1])[same], tokens[:, 1:][same]  # read
    loss = cross_entropy(logits, targets)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    state = {"model": model.state_dict(), "data": windows.state_dict(batch)}  # read
    print(f"window {batch['position']:,}: {loss:.4f}")
torch.save(state, "checkpoint.pt")
