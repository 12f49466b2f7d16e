"""Compile all kernels once: processes that start together would each compile what is not there yet.

`make test` runs it before tests that run on all cores: a minute or two after a kernel has changed,
two seconds else.
"""

from __future__ import annotations

import json
import os

from filters.signals import GROUPS
from pipeline import heap

heap.settle_children()
os.environ["ASSAY_WARM"] = json.dumps({"signals": sorted(GROUPS)})

import pipeline.warm  # noqa: E402, F401 (it reads the line above)
