"""`bidkeeper venue probe NAME --save DIR`: a record of a venue's raw answers, for reports of changed shapes."""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from cli.arguments import inscription
from cli.doctor import doctor
from cli.doctor.database_check import DatabaseState
from cli.doctor.exchanges import Listener, masked, shown_headers
from cli.doctor.questions import ASKED, DRAFT, FIRST_INSCRIPTION, VenueAnswer, adapters_of, put, questions
from cli.doctor.venue_check import pause, secrets_of
from core.errors import BidkeeperError
from core.settings import Settings
from gateway.app import make_adapters

_README = """\
Raw answers of {venue} at {time}, asked by `bidkeeper venue probe` with reads and a draft; nothing was signed.
NN-name.head has status and headers, NN-name.body the body as it came. API keys and cookies are masked.
No address of this installation was asked about, except the holder of an inscription that was named.

"""


def add_arguments(probe: argparse.ArgumentParser) -> None:
    """Adds NAME --save DIR [--collection SLUG] [--rune TICKER] [--inscription ID]."""
    probe.add_argument("venue", choices=ASKED, metavar="NAME", help=", ".join(ASKED))
    probe.add_argument("--save", type=Path, required=True, metavar="DIR", help="a new directory")
    doctor.add_about(probe)
    probe.add_argument(
        "--inscription",
        type=inscription,
        default=FIRST_INSCRIPTION,
        metavar="ID",
        help="draft a listing of this one; nothing is signed",
    )


def run(settings: Settings, options: argparse.Namespace) -> int:
    """Returns 0 when every answer was understood, 1 otherwise; raises BidkeeperError when nothing can be asked."""
    return probe(settings, options, lambda: time.time_ns() // 1_000_000)


def probe(settings: Settings, options: argparse.Namespace, clock_ms: Callable[[], int]) -> int:
    """Runs the probe by the given clock (epoch), as `run`."""
    venue = options.venue
    about = replace(doctor.about(options, settings, DatabaseState()), inscription=options.inscription)
    adapters = make_adapters(settings)
    asked = adapters_of(venue, adapters)
    if not asked:
        raise BidkeeperError(f"BIDKEEPER_{venue.upper()}_URL is not set")
    listener = Listener(clock_ms, pause)
    for adapter in asked:
        listener.listen(adapter)
    folder = _Folder(options.save, secrets_of(settings))
    began = datetime.fromtimestamp(clock_ms() / 1000, UTC).isoformat("T", "seconds")
    folder.note(_README.format(venue=venue, time=began))
    answers = []
    with closing(listener):
        for number, question in enumerate(questions(venue, adapters, about), 1):
            answers.append(put(question, listener))
            print(folder.keep(number, answers[-1]), flush=True)
    print(f"{len(listener.heard)} calls; their answers are in {options.save}")
    return 0 if all(map(_is_clear, answers)) else 1


def _is_clear(answer: VenueAnswer) -> bool:
    """Tells whether the venue answers as expected; it may refuse to draft a listing of another owner's item."""
    if answer.outcome == "refused":
        return answer.question == DRAFT
    return answer.outcome in ("understood", "not known", "not supported")


class _Folder:
    """A new directory that only its owner can enter. Raises BidkeeperError when the path is taken."""

    def __init__(self, path: Path, secrets: list[str]) -> None:
        self._path = path
        self._secrets = secrets
        try:
            path.mkdir(mode=0o700)
        except FileExistsError:
            raise BidkeeperError(f"{path} is there already: name a directory that is not") from None
        except OSError as error:
            raise BidkeeperError(f"{path} cannot be made: {error.strerror}") from error

    def keep(self, number: int, answer: VenueAnswer) -> str:
        """Writes an answer and returns its line for the README."""
        stem = f"{number:02}-{answer.question.replace(' ', '-')}"
        exchange, outcome = answer.exchange, answer.outcome + (f": {answer.reason}" if answer.reason else "")
        if exchange is None:
            line = f"{stem}  nothing was sent; {outcome}"
        else:
            body = "" if exchange.body is None else " " + json.dumps(exchange.body, ensure_ascii=False)
            asked = f"{exchange.method} {exchange.target}{body}"
            if exchange.reply is None:
                line = f"{stem}  {asked}  no answer; {outcome}"
            else:
                reply = exchange.reply
                head = [asked, f"status {reply.status}", *shown_headers(reply.headers, self._secrets)]
                self._write(f"{stem}.head", "\n".join(head).encode() + b"\n")
                self._write(f"{stem}.body", self._without_secrets(reply.body))
                line = f"{stem}  {asked}  status {reply.status}, {len(reply.body)} bytes; {outcome}"
        line = masked(line, self._secrets)
        self.note(line + "\n")
        return line

    def note(self, text: str) -> None:
        """Adds to the README."""
        self._write("README", text.encode(), os.O_APPEND)

    def _without_secrets(self, body: bytes) -> bytes:
        for secret in self._secrets:
            body = body.replace(secret.encode(), b"[masked]")
        return body

    def _write(self, name: str, content: bytes, how: int = os.O_EXCL) -> None:
        with open(os.open(self._path / name, os.O_WRONLY | os.O_CREAT | how, 0o600), "wb") as file:  # noqa: PTH123
            file.write(content)
