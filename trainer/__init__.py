"""From a mixture to a model and a verdict: trainer, evaluation, ablation, command line."""

import os

# Threads of torch that wait for each other sleep; GNU OpenMP would let them spin, which takes the
# core from the thread that they wait for as soon as another program wants one too. 0.4M model, 30k
# tokens, 2 cores beside one busy process: 12 to 48 s with spinning, 1 to 3 s without. OpenMP reads
# this when torch loads it, so it stands before every import of torch.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
