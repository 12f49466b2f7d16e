"""Whether somebody answers at the address of a job service."""

from __future__ import annotations

import socket
from unittest import mock

import pytest

from pipeline.config import ConfigError
from pipeline.launch import _require_answer


def test_addresses_that_are_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    """gRPC takes IPv6 in brackets, and names of its own, which are left to it."""
    tried = []

    def connect(address: tuple[str, int], _: float) -> mock.Mock:
        tried.append(address)
        return mock.Mock()

    monkeypatch.setattr(socket, "create_connection", connect)
    for endpoint in ("localhost:8099", "[::1]:8099", "dns:///jobs:8099", "unix:/run/jobs"):
        _require_answer(endpoint)
    assert tried == [("localhost", 8099), ("::1", 8099)]
    with pytest.raises(ConfigError, match="--job_endpoint localhost: no job service answers there"):
        _require_answer("localhost")
