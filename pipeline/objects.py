"""Objects of a store: whole or absent, by URL, over fsspec.

A store must know *put if absent*: of two that create the same name, one wins. S3 and GCS have it as
a conditional put; a local folder (`file://`) and fsspec's memory as exclusive creation.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
from pathlib import Path
from typing import Any

import fsspec
import fsspec.utils

from pipeline.config import ConfigError
from pipeline.files import replacing
from pipeline.retries import codes, retried

CREATES = ("s3", "s3a", "gs", "gcs", "file", "memory")  # protocols with put if absent


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
    return bool(codes(error) & {412, "412", "PreconditionFailed"})


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
