"""Objects of a store: whole or absent, by URL, over fsspec. The one place that tries again.

A store must know *put if absent*: of two that create the same name, one wins. S3 and GCS have it as
a conditional put; a local folder (`file://`) and fsspec's memory as exclusive creation.
"""

from __future__ import annotations

import contextlib
import errno
import os
import random
import secrets
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import fsspec
import fsspec.utils

from pipeline.config import ConfigError
from pipeline.files import replacing

T = TypeVar("T")

CREATES = ("s3", "s3a", "gs", "gcs", "file", "memory")  # protocols with put if absent
TRIES = 6  # with waits of about 0.2, 0.4, 0.8, 1.6, 3.2 seconds: S3 asks for it on 503 SlowDown
FIRST_WAIT_SECONDS = 0.2
_TRANSIENT = {
    errno.ECONNRESET, errno.ECONNREFUSED, errno.ECONNABORTED, errno.EPIPE, errno.ETIMEDOUT,
    errno.EBUSY, errno.EAGAIN,
}  # fmt: skip


def is_url(path: str) -> bool:
    return "://" in path


def require_writable(url: str) -> None:
    """Refuse a store that a corpus cannot be written to.

    Raises:
        ConfigError: it has no put if absent; names those that have.
    """
    protocol = fsspec.utils.get_protocol(url)
    if protocol not in CREATES:
        raise ConfigError(
            f"{url}: a corpus cannot be written to {protocol}://, which has no put-if-absent; "
            f"one of {', '.join(f'{p}://' for p in CREATES)}, or a local folder"
        )


def open_store(url: str) -> tuple[Any, str]:
    """The file system of a URL, and the path inside it.

    Raises:
        ConfigError: no package for this protocol; names what to install.
    """
    try:
        store, inner = fsspec.url_to_fs(url)
    except ImportError as error:
        raise ConfigError(f"{url}: {error}; `pip install 'assay[stores]'`") from None
    except ValueError as error:
        raise ConfigError(f"{url}: {error}") from None
    return store, str(inner)


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
    codes = _codes(error)
    if any(isinstance(code, int) and (code >= 500 or code in (408, 429)) for code in codes):
        return True
    if "ConditionalRequestConflict" in codes:  # S3's 409: two puts met, ask once more which won
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


# --- objects --------------------------------------------------------------------------------------


def info(url: str) -> dict[str, Any]:
    """What a store says of a file: at least its `size`.

    Raises:
        OSError: it cannot be read; or its server does not say how large it is.
    """
    store, inner = open_store(url)
    found: dict[str, Any] = retried(lambda: store.info(inner), url)
    if found["type"] == "file" and found.get("size") is None:
        remedy = "its server does not say how large it is; download it and name the local file"
        raise OSError(errno.EIO, remedy, url)
    return found


def read(url: str) -> bytes:
    store, inner = open_store(url)
    data: bytes = retried(lambda: store.cat_file(inner), url)
    return data


def exists(url: str) -> bool:
    store, inner = open_store(url)
    store.invalidate_cache()
    return bool(retried(lambda: store.exists(inner), url))


def names(url: str) -> list[str]:
    """All objects below a URL, relative to it, sorted; no temporary files of `create`."""
    store, inner = open_store(url)
    store.invalidate_cache()
    base = inner.rstrip("/") + "/"
    try:
        found = retried(lambda: store.find(inner), url)
    except FileNotFoundError:
        return []
    inside = (path.removeprefix(base) for path in found if path.startswith(base))
    return sorted(name for name in inside if not name.rpartition("/")[2].startswith("."))


def write(url: str, data: bytes) -> None:
    """Put, over what stands there."""
    store, inner = open_store(url)
    if _is_local(store):
        with replacing(Path(inner)) as temporary:
            temporary.write_bytes(data)
    else:
        retried(lambda: store.pipe_file(inner, data), url)


def create(url: str, data: bytes) -> bool:
    """Put if absent; False: another one stands there, and stays.

    A try whose answer got lost may have won: what stands is compared with `data`, so `data` must
    name its writer.
    """
    store, inner = open_store(url)

    def put() -> bool:
        try:
            if _is_local(store):
                _link(Path(inner), data)
            else:
                store.pipe_file(inner, data, mode="create")
        except FileExistsError:
            return False
        except OSError as error:
            if not _is_taken(error):
                raise
            return False
        return True

    return retried(put, url) or read(url) == data


def _is_taken(error: BaseException) -> bool:
    """412 Precondition Failed, as s3fs and gcsfs pass it on."""
    return bool(_codes(error) & {412, "412", "PreconditionFailed"})


def _codes(error: BaseException) -> set[object]:
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


def _link(path: Path, data: bytes) -> None:
    """Create a local file, whole or not at all: opened and then written, it would be there empty
    for those who look meanwhile, and for good after a kill.

    Raises:
        FileExistsError: there is one.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    attempt = path.with_name(f".{path.name}.{secrets.token_hex(6)}.tmp")
    try:
        with open(attempt, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.link(attempt, path)
    finally:
        attempt.unlink(missing_ok=True)


def upload(path: Path, url: str) -> None:
    """One put of a local file; what a kill leaves half-way stands under no name, or is never
    named."""
    store, inner = open_store(url)
    if _is_local(store):
        Path(inner).parent.mkdir(parents=True, exist_ok=True)
    retried(lambda: store.put_file(str(path), inner), url)


def download(url: str, path: Path) -> None:
    store, inner = open_store(url)
    retried(lambda: store.get_file(inner, str(path)), url)


def delete(url: str) -> None:
    store, inner = open_store(url)
    with contextlib.suppress(FileNotFoundError):
        retried(lambda: store.rm_file(inner), url)


def _is_local(store: Any) -> bool:
    return bool(getattr(store, "local_file", False))
