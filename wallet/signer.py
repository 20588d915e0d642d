"""The signer: the only process with keys. It signs what it composed or checked itself, under a live grant.

Reached over a Unix socket by processes of chosen users; the manager brings grants, workers ask for signatures with
their grant's secret. Everything not named in `Signer.handle` is refused.

Who may ask at all (a user id) may also ask for grants and set control states, loosen them too: server, manager and
workers are one user, and the kernel tells no more than that. A worker that was taken over whole could so undo a halt
or widen its grant; the ceilings (wallet/ceilings.py) hold all the same. What it cannot undo is the halt file, `halt`
in the signer's own directory: while that is there, whoever made it, no bid or listing is signed. It is a safeguard
where the signer has a user of its own.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from typing import TypeVar

from core.errors import PeerRefused
from wallet import protocol
from wallet.address import AddressError, sign_in_address
from wallet.audit import AuditLog
from wallet.authority import LOCKED, PEER, Answer, Authority
from wallet.ceilings import Ceilings
from wallet.facts import Facts, FactsError
from wallet.grants import Grants
from wallet.keys import Keystore
from wallet.ledger import Ledger
from wallet.policy import Refused
from wallet.protocol import RequestError, SignerStatus
from wallet.psbt_listing import OutpointFacts
from wallet.sign_bids import BidSigner
from wallet.sign_listings import ListingSigner
from wallet.sign_messages import ChallengeSigner

__all__ = ["LOCKED", "PEER", "Answer", "Signer"]

log = logging.getLogger(__name__)

_LOOKING_UP_AT_ONCE = 4

T = TypeVar("T")


class Signer:
    """Answers requests; holds no socket. `keystore` None means locked, for the reason given.

    `clock` gives Unix milliseconds.
    """

    def __init__(
        self,
        ledger: Ledger,
        audit: AuditLog,
        keystore: Keystore | None,
        *,
        ceilings: Ceilings,
        clock: Callable[[], int],
        rng_bytes: Callable[[int], bytes] = os.urandom,
        locked_reason: str = "",
        has_halt_file: Callable[[], bool] = lambda: False,
    ) -> None:
        self._ledger = ledger
        self._authority = authority = Authority(
            ledger,
            audit,
            keystore,
            ceilings=ceilings,
            clock=clock,
            locked_reason=locked_reason,
            has_halt_file=has_halt_file,
        )
        grants, self._listings = Grants(authority, rng_bytes), ListingSigner(authority)
        self._operations: dict[str, Callable[[Answer], Answer]] = {
            "status": self._status,
            "addresses": self._addresses,
            "grant": grants.grant,
            "revoke_place": grants.revoke_place,
            "withdraw": grants.withdraw,
            "control": grants.control,
            "controls": grants.controls,
            "sign_bid": BidSigner(authority).sign_bid,
            "sign_challenge": ChallengeSigner(authority).sign_challenge,
            "lowest_listing": self._listings.lowest_listing,
            "was_signed": self._was_signed,
        }

    def handle(self, request: Answer, facts: OutpointFacts | None = None) -> Answer:
        """Answers one request; `facts` are of the output that `outpoint_to_look_up` named.

        Raises PeerRefused with the rule's tag, `bad-request` or `locked` as its code.
        """
        if request.get("op") == "sign_listing":
            return _answered(request, lambda arguments: self._listings.sign_listing(arguments, facts))
        return _answered(request, self._operation(request.get("op")))

    def outpoint_to_look_up(self, request: Answer) -> str | None:
        """The output that facts are needed of before the request is handled; None for all that needs none.

        Raises as `handle` does, for requests that would be refused whatever the facts are.
        """
        if request.get("op") != "sign_listing":
            return None
        return _answered(request, self._listings.outpoint_to_look_up)

    def answering(self, facts: Facts) -> Callable[[Answer], Awaitable[Answer]]:
        """As `handle`, with `facts` asked in a thread: however slow they are, bids and cancels do not wait for them."""
        threads = ThreadPoolExecutor(_LOOKING_UP_AT_ONCE, thread_name_prefix="facts")

        async def answer(request: Answer) -> Answer:
            outpoint = self.outpoint_to_look_up(request)
            found = None
            if outpoint is not None:
                try:
                    found = await asyncio.get_running_loop().run_in_executor(threads, facts, outpoint)
                except FactsError as error:
                    log.warning("%s", error)
            return self.handle(request, found)

        return answer

    def _operation(self, name: object) -> Callable[[Answer], Answer]:
        return self._operations.get(name, _denied) if isinstance(name, str) else _denied

    def _status(self, request: Answer) -> Answer:
        protocol.take(request)
        keystore = self._authority.keystore
        if keystore is None:
            return asdict(SignerStatus("locked", play=False, reason=self._authority.locked_reason))
        return asdict(SignerStatus("ready", play=keystore.is_play))

    def _addresses(self, request: Answer) -> Answer:
        (user,) = protocol.take(request, "user")
        user = sign_in_address(protocol.text("user", user))
        return asdict(self._authority.unlocked().secrets_of(user).public)

    def _was_signed(self, request: Answer) -> Answer:
        (intent,) = protocol.take(request, "intent")
        if isinstance(intent, str) and len(intent) == protocol.LISTING_INTENT_DIGITS:
            listing = protocol.hex_text("intent", intent, protocol.LISTING_INTENT_DIGITS)
            return {"signed": self._ledger.signed.listing(listing) is not None}
        return {"signed": self._ledger.signed.bid(protocol.hex_text("intent", intent, 32)) is not None}


def _answered(request: Answer, operation: Callable[[Answer], T]) -> T:
    """Calls it with the request's arguments, and turns what it raises into what is said to the asker."""
    arguments = dict(request)
    name = arguments.pop("op", None)
    try:
        return operation(arguments)
    except Refused as refused:
        log.warning("refused %.20s of task %.20s: %.300s", name, arguments.get("task"), refused)
        raise PeerRefused(PEER, refused.tag, refused.message) from None
    except (RequestError, AddressError) as error:
        log.warning("refused %.20s: %.300s", name, error)
        raise PeerRefused(PEER, "bad-request", str(error)) from None


def _denied(request: Answer) -> Answer:
    raise Refused("default-deny", "there is no such operation")
