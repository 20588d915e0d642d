"""The place of a listing's inscription, by index and chain together. Doubt is not an answer."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

from markets.base import VenueError
from markets.look import Notes
from markets.market_client import MarketClient
from markets.outpoint_facts import OutpointFacts, Whereabouts
from strategy.listing_price import InscriptionState
from strategy.reasons import Step

FactsOf = Callable[[str], OutpointFacts | None]


@dataclass(frozen=True, slots=True)
class LocatedInscription:
    """The place. `outpoint` (txid:vout) is the inscription's, known when it is `held` or `moved`.

    `is_untraced`: its output is spent, and no index knows the new one. `is_in_escrow`: it is held by an escrow that the
    vault's key opens, to which its listing's transfer took it; it can be sold from there.
    """

    inscription_state: InscriptionState
    outpoint: str | None = None
    is_untraced: bool = False
    is_in_escrow: bool = False


_UNKNOWN = LocatedInscription("unknown")
_PENDING = LocatedInscription("pending")
_SPENT = LocatedInscription("spent")


def locate(
    market: MarketClient,
    inscription_id: str,
    vault: str,
    signed_at: str | None,
    max_age_s: float,
    notes: Notes,
    escrows: Collection[str] = (),
) -> LocatedInscription:
    """Asks index and chain, and judges; `signed_at` is the output of the open listing, if there is one.

    `escrows` are the addresses that the vault's key opens, beside the vault's own.
    """

    def facts_of(outpoint: str) -> OutpointFacts | None:
        try:
            return market.outpoint(outpoint, max_age_s)
        except VenueError as error:
            notes.add(Step.FIND_ITEM, "read what becomes of the inscription's output", error)
            return None

    try:
        where = market.whereabouts(inscription_id, max_age_s)
    except VenueError as error:
        notes.add(Step.FIND_ITEM, "find the inscription", error, backs_off=False)
        where = None
    return judged(vault, signed_at, where, facts_of, escrows)


def judged(
    vault: str,
    signed_at: str | None,
    where: Whereabouts | None,
    facts_of: FactsOf,
    escrows: Collection[str] = (),
) -> LocatedInscription:
    """Judges the answers. An index knows confirmed blocks only, so its unknown spend is a pending one."""
    if where is None:
        return _UNKNOWN if signed_at is None else _without_index(signed_at, facts_of(signed_at))
    if where.outpoint is None:
        return _UNKNOWN
    is_in_escrow = where.address is not None and where.address in escrows
    in_escrow = LocatedInscription("held", where.outpoint, is_in_escrow=True)
    if signed_at is None or where.outpoint == signed_at:
        found = facts_of(where.outpoint)
        if is_in_escrow:
            return _settled(found, in_escrow)
        if where.address != vault:
            # Where a listing of ours was signed, another's output is a contradiction; elsewhere it is just not here.
            return _UNKNOWN if signed_at is not None else _settled(found, _SPENT)
        return _settled(found, LocatedInscription("held", where.outpoint))
    former = facts_of(signed_at)
    if former is None or former.is_unspent is not False:
        return _UNKNOWN  # by the index it has left an output that the chain calls unspent
    found = facts_of(where.outpoint)
    if is_in_escrow:
        return _settled(found, in_escrow)
    return _settled(found, LocatedInscription("moved", where.outpoint) if where.address == vault else _SPENT)


def _settled(found: OutpointFacts | None, if_so: LocatedInscription) -> LocatedInscription:
    """Returns `if_so` when the inscription's output is confirmed and, if it is still ours, unspent."""
    if found is None or found.is_confirmed is None:
        return _UNKNOWN
    if not found.is_confirmed:
        return _PENDING
    if if_so.inscription_state == "spent" or found.is_unspent:
        return if_so
    return _UNKNOWN if found.is_unspent is None else _PENDING


def _without_index(signed_at: str, found: OutpointFacts | None) -> LocatedInscription:
    if found is not None and found.is_unspent is False:
        return LocatedInscription("pending", is_untraced=True)
    return _settled(found, LocatedInscription("held", signed_at))
