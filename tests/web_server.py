"""A web server on this machine, for tests: with or without ranges, and with faults."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

Fault = Callable[[str, int], int | None]  # method, number of the request -> a status, or CUT
CUT = -1  # half of the answer, then nothing


@dataclass
class Web:
    """What it serves and how; `asked` are the requests so far."""

    files: dict[str, bytes] = field(default_factory=dict)
    ranges: bool = True
    sized: bool = True
    fault: Fault = lambda method, number: None
    asked: list[tuple[str, str]] = field(default_factory=list)  # method, range
    url: str = ""


@contextmanager
def web_server() -> Iterator[Web]:
    web = Web()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_HEAD(self) -> None:
            self.answer(with_body=False)

        def do_GET(self) -> None:
            self.answer(with_body=True)

        def answer(self, with_body: bool) -> None:
            asked = self.headers.get("Range", "")
            web.asked.append((self.command, asked))
            fault = web.fault(self.command, len(web.asked))
            data = web.files.get(self.path)
            status = fault if fault and fault > 0 else 404 if data is None else 200
            if status != 200 or data is None:
                return self.head(status, 0)
            if web.ranges and (found := re.fullmatch(r"bytes=(\d+)-(\d+)", asked)):
                begin, end = int(found[1]), min(int(found[2]) + 1, len(data))
                self.head(206, end - begin, f"bytes {begin}-{end - 1}/{len(data)}")
                data = data[begin:end]
            else:
                self.head(200, len(data))
            if with_body:
                half = fault == CUT
                try:
                    self.wfile.write(data[: len(data) // 2] if half else data)
                except OSError:  # nobody reads on
                    half = True
                self.close_connection = half
            return None

        def head(self, status: int, num_bytes: int, content_range: str = "") -> None:
            self.send_response(status)
            if web.sized or status != 200:
                self.send_header("Content-Length", str(num_bytes))
            else:
                self.close_connection = True
            if content_range:
                self.send_header("Content-Range", content_range)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, *_: object) -> None:  # a reader hung up
            pass

    server = Server(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    web.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield web
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
