"""A host of pictures on the loopback that answers as it is told, also wrongly, byte by byte."""

from __future__ import annotations

import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from socketserver import BaseRequestHandler, ThreadingTCPServer

PNG = b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x08\x00\x00\x00\x08" + bytes(range(48))
GIF = b"GIF89a\x03\x00\x02\x00" + bytes(3) + b"\x2c" + bytes(14)
HTML = b"<!DOCTYPE html><script>alert(document.domain)</script>"
SVG = b'<?xml version="1.0"?>\n<svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)"/>'

Behave = Callable[[socket.socket], None]


def answer(body: bytes, media: str = "image/png", status: str = "200 OK", **headers: str) -> Behave:
    """Returns a well-behaved way to answer; `headers` stand beside, and in the place of, the usual ones."""
    named = {"Content-Type": media, "Content-Length": str(len(body))}
    named |= {name.replace("_", "-"): value for name, value in headers.items()}
    head = "".join(f"{name}: {value}\r\n" for name, value in named.items() if value)
    return lambda connection: connection.sendall(f"HTTP/1.1 {status}\r\n{head}\r\n".encode() + body)


def drip(connection: socket.socket) -> None:
    """Sends a picture's head, and then a byte now and then, for a minute."""
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: image/png\r\n\r\n" + PNG[:8])
    for _ in range(600):
        connection.sendall(b"x")
        time.sleep(0.1)


@dataclass
class Host:
    """The host's port, the paths it was asked for, and the requests themselves."""

    port: int
    behave: Behave = field(default_factory=lambda: answer(PNG))
    asked: list[str] = field(default_factory=list)
    requests: list[bytes] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/1.png"


@contextmanager
def hosting(certificate: Path | None = None) -> Iterator[Host]:
    """Answers on the loopback; with the file of a certificate and its key, by TLS."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    if certificate is not None:
        context.load_cert_chain(certificate)

    class Handler(BaseRequestHandler):
        def handle(self) -> None:
            with suppress(OSError), self.secured() as connection:
                self.answer(connection)

        def secured(self) -> socket.socket:
            connection: socket.socket = self.request
            return connection if certificate is None else context.wrap_socket(connection, server_side=True)

        def answer(self, connection: socket.socket) -> None:
            request = b""
            while b"\r\n\r\n" not in request:
                received = connection.recv(65_536)
                if not received:
                    return
                request += received
            made.requests.append(request)
            made.asked.append(request.split(b" ")[1].decode())
            made.behave(connection)

    class Server(ThreadingTCPServer):
        daemon_threads = True
        block_on_close = False
        request_queue_size = 128

    server = Server(("127.0.0.1", 0), Handler)
    made = Host(server.server_address[1])
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield made
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
