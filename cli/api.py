"""Calls to this installation's own HTTP API, made as any client makes them, and the ports that it listens at."""

from __future__ import annotations

import errno
import http.client
import json
import socket
from typing import Any

from core.errors import BidkeeperError
from core.setting_values import HostPort
from core.settings import PLAY_MARKET, Settings


def problem(at: HostPort, variable: str) -> str | None:
    """Returns why a program could not listen at `at` now; None if it could. `variable` is the setting of its port."""
    try:
        found = socket.getaddrinfo(*at, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except OSError as error:
        return f"BIDKEEPER_HOST: {at.host} is not a host that this machine knows: {error.strerror}"
    absent = 0
    for family, kind, protocol, _, address in found:
        try:
            with socket.socket(family, kind, protocol) as probe:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                if family == socket.AF_INET6:  # as the server does: it listens separately for IPv4
                    probe.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
                probe.bind(address)
        except OSError as error:
            if error.errno not in (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT):
                return f"{variable}: {at} cannot be used: {error.strerror}"
            absent += 1  # such as localhost's ::1 where IPv6 is off: the server listens at the other addresses
    return f"BIDKEEPER_HOST: {at.host} is not an address of this machine" if absent == len(found) else None


def ports(settings: Settings) -> dict[HostPort, str]:
    """Returns the addresses of this host's server and practice market, each with the setting of its port."""
    found = {settings.server_at(index): "BIDKEEPER_PORT" for index in range(settings.server_processes)}
    return found | ({settings.simulator_at: "BIDKEEPER_SIMULATOR_PORT"} if settings.market == PLAY_MARKET else {})


PATIENCE_S = 30.0


class NoAnswer(BidkeeperError):
    """There was no answer, or it was not JSON; the message names the program and its address."""


class Unauthorized(BidkeeperError):
    """The session has ended, or the proof was not accepted."""


def ask(
    name: str,
    at: HostPort,
    method: str,
    path: str,
    body: Any = None,
    token: str = "",
    patience_s: float = PATIENCE_S,
) -> str:
    """Calls the program `name` at `at`, and returns the text of its answer.

    Raises NoAnswer without an answer, Unauthorized for status 401, and BidkeeperError with the text of any other error.
    """
    try:
        status, answer = exchanged(at, method, path, None if body is None else json.dumps(body), token, patience_s)
    except (OSError, http.client.HTTPException) as error:
        why = getattr(error, "strerror", None) or str(error) or type(error).__name__
        raise NoAnswer(f"the {name} at {at.url} does not answer: {why}") from error
    text = answer.decode(errors="replace")
    if status == 401:
        raise Unauthorized(f"{method} {path}: {_words(text) or 'the session has ended'}")
    if status >= 300:
        raise BidkeeperError(f"{method} {path}: {status} {_words(text)}")
    return text


def exchanged(
    at: HostPort, method: str, path: str, body: str | None, token: str, patience_s: float
) -> tuple[int, bytes]:
    """Returns an answer's status and the first 16 MiB of its body. Raises OSError and HTTPException."""
    connection = http.client.HTTPConnection(*at.nearby, timeout=patience_s)
    try:
        connection.request(method, path, body, {"Authorization": f"Bearer {token}"} if token else {})
        answer = connection.getresponse()
        return answer.status, answer.read(1 << 24)
    finally:
        connection.close()


def ask_json(name: str, at: HostPort, method: str, path: str, body: Any = None, **rest: Any) -> Any:
    """Calls as `ask` does, and returns the answer's JSON. Raises NoAnswer if it is not JSON."""
    text = ask(name, at, method, path, body, **rest)
    try:
        return json.loads(text)
    except ValueError as error:
        raise NoAnswer(f"the {name} at {at.url} gave an answer that is not JSON: {text[:60]!r}") from error


def _words(text: str) -> str:
    """Returns the error's text from a JSON body, or the beginning of any other body."""
    try:
        said = json.loads(text)
        parts = [said["error"], said.get("message"), *said.get("details", [])]
        return "; ".join(part for part in parts if isinstance(part, str))[:600]
    except (ValueError, TypeError, KeyError, AttributeError):
        return text[:300]
