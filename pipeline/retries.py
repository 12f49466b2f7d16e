"""Calls of stores that are tried again where they failed for a reason that passes."""

from __future__ import annotations

import errno
import random
import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

TRIES = 6  # with waits of about 0.2, 0.4, 0.8, 1.6, 3.2 seconds: S3 asks for it on 503 SlowDown
FIRST_WAIT_SECONDS = 0.2
_TRANSIENT = {
    errno.ECONNRESET, errno.ECONNREFUSED, errno.ECONNABORTED, errno.EPIPE, errno.ETIMEDOUT,
    errno.EBUSY, errno.EAGAIN,
}  # fmt: skip


def retried(call: Callable[[], T], what: str, wait: Callable[[float], None] = time.sleep) -> T:
    """The call, again after a pause where it failed for a reason that passes.

    Raises:
        OSError: it still fails, or for a reason that does not pass; names `what` and the remedy.
    """
    for attempt in range(TRIES):
        try:
            return call()
        except Exception as caught:
            error = _cause(caught)
            if isinstance(error, FileNotFoundError):  # an object, or the whole bucket
                raise FileNotFoundError(errno.ENOENT, str(error) or "not found", what) from None
            if is_transient(error) and attempt + 1 < TRIES:
                wait(FIRST_WAIT_SECONDS * 2**attempt * random.uniform(0.7, 1.3))
                continue
            told = _told(error, what, attempt + 1)
            if told is None:
                raise
            raise told from error
    raise AssertionError("unreachable")


def _cause(error: Exception) -> Exception:
    """fsspec says of whatever a web server answers that the file is not found."""
    cause = error.__cause__
    if isinstance(error, FileNotFoundError) and isinstance(cause, Exception):
        refused = getattr(cause, "status", None) in (401, 403)
        return cause if refused or is_transient(cause) else error
    return error


def is_transient(error: BaseException) -> bool:
    """Server errors, throttling, timeouts and broken connections pass; all else does not."""
    if isinstance(error, ConnectionError | TimeoutError):
        return True
    said = codes(error)
    if any(isinstance(code, int) and (code >= 500 or code in (408, 429)) for code in said):
        return True
    if "ConditionalRequestConflict" in said:  # S3's 409: two puts met, ask once more which won
        return True
    names = {kind.__name__ for kind in type(error).__mro__}
    if names & {"ClientConnectionError", "ClientPayloadError", "HTTPClientError"}:  # aiohttp, boto
        return True
    return isinstance(error, OSError) and error.errno in _TRANSIENT


def _told(error: Exception, what: str, tries: int) -> OSError | None:
    """The error as one that says where and what to do; None: a fault of ours, left as it is."""
    names = {kind.__name__ for kind in type(error).__mro__}
    if names & {"NoCredentialsError", "PartialCredentialsError", "DefaultCredentialsError"}:
        remedy = "give credentials the way the store's own tools take them (environment, file)"
        return PermissionError(errno.EACCES, f"{error}; {remedy}", what)
    if isinstance(error, PermissionError) or getattr(error, "status", None) in (401, 403):
        return PermissionError(errno.EACCES, f"{error}; check the credentials' rights", what)
    if is_transient(error):
        return OSError(errno.EIO, f"{error!r}, {tries} times; call again later", what)
    if isinstance(error, OSError) and error.filename is None and type(error) is OSError:
        return OSError(error.errno or errno.EIO, str(error), what)
    return None


def codes(error: BaseException) -> set[object]:
    """What a store says by number or name of why it refused; s3fs keeps that in the cause."""
    found: set[object] = set()
    for told in filter(None, (error, error.__cause__)):
        response = getattr(told, "response", None)
        if isinstance(response, dict):  # botocore
            found.add(response.get("Error", {}).get("Code"))
        for name in ("status", "code"):  # aiohttp has both, and warns of the second
            if code := getattr(told, name, None):
                found.add(code)
                break
    return found
