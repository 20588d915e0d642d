"""A source of facts behind a Unix socket, as the real one speaks, that tells what a test wants it to tell."""

from __future__ import annotations

import json
import socketserver
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

from tests.wallet.listings import former, honest
from wallet.psbt.listing import OutpointFacts

Tell = Callable[[dict[str, Any]], bytes]


def ok(value: object) -> bytes:
    return json.dumps({"ok": value}).encode()


def wire(facts: OutpointFacts | None = None) -> dict[str, Any]:
    """Facts (those of the honest listing) as the object that crosses the socket, of an output that `former` made."""
    told = facts or honest().facts
    assert told is not None
    made_by = None
    if told.value_sats is not None and told.script is not None:
        made_by = former(told.script, told.value_sats, told.outpoint.vout, witness=False).hex()
    return {
        "transaction": made_by,
        "outpoint": str(told.outpoint),
        "value": told.value_sats,
        "script": None if told.script is None else told.script.hex(),
        "is_unspent": told.is_unspent,
        "is_confirmed": told.is_confirmed,
        "inscriptions": None if told.inscriptions is None else list(told.inscriptions),
        "runes": None if told.runes is None else list(told.runes),
        "tip_height": told.tip_height,
        "index_height": told.index_height,
        "spent_by": None,
        "is_spent_in_block": told.is_spent_in_block,
        "item_offset": told.item_offset,
    }


class _Server(socketserver.ThreadingUnixStreamServer):
    daemon_threads = True
    block_on_close = False

    def handle_error(self, request: object, client_address: object) -> None:
        """An asker that has gone away is none."""


@contextmanager
def facts_server(path: Path, tell: Tell) -> Iterator[list[dict[str, Any]]]:
    """Answers with what `tell` makes of each request; gives the list of the requests that came."""
    came: list[dict[str, Any]] = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            came.append(request)
            body = tell(request)
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *arguments: object) -> None:
            return

        def address_string(self) -> str:
            return "unix"

    server = _Server(str(path), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield came
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
