"""An S3 server on this machine, for tests: moto's, in a thread."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager

import pytest


@contextmanager
def s3_bucket() -> Iterator[str]:
    """The URL of an empty bucket, with the environment that lets s3fs find it."""
    server_module = pytest.importorskip("moto.server", reason="moto is not installed")
    s3fs = pytest.importorskip("s3fs", reason="s3fs is not installed: `pip install assay[stores]`")
    server = server_module.ThreadedMotoServer(port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ENDPOINT_URL", f"http://{host}:{port}")
        patch.setenv("AWS_ACCESS_KEY_ID", "test")
        patch.setenv("AWS_SECRET_ACCESS_KEY", "test")
        patch.setenv("AWS_DEFAULT_REGION", "us-east-1")
        s3fs.S3FileSystem.clear_instance_cache()
        bucket = f"bucket-{uuid.uuid4().hex}"  # all servers of a process share their state
        s3fs.S3FileSystem().mkdir(bucket)
        yield f"s3://{bucket}"
        s3fs.S3FileSystem.clear_instance_cache()
    server.stop()
