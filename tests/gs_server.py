"""A Google Cloud Storage on this machine, for tests: gcp-storage-emulator, with the one condition
that it does not know and corpora stand on: `ifGenerationMatch=0`, put if absent."""

from __future__ import annotations

import socket
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from typing import Any

import pytest


class Taken(Exception):
    """An object stands under this name."""


@contextmanager
def gs_bucket() -> Iterator[str]:
    """The URL of an empty bucket, with the environment that lets gcsfs find it."""
    handlers = pytest.importorskip("gcp_storage_emulator.handlers.objects")
    gcsfs = pytest.importorskip(
        "gcsfs", reason="gcsfs is not installed: `pip install assay[stores]`"
    )
    from gcp_storage_emulator import server as emulator
    from gcp_storage_emulator.storage import Storage

    lock, asked = threading.Lock(), threading.local()
    plain_insert, plain_create = handlers.insert, Storage.create_file

    def insert(request: Any, response: Any, storage: Any, *rest: Any, **more: Any) -> None:
        asked.condition = request.query.get("ifGenerationMatch") == ["0"]
        with lock:
            try:
                plain_insert(request, response, storage, *rest, **more)
            except Taken:
                response.status = HTTPStatus.PRECONDITION_FAILED

    def create_file(storage: Any, bucket: str, name: str, *rest: Any, **more: Any) -> None:
        if asked.condition and name in storage.objects.get(bucket, {}):
            raise Taken
        plain_create(storage, bucket, name, *rest, **more)

    bucket = f"bucket-{uuid.uuid4().hex}"
    with socket.socket() as bound:
        bound.bind(("", 0))
        port = bound.getsockname()[1]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Storage, "create_file", create_file)
        for _, table in emulator.HANDLERS:
            for method, handler in table.items():
                if handler is plain_insert:
                    patch.setitem(table, method, insert)
        patch.setenv("STORAGE_EMULATOR_HOST", f"http://127.0.0.1:{port}")
        gcsfs.GCSFileSystem.clear_instance_cache()
        server = emulator.create_server("127.0.0.1", port, in_memory=True, default_bucket=bucket)
        server.start()
        try:
            yield f"gs://{bucket}"
        finally:
            server.stop()
            gcsfs.GCSFileSystem.clear_instance_cache()
