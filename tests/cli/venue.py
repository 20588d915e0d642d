"""A venue whose answers are a test's own, over real HTTP."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Venue:
    """`answers` by path (without query): JSON, the bytes of a body, or a status that says no; else it is 404.

    A path with one part of a query (`/sales?active=false`) answers requests that have it. Bodies of posts are kept.
    """

    url: str
    answers: dict[str, Any]
    headers: Mapping[str, str] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    posted: list[Any] = field(default_factory=list)


@contextmanager
def venue(answers: Mapping[str, Any], headers: Mapping[str, str] | None = None) -> Iterator[Venue]:
    """Answers until the end of the block."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path, _, query = self.path.partition("?")
            made.asked.append(self.path)
            names = [f"{path}?{part}" for part in query.split("&")] + [path]
            found = next((made.answers[name] for name in names if name in made.answers), 404)
            status = found if isinstance(found, int) else 200
            said = {"error": "no such thing"} if isinstance(found, int) else found
            body = said if isinstance(said, bytes) else json.dumps(said).encode()
            self.send_response(status)
            for name, value in {"Content-Length": str(len(body)), **made.headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def do_POST(self) -> None:
            made.posted.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.do_GET()

        def log_message(self, format: str, *args: Any) -> None:
            """Says nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    made = Venue(f"http://127.0.0.1:{server.server_port}", dict(answers), headers or {})
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield made
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
