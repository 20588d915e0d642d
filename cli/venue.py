"""`bidkeeper venue probe|check`: saves a venue's raw answers for a report, or checks them with the parsers."""

from __future__ import annotations

import argparse
import json
import os
import secrets
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from decimal import Decimal
from pathlib import Path
from urllib.parse import urlsplit

from msgspec.structs import replace

from cli import probe_check
from cli.arguments import address, inscription
from cli.doctor.questions import (
    ADDRESS,
    FIRST_INSCRIPTION,
    PUBKEY,
    QUOTA_WORDS,
    VAULT,
    Exchange,
    Listener,
    VenueAnswer,
    about_of,
    add_about,
    https_of,
    pause,
    put,
    secrets_of,
)
from cli.probe_masking import Masker
from cli.probe_questions import (
    DRAFTED_AT,
    LONGEST_TEXT,
    MOST_BYTES,
    NOT_ASKED,
    NOTHING_ASKED,
    Record,
    Recorded,
    Subjects,
    dumps,
    questions,
    written,
)
from core import version
from core.errors import BidkeeperError
from core.settings import DIALECTS, VENUES, Settings, dialect_of
from gateway.app import make_adapters
from gateway.program import Adapters
from markets.base import NotFound
from markets.orders import Pair, SignInTexts
from markets.parse import Unreadable, decoded

_KEPT_HEADERS = frozenset({"content-type", "date", "age", "retry-after", "server"})
_LEAST_KEY = 12  # characters
_HEAD = 20_000  # bytes reserved for the file's own fields


def add_arguments(verb: str, parser: argparse.ArgumentParser) -> None:
    """Adds probe NAME --save FILE [...] | check FILE."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    asks = "ask a marketplace the adapters' questions and save its answers for a report"
    probe = actions.add_parser("probe", help=asks)
    probe.add_argument("venue", choices=(*VENUES, "mempool", "ord"), metavar="NAME", help=", ".join(VENUES))
    probe.add_argument("--save", type=Path, required=True, metavar="FILE", help="a new file")
    add_about(probe)
    item = "ask about this one, and at Satflow for the draft of its listing; nothing is signed"
    probe.add_argument("--inscription", type=inscription, default=FIRST_INSCRIPTION, metavar="ID", help=item)
    probe.add_argument("--bidder", type=address, metavar="ADDRESS", help="instead of the first one in the book of bids")
    probe.add_argument("--seller", type=address, metavar="ADDRESS", help="instead of the first one in the listings")
    pair, session = ("PAYMENT", "ORDINALS"), "at ord.net: open a session for these two addresses"
    session += "; you sign two texts with their wallet"
    probe.add_argument("--sign-in", nargs=2, type=address, metavar=pair, help=session)
    check = actions.add_parser("check", help="hold a saved file of venue probe against the parsers; connects nowhere")
    check.add_argument("file", type=Path, metavar="FILE", help="a file that venue probe has saved")


def run(settings: Settings, options: argparse.Namespace) -> int:
    """Runs one action. Raises BidkeeperError if no question can be asked.

    Returns 0 if every answer was understood, 1 otherwise, and 2 if a file to check is not a probe file.
    """
    if options.action == "check":
        return probe_check.run(settings, options.file)
    return probe(settings, options, lambda: time.time_ns() // 1_000_000, secrets.token_bytes(32))


def probe(settings: Settings, options: argparse.Namespace, clock_ms: Callable[[], int], salt: bytes) -> int:
    """Runs the probe at the times of `clock_ms` (epoch); `salt` decides the replacements and is never stored."""
    adapters = make_adapters(settings)
    venue = _venue(options.venue, settings, adapters)
    about = replace(about_of(options, settings.market), inscription=options.inscription)
    subjects = Subjects(about, options.bidder or "", options.seller or "")
    if options.sign_in:
        if dialect_of(venue) != "ordnet":
            raise BidkeeperError(f"{venue} needs no session for these questions: leave --sign-in out")
        subjects.pair = Pair(options.sign_in[0], "", options.sign_in[1], "")
    with _new_file(options.save) as keep:
        listener = Listener(clock_ms, pause)
        for http in https_of(venue, adapters):
            listener.listen(http)
        asked_ms, answers = clock_ms(), []
        with closing(listener):
            for question in questions(venue, adapters, subjects, listener.listen, _sign if options.sign_in else None):
                print(f"asking: {question.name}", flush=True)
                answers.append(put(question, listener))
        if not listener.heard:
            raise BidkeeperError(f"nothing was sent to {venue}: {answers[0].reason if answers else 'no question'}")
        kept = {ADDRESS, PUBKEY, VAULT, FIRST_INSCRIPTION, FIRST_INSCRIPTION[:64], about.collection, about.rune}
        hidden = [*_secrets(settings), *listener.credentials()]
        masker = Masker(salt, hidden, kept | {f"rune-{about.rune}"}, {DRAFTED_AT})
        record = masked(venue, asked_ms, subjects, answers, masker)
        if settings.satflow_rune_price:  # the unit in which this installation reads a rune's price
            record = replace(record, about={**record.about, "rune_price": settings.satflow_rune_price})
        keep(written(record))
    return _report(record, settings, options.save, answers)


def masked(venue: str, asked_ms: int, subjects: Subjects, answers: Iterable[VenueAnswer], masker: Masker) -> Record:
    """Returns the answers for the file, with everything replaced that may identify a person or a key."""
    answers = list(answers)
    for answer in answers:  # a first pass learns the ids, so that they are found in the words of earlier answers too
        for exchange in answer.exchanges:
            _recorded(exchange, masker, MOST_BYTES)
    room = MOST_BYTES - _HEAD
    kept: dict[str, tuple[Recorded, ...]] = {}
    for answer in answers:
        made = []
        for exchange in answer.exchanges:
            made.append(_recorded(exchange, masker, room))
            room -= 2 * len(made[-1].reply_body()) + 2000
        kept[answer.question] = tuple(made)
    about = {name: masker.marks(each) for name, each in subjects.named().items()}
    return Record(venue, str(version.running()), asked_ms, about, kept)


def _venue(name: str, settings: Settings, adapters: Adapters) -> str:
    """Returns the venue's name in this installation; `name` may also be a dialect's name."""
    if dialect_of(name) is None:
        if getattr(adapters, name) is None:
            raise BidkeeperError(f"BIDKEEPER_{name.upper()}_URL is not set")
        return name
    if name in adapters.markets:
        return name
    found = next((each for each in adapters.markets if dialect_of(each) == name), None)
    if found is None:
        raise BidkeeperError(settings.why_no_venue(name) or f"{name} is not set up here")
    return found


def _secrets(settings: Settings) -> Iterator[str]:
    """Yields our keys, and the long parts of the venues' URLs, because some providers put a key there."""
    yield from secrets_of(settings)
    for venue in (*DIALECTS, "mempool", "ord"):
        parts = urlsplit(settings.venue_url(venue) or "")
        yield from (each for each in (parts.password, *parts.path.split("/")) if each and len(each) >= _LEAST_KEY)


def _recorded(exchange: Exchange, masker: Masker, room: int) -> Recorded:
    params = {name: masker.value(value, name, "", exchange.params) for name, value in exchange.params.items()}
    path, body = masker.path(exchange.path), masker.value(exchange.body)
    reply = exchange.reply
    if reply is None:
        return Recorded(exchange.method, path, params, body, None, {})
    headers = {name: masker.marks(value) for name, value in reply.headers.items() if _is_kept(name)}
    made = Recorded(exchange.method, path, params, body, reply.status, headers)
    if 2 * len(reply.body) > room:
        return made
    name = exchange.path.rpartition("/")[2]
    try:
        return replace(made, answer=masker.value(decoded(reply.body), name), is_json=True)
    except Unreadable:
        return replace(made, text=_text(reply.body, name, masker))


def _text(body: bytes, name: str, masker: Masker) -> str:
    """Returns the masked text of an answer that is not valid JSON. NaN and infinity, which JSON forbids, are kept."""
    try:
        value = json.loads(body, parse_float=Decimal, parse_int=Decimal, parse_constant=Decimal)
        text = dumps(masker.value(value, name))
    except (ValueError, ArithmeticError, RecursionError):
        text = masker.text(body.decode("utf-8", "replace"))
    return text[:LONGEST_TEXT]


def _is_kept(name: str) -> bool:
    lower = name.lower()
    return lower in _KEPT_HEADERS or any(word in lower for word in QUOTA_WORDS)


def _sign(texts: SignInTexts) -> Mapping[str, str]:
    """Has the operator sign the texts with a wallet, as `bidkeeper sign-in` does."""
    signatures = {}
    for text in texts.texts:
        print(f"Sign this text with {text.address} (BIP-322):\n\n{text.message}\n")
        try:
            signatures[text.id] = input("signature (base64): ").strip()
        except EOFError:
            raise NotFound(f"{NOTHING_ASKED}: no signature was given") from None
    return signatures


def _report(record: Record, settings: Settings, path: Path, answers: list[VenueAnswer]) -> int:
    """Prints how the file's answers are understood, and where masking changed the result."""
    findings = probe_check.check(record, settings)
    code = probe_check.shown(findings)
    for answer, finding in zip(answers, findings, strict=True):
        if answer.outcome != finding.answer.outcome or len(answer.unread) != len(finding.answer.unread):
            print(
                f"NOTE {answer.question}: the venue's own answer was {answer.outcome}, the replaced one is "
                f"{finding.answer.outcome}: report this line too"
            )
    dialect = dialect_of(record.venue) or ""
    if dialect in NOT_ASKED:
        print(NOT_ASKED[dialect])
    if any(answer.outcome == "no session" for answer in answers):
        print("ord.net answers most questions only in a session: add --sign-in PAYMENT ORDINALS for those")
    print(f"saved {path}: keys, addresses, ids, texts and amounts are replaced, so you can attach it to a report")
    return code


@contextmanager
def _new_file(path: Path) -> Iterator[Callable[[bytes], object]]:
    """Creates a file that only its owner can read; yields its write function. Raises BidkeeperError if it exists."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        raise BidkeeperError(f"{path} is there already: name a file that is not") from None
    except OSError as error:
        raise BidkeeperError(f"{path} cannot be made: {error.strerror}") from error
    try:
        with open(descriptor, "wb") as file:  # noqa: PTH123
            yield file.write
    except BaseException:
        with suppress(OSError):
            path.unlink()
        raise
