"""The signer: the only process with keys. It signs only what it composed or checked itself.

Reached over a Unix socket by processes of chosen users; the manager brings grants, workers ask for signatures with
their grant's secret. Everything not named in `Signer.handle` is refused.

A process that may ask at all (by its user id) may also ask for grants, and set or loosen control states: server,
manager and workers are one user, and the kernel tells no more than that. A worker that was taken over whole could so
undo a halt or widen its grant; the ceilings (wallet/ceilings.py) hold all the same. It cannot undo the halt file,
`halt` in the signer's own directory: while that exists, no bid or listing is signed. It protects where the signer has a
user of its own.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sqlite3
import time
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, replace
from typing import TypeVar

from core.errors import PeerRefused
from core.files import is_full
from wallet import protocol
from wallet.address import AddressError, sign_in_address
from wallet.ceilings import Ceilings
from wallet.facts_client import AskFacts, FactsError
from wallet.keystore.keys import Keystore
from wallet.protocol import DISK_FULL, PolicyRefused, RequestError, SignerStatus
from wallet.psbt.listing import OutpointFacts
from wallet.signer.audit import AuditLog
from wallet.signer.authority import PEER, Answer, Authority
from wallet.signer.bids import BidSigner
from wallet.signer.challenges import ChallengeSigner
from wallet.signer.delists import DelistSigner
from wallet.signer.grants import Grants
from wallet.signer.judge import ListingJudge
from wallet.signer.ledger import Ledger
from wallet.signer.listing_terms import escrow_addresses
from wallet.signer.listings import ListingSigner
from wallet.signer.offers import OfferSigner
from wallet.signer.rooms import Rooms
from wallet.signer.withdrawals import WithdrawalSigner
from wallet.withdrawal.request import WITHDRAWAL_INTENT_DIGITS

log = logging.getLogger(__name__)

_LOOKING_UP_AT_ONCE = 4

T = TypeVar("T")
Facts = Mapping[str, OutpointFacts]
_OnFacts = tuple[Callable[[Answer], tuple[str, ...]], Callable[[Answer, Facts], Answer]]


def _steady_ms() -> int:
    return time.monotonic_ns() // 1_000_000


class Signer:
    """The signer's requests, without a socket. `keystore` None means locked, for the reason given.

    `clock` gives Unix milliseconds, `steady_ms` milliseconds that no change of the time moves. `is_short`:
    the disk has no room for more bids; `free_reserve` makes room on a full one, and tells whether it has.
    """

    def __init__(
        self,
        ledger: Ledger,
        audit: AuditLog,
        keystore: Keystore | None,
        *,
        ceilings: Ceilings,
        clock: Callable[[], int],
        steady_ms: Callable[[], int] = _steady_ms,
        rng_bytes: Callable[[int], bytes] = os.urandom,
        locked_reason: str = "",
        has_halt_file: Callable[[], bool] = lambda: False,
        is_short: Callable[[], bool] = lambda: False,
        free_reserve: Callable[[], bool] = lambda: False,
    ) -> None:
        self._ledger = ledger
        self._free_reserve = free_reserve
        self._authority = authority = Authority(
            ledger,
            audit,
            keystore,
            ceilings=ceilings,
            clock=clock,
            locked_reason=locked_reason,
            has_halt_file=has_halt_file,
            steady_ms=steady_ms,
            is_short=is_short,
        )
        grants, challenges, rooms = Grants(authority, rng_bytes), ChallengeSigner(authority), Rooms(authority)
        listings, offers, withdrawals = ListingSigner(authority), OfferSigner(authority), WithdrawalSigner(authority)
        judge = ListingJudge(authority)
        # Requests that need facts of outputs: which outputs, and the answer itself.
        self._on_facts: dict[str, _OnFacts] = {
            "judge": (judge.outpoints_to_look_up, judge.judge),
            "sign_listing": (listings.outpoints_to_look_up, listings.sign_listing),
            "sign_offer": (offers.outpoints_to_look_up, offers.sign_offer),
            "judge_withdrawal": (withdrawals.coins_to_judge, withdrawals.judge_withdrawal),
            "sign_withdrawal": (withdrawals.outpoints_to_look_up, withdrawals.sign_withdrawal),
        }
        self._operations: dict[str, Callable[[Answer], Answer]] = {
            "status": self._status,
            "addresses": self._addresses,
            "grant": grants.grant,
            "revoke_place": grants.revoke_place,
            "end_rights": grants.end_rights,
            "end_all_rights": grants.end_all_rights,
            "control": grants.control,
            "controls": grants.controls,
            "rooms": rooms.rooms,
            "rooms_under": rooms.rooms_under,
            "sign_bid": BidSigner(authority).sign_bid,
            "sign_challenge": challenges.sign_challenge,
            "sign_brake": challenges.sign_brake,
            "sign_sign_in": challenges.sign_sign_in,
            "sign_delist": DelistSigner(authority).sign_delist,
            "lowest_listing": listings.lowest_listing,
            "was_signed": self._was_signed,
        }

    def handle(self, request: Answer, facts: Facts | None = None) -> Answer:
        """Answers one request; `facts` describe the outputs (`txid:vout`) that `outpoints_to_look_up` named.

        Raises PeerRefused with the rule's tag, `bad-request` or `locked` as its code.
        """
        on_facts = self._needing_facts(request)
        if on_facts is not None:
            return self._answered(request, lambda arguments: on_facts[1](arguments, facts or {}))
        return self._answered(request, self._operation(request.get("op")))

    def outpoints_to_look_up(self, request: Answer) -> tuple[str, ...]:
        """Returns the outputs whose facts the request needs; none for most requests.

        Raises as `handle` does, for requests that would be refused whatever the facts are.
        """
        on_facts = self._needing_facts(request)
        return () if on_facts is None else self._answered(request, on_facts[0])

    def answering(self, ask_facts: AskFacts) -> Callable[[Answer], Awaitable[Answer]]:
        """Returns `handle` with facts asked in threads: bids and cancels do not wait for slow ones."""
        threads = ThreadPoolExecutor(_LOOKING_UP_AT_ONCE, thread_name_prefix="facts")

        def look_up(outpoint: str) -> OutpointFacts | None:
            try:
                return ask_facts(outpoint)
            except FactsError as error:
                log.warning("%s", error)
                return None

        async def answer(request: Answer) -> Answer:
            outpoints = self.outpoints_to_look_up(request)
            loop = asyncio.get_running_loop()
            found = await asyncio.gather(*(loop.run_in_executor(threads, look_up, each) for each in outpoints))
            known = zip(outpoints, found, strict=True)
            return self.handle(request, {outpoint: facts for outpoint, facts in known if facts is not None})

        return answer

    def _needing_facts(self, request: Answer) -> _OnFacts | None:
        name = request.get("op")
        return self._on_facts.get(name) if isinstance(name, str) else None

    def _operation(self, name: object) -> Callable[[Answer], Answer]:
        return self._operations.get(name, _denied) if isinstance(name, str) else _denied

    def _answered(self, request: Answer, operation: Callable[[Answer], T]) -> T:
        """Calls the operation with the request's arguments, and turns its errors into codes for the client.

        What a full disk has stopped is done again once, if the reserve could be freed.
        """
        arguments = dict(request)
        name = arguments.pop("op", None)
        try:
            try:
                return operation(arguments)
            except (sqlite3.Error, OSError) as error:
                if not (is_full(error) and self._free_reserve()):
                    raise
                return operation(arguments)
        except PolicyRefused as refused:
            log.warning("refused %.20s of task %.20s: %.300s", name, arguments.get("task"), refused)
            raise PeerRefused(PEER, refused.tag, refused.message, refused.highest) from None
        except (RequestError, AddressError) as error:
            log.warning("refused %.20s: %.300s", name, error)
            raise PeerRefused(PEER, "bad-request", str(error)) from None
        except (sqlite3.Error, OSError) as error:
            if not is_full(error):
                raise
            log.error("failed at %.20s: the disk of the signer's directory is full: %s", name, error)
            raise PeerRefused(PEER, DISK_FULL, "the disk of the signer's directory is full: make room") from error

    def _status(self, request: Answer) -> Answer:
        protocol.take(request)
        keystore = self._authority.keystore
        if keystore is None:
            return asdict(SignerStatus("locked", play=False, reason=self._authority.locked_reason))
        return asdict(SignerStatus("ready", play=keystore.is_play))

    def _addresses(self, request: Answer) -> Answer:
        (user,) = protocol.take(request, "user")
        secrets = self._authority.secrets_of(sign_in_address(protocol.text("user", user)))
        return asdict(replace(secrets.public, escrows=escrow_addresses(secrets, self._authority.ceilings)))

    def _was_signed(self, request: Answer) -> Answer:
        (intent,) = protocol.take(request, "intent")
        if isinstance(intent, str) and len(intent) == protocol.LISTING_INTENT_DIGITS:
            listing = protocol.hex_text("intent", intent, protocol.LISTING_INTENT_DIGITS)
            return {"signed": self._ledger.signed.listing(listing) is not None}
        if isinstance(intent, str) and len(intent) == WITHDRAWAL_INTENT_DIGITS:
            withdrawal = protocol.hex_text("intent", intent, WITHDRAWAL_INTENT_DIGITS)
            return {"signed": self._ledger.withdrawals.find(withdrawal) is not None}
        return {"signed": self._ledger.signed.bid(protocol.hex_text("intent", intent, 32)) is not None}


def _denied(request: Answer) -> Answer:
    raise PolicyRefused("default-deny", "there is no such operation")
