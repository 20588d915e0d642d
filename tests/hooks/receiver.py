"""Receivers on the loopback that keep what they are sent: an HTTP server that answers as asked, and a mail server."""

from __future__ import annotations

import ipaddress
import json
import re
import socketserver
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email import message_from_string, policy
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

LOOPBACK = (ipaddress.ip_network("127.0.0.0/8"), ipaddress.ip_network("::1"))  # localhost may mean both


@dataclass
class Got:
    """One request."""

    path: str
    headers: dict[str, str]
    body: str

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class Receiver:
    """The server's port and what it got; `behave` returns the status, or does something worse by itself (None)."""

    port: int
    got: list[Got] = field(default_factory=list)
    behave: Callable[[BaseHTTPRequestHandler, Got], int | None] = lambda handler, got: 200

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/hook?a=b"

    def until(self, count: int, seconds: float = 30) -> list[Got]:
        """Returns what it got once there are so many."""
        ends = time.monotonic() + seconds
        while len(self.got) < count:
            assert time.monotonic() < ends, f"{len(self.got)} of {count}"
            time.sleep(0.01)
        return self.got


@contextmanager
def receiver() -> Iterator[Receiver]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            length = int(self.headers["Content-Length"])
            body = self.rfile.read(length).decode()
            if len(body.encode()) < length:
                return  # its sender was killed: it is no request
            got = Got(self.path, dict(self.headers), body)
            made.got.append(got)
            status = made.behave(self, got)
            if status is not None:
                self.send_response(status)
                if 300 <= status < 400:
                    self.send_header("Location", f"http://127.0.0.1:{made.port}/elsewhere")
                self.send_header("Content-Length", "0")
                self.end_headers()

        def log_message(self, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    made = Receiver(server.server_address[1])
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield made
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@dataclass
class Mail:
    """One mail, as it arrived."""

    to: str
    subject: str
    text: str
    at_ms: int

    @property
    def code(self) -> str | None:
        found = re.match(r"[A-Z0-9]{4}-[A-Z0-9]{4}$", self.text, re.MULTILINE)
        return found and found[0]


@dataclass
class MailServer:
    """The server's address and what it got; a mail's time is by `clock_ms`. It refuses all while it `is_away`."""

    url: str
    got: list[Mail] = field(default_factory=list)
    clock_ms: Callable[[], int] = lambda: 0
    is_away: bool = False


@contextmanager
def mail_server() -> Iterator[MailServer]:
    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            self._say("220 mail.example" if not made.is_away else "421 away")
            to, data = "", None
            for raw in self.rfile:
                line = raw.decode().rstrip("\r\n")
                if data is not None and line != ".":
                    data.append(line)
                elif data is not None:
                    mail = message_from_string("\n".join(data), policy=policy.default)
                    made.got.append(Mail(to, str(mail["Subject"]), mail.get_content(), made.clock_ms()))
                    data = None
                    self._say("250 taken")
                elif line.upper() == "DATA":
                    data = []
                    self._say("354 end with a dot")
                elif line.upper() == "QUIT":
                    return self._say("221 bye")
                else:
                    to = line[9:-1] if line.upper().startswith("RCPT TO:<") else to
                    self._say("250 mail.example")
            return None

        def _say(self, text: str) -> None:
            self.wfile.write(f"{text}\r\n".encode())

    class Server(socketserver.ThreadingTCPServer):
        daemon_threads = True

    server = Server(("127.0.0.1", 0), Handler)
    made = MailServer(f"smtp://127.0.0.1:{server.server_address[1]}")
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield made
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
