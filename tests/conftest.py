"""Settings of all tests."""

from __future__ import annotations

import signal

from hypothesis import settings

# The first example of a kernel's test compiles it: seconds, not the 200 ms that hypothesis allows.
settings.register_profile("assay", deadline=None)
settings.load_profile("assay")

# A shell starts what it puts into the background with Ctrl-C ignored, and children inherit that: a
# build server may too. What is tested is what happens at a terminal.
signal.signal(signal.SIGINT, signal.default_int_handler)
