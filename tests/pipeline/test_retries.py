"""What passes is tried again, after a pause; what does not is told at once."""

from __future__ import annotations

import errno

import pytest

from pipeline.retries import retried


class Throttled(OSError):
    status = 503


@pytest.mark.parametrize(
    "error", [ConnectionResetError(), TimeoutError(), Throttled(), OSError(errno.EBUSY, "SlowDown")]
)
def test_what_passes_is_tried_again(error: Exception) -> None:
    waits: list[float] = []
    answers: list[Exception | str] = [error, error, "there"]

    def call() -> str:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    assert retried(call, "s3://b/k", waits.append) == "there"
    assert [round(wait, 1) for wait in waits] == pytest.approx([0.2, 0.4], abs=0.15)


def test_what_does_not_pass_is_told_at_once() -> None:
    class NoCredentialsError(Exception):
        pass

    waits: list[float] = []

    def refused() -> None:
        raise NoCredentialsError("Unable to locate credentials")

    with pytest.raises(PermissionError, match="locate credentials; give credentials the way"):
        retried(refused, "s3://b/k", waits.append)

    def resets() -> None:
        raise ConnectionResetError("peer")

    assert waits == []
    with pytest.raises(OSError, match="6 times; call again later: 's3://b/k'"):
        retried(resets, "s3://b/k", waits.append)
    assert len(waits) == 5
