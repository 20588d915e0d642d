"""The signer, the only process with keys. It signs only messages and PSBTs that it composed or checked itself.

Processes of allowed users reach it over a Unix socket: the manager gives grants, workers ask for signatures with their
grant's secret. A request without a handler in `Signer` is refused.

Any allowed process may also ask for grants, and set or loosen control states: server, manager and workers run as one
user, and the kernel identifies only the user. So a compromised worker could undo a halt or widen its grant, but not
exceed the ceilings (wallet/terms.py). It cannot remove the halt file, `halt` in the signer's own directory, if the
signer runs as a separate user: while that file exists, no bid or listing is signed.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sqlite3
import time
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from msgspec.structs import replace

from core.call import Request
from core.errors import PeerRefused
from core.files import is_full
from wallet import protocol
from wallet.address import AddressError, sign_in_address
from wallet.keystore.keys import Keystore
from wallet.protocol import (
    DISK_FULL,
    LISTING_INTENT_DIGITS,
    WITHDRAWAL_INTENT_DIGITS,
    AskAddresses,
    AskStatus,
    AskWasSigned,
    PolicyRefused,
    RequestError,
    SignerStatus,
    UserKeys,
    WasSigned,
)
from wallet.psbt.common import OutpointFacts
from wallet.signer.audit import AuditLog
from wallet.signer.authority import Authority
from wallet.signer.bids import BidSigner, ChallengeSigner, OfferSigner
from wallet.signer.grants import Grants, RoomKeeper
from wallet.signer.ledger import Ledger
from wallet.signer.listings import DelistSigner, ListingJudge, ListingSigner, escrow_addresses
from wallet.signer.reading import BAD_REQUEST, DEFAULT_DENY, PEER, AskFacts, FactsError
from wallet.signer.withdrawals import WithdrawalSigner
from wallet.terms import Ceilings

log = logging.getLogger(__name__)

_LOOKING_UP_AT_ONCE = 4

T = TypeVar("T")
Facts = Mapping[str, OutpointFacts]
_OnFacts = tuple[Callable[[Any], tuple[str, ...]], Callable[[Any, Facts], Any]]


def _steady_ms() -> int:
    return time.monotonic_ns() // 1_000_000


class Signer:
    """Answers the signer's requests, without a socket. `keystore` None means locked, with `locked_reason`.

    `clock` returns Unix milliseconds, `steady_ms` a monotonic clock's. `is_short` returns whether the disk is too full
    for more bids; `free_reserve` frees space on a full disk, and returns whether it did.
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
        grants, challenges, rooms = Grants(authority, rng_bytes), ChallengeSigner(authority), RoomKeeper(authority)
        listings, offers, withdrawals = ListingSigner(authority), OfferSigner(authority), WithdrawalSigner(authority)
        judge = ListingJudge(authority)
        # Requests that need facts: the function that names the outputs, and the one that answers.
        self._on_facts: dict[type[Request[Any]], _OnFacts] = {
            protocol.JudgeListing: (judge.outpoints_to_look_up, judge.judge),
            protocol.SignListing: (listings.outpoints_to_look_up, listings.sign_listing),
            protocol.SignOffer: (offers.outpoints_to_look_up, offers.sign_offer),
            protocol.JudgeWithdrawal: (withdrawals.coins_to_judge, withdrawals.judge_withdrawal),
            protocol.SignWithdrawal: (withdrawals.outpoints_to_look_up, withdrawals.sign_withdrawal),
        }
        self._operations: dict[type[Request[Any]], Callable[[Any], Any]] = {
            AskStatus: self._status,
            AskAddresses: self._addresses,
            protocol.GiveGrant: grants.grant,
            protocol.RevokePlace: grants.revoke_place,
            protocol.EndRights: grants.end_rights,
            protocol.EndAllRights: grants.end_all_rights,
            protocol.SetControl: grants.control,
            protocol.AskControls: grants.controls,
            protocol.AskRooms: rooms.rooms,
            protocol.AskRoomsUnder: rooms.rooms_under,
            protocol.SignBid: BidSigner(authority).sign_bid,
            protocol.SignChallenge: challenges.sign_challenge,
            protocol.SignBrake: challenges.sign_brake,
            protocol.SignSignIn: challenges.sign_sign_in,
            protocol.SignDelist: DelistSigner(authority).sign_delist,
            protocol.AskLowestListing: listings.lowest_listing,
            AskWasSigned: self._was_signed,
        }

    def handle(self, request: Request[T], facts: Facts | None = None) -> T:
        """Answers one request; `facts` describe the outputs (`txid:vout`) that `outpoints_to_look_up` named.

        Raises PeerRefused with the rule's tag, `bad-request` or `locked` as its code.
        """
        on_facts = self._on_facts.get(type(request))
        if on_facts is not None:
            return self._answered(request, lambda asked: on_facts[1](asked, facts or {}))
        return self._answered(request, self._operations.get(type(request), _denied))

    def outpoints_to_look_up(self, request: Request[Any]) -> tuple[str, ...]:
        """Returns the outputs whose facts the request needs; none for most requests.

        Raises as `handle`, if the request is refused regardless of facts.
        """
        on_facts = self._on_facts.get(type(request))
        return () if on_facts is None else self._answered(request, on_facts[0])

    def answering(self, ask_facts: AskFacts) -> Callable[[Request[Any]], Awaitable[Any]]:
        """Returns `handle` with facts asked in threads, so that bids and cancels do not wait for slow facts."""
        threads = ThreadPoolExecutor(_LOOKING_UP_AT_ONCE, thread_name_prefix="facts")

        def look_up(outpoint: str) -> OutpointFacts | None:
            try:
                return ask_facts(outpoint)
            except FactsError as error:
                log.warning("%s", error)
                return None

        async def answer(request: Request[Any]) -> Any:
            outpoints = self.outpoints_to_look_up(request)
            loop = asyncio.get_running_loop()
            found = await asyncio.gather(*(loop.run_in_executor(threads, look_up, each) for each in outpoints))
            known = zip(outpoints, found, strict=True)
            return self.handle(request, {outpoint: facts for outpoint, facts in known if facts is not None})

        return answer

    def _answered(self, request: Request[Any], operation: Callable[[Any], T]) -> T:
        """Calls the operation with the request, and turns its errors into codes for the client.

        On a full disk, it retries once if the reserve could be freed.
        """
        name = request.__struct_config__.tag
        try:
            try:
                return operation(request)
            except (sqlite3.Error, OSError) as error:
                if not (is_full(error) and self._free_reserve()):
                    raise
                return operation(request)
        except PolicyRefused as refused:
            log.warning("refused %.20s of task %.20s: %.300s", name, getattr(request, "task", None), refused)
            raise PeerRefused(PEER, refused.tag, refused.message, refused.highest) from None
        except (RequestError, AddressError) as error:
            log.warning("refused %.20s: %.300s", name, error)
            raise PeerRefused(PEER, BAD_REQUEST, str(error)) from None
        except (sqlite3.Error, OSError) as error:
            if not is_full(error):
                raise
            log.error("failed at %.20s: the disk of the signer's directory is full: %s", name, error)
            raise PeerRefused(PEER, DISK_FULL, "the disk of the signer's directory is full: make room") from error

    def _status(self, asked: AskStatus) -> SignerStatus:
        keystore = self._authority.keystore
        if keystore is None:
            return SignerStatus("locked", play=False, reason=self._authority.locked_reason)
        return SignerStatus("ready", play=keystore.is_play)

    def _addresses(self, asked: AskAddresses) -> UserKeys:
        secrets = self._authority.secrets_of(sign_in_address(asked.user))
        return replace(secrets.public, escrows=escrow_addresses(secrets, self._authority.ceilings))

    def _was_signed(self, asked: AskWasSigned) -> WasSigned:
        found: object
        if len(asked.intent) == LISTING_INTENT_DIGITS:
            found = self._ledger.signed.listing(asked.intent)
        elif len(asked.intent) == WITHDRAWAL_INTENT_DIGITS:
            found = self._ledger.withdrawals.find(asked.intent)
        else:
            found = self._ledger.signed.bid(asked.intent)
        return WasSigned(found is not None)


def _denied(request: Request[Any]) -> Any:
    raise PolicyRefused(DEFAULT_DENY, "there is no such operation")
