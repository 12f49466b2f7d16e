"""Settings of all tests."""

from __future__ import annotations

from hypothesis import settings

# The first example of a kernel's test compiles it: seconds, not the 200 ms that hypothesis allows.
settings.register_profile("assay", deadline=None)
settings.load_profile("assay")
