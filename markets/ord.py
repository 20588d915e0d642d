"""An `ord` server's JSON API: the assets of outputs, by its index. Each method is exactly one HTTP request.

It reads the answers of ord 0.21 to 0.27 (`src/api.rs`); those of older versions are unreadable or not trusted. The
index covers confirmed blocks only.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from markets import parse
from markets.base import Indexed, Whereabouts
from markets.http import Http, segment
from markets.parse import Unreadable

_NOWHERE = "0" * 64  # the txid that ord gives for an unbound or lost inscription
_LONGEST_OFFSET = 16  # digits of all sats


class IndexState(Struct, frozen=True):
    """The index's contents and its last block; `height` None = no block yet, or not to be trusted."""

    height: int | None
    has_inscriptions: bool
    has_runes: bool


class Ord:
    """A client of the server; `base` is the origin before `/output/...`. Reads only.

    Each method raises Unavailable, RateLimited and Refused leaves.
    """

    def __init__(self, base: str) -> None:
        self._http = Http(base, {})

    def status(self) -> IndexState:
        """Returns the state of the index."""
        answer = self._http.read("/status")
        return parse.of_read(lambda: _state(parse.table(answer, "status")), "ord")

    def output(self, wanted: str, state: IndexState) -> Indexed:
        """Returns the assets on an output (txid:vout). Read `state` first, so that the answer covers its block.

        Inscriptions or runes are None if the index does not cover them or this output. Raises NotUnderstood if any of
        them cannot be read, because the output must then not be spent.
        """
        answer = self._http.read(f"/output/{wanted}", missing=f"output {wanted} not found")
        return parse.of_read(lambda: _output(parse.table(answer, "output"), wanted, state), "ord")

    def inscription(self, inscription_id: str, taken_ms: int) -> Whereabouts:
        """Returns the place of an inscription. Raises NotFound if the index does not know it (yet)."""
        missing = f"inscription {inscription_id} not found"
        answer = self._http.read(f"/inscription/{segment(inscription_id)}", missing=missing)
        return parse.of_read(lambda: _inscription(parse.table(answer, "inscription"), inscription_id, taken_ms), "ord")

    def item_offset(self, inscription_id: str, wanted: str) -> int | None:
        """Returns an inscription's offset in sats within the output `wanted`; None if it is on another output."""
        answer = self._http.read(f"/inscription/{segment(inscription_id)}")
        return parse.of_read(lambda: _offset(parse.table(answer, "inscription"), inscription_id, wanted), "ord")


def _state(status: Mapping[str, Any]) -> IndexState:
    if (chain := status.get("chain", "mainnet")) != "mainnet":
        raise Unreadable(f"the index is of another chain: {str(chain)[:20]!r}")
    known = status.get("height")
    has_inscriptions = parse.flag(status.get("inscription_index", False), "inscription_index")
    has_runes = parse.flag(status.get("rune_index", False), "rune_index")
    is_broken = parse.flag(status.get("unrecoverably_reorged", False), "unrecoverably_reorged")
    return IndexState(
        None if known is None or is_broken else parse.height(known, "height"), has_inscriptions, has_runes
    )


def _output(found: Mapping[str, Any], wanted: str, state: IndexState) -> Indexed:
    if found.get("outpoint") != wanted:
        raise Unreadable("the answer is about another output")
    is_indexed = parse.flag(found.get("indexed"), "indexed") and state.height is not None
    inscriptions, runes = found.get("inscriptions"), found.get("runes")
    return Indexed(
        value=parse.sats(found.get("value"), "value"),
        script=_script(found.get("script_pubkey")),
        is_confirmed=parse.whole(found.get("confirmations"), "confirmations") > 0,
        is_spent=parse.flag(found.get("spent"), "spent"),
        inscriptions=_ids(inscriptions) if is_indexed and state.has_inscriptions and inscriptions is not None else None,
        runes=_runes(runes) if is_indexed and state.has_runes and runes is not None else None,
        height=state.height,
    )


def _script(value: Any) -> str | None:
    # ord's docs show opcodes in words, its source writes hex. Words are ignored, because they do not give the bytes.
    told = parse.text(value, "script_pubkey", longest=20_000)
    return None if told.startswith("OP_") else parse.script(told, "script_pubkey")


def _ids(value: Any) -> tuple[str, ...]:
    return tuple(
        sorted(parse.identifier(each, "inscription on an output") for each in parse.rows(value, "inscriptions"))
    )


def _runes(value: Any) -> tuple[str, ...]:
    piles = parse.table(value, "runes")
    for pile in piles.values():
        parse.whole(parse.table(pile, "pile").get("amount"), "amount")
    return tuple(sorted(parse.text(name, "rune") for name in piles))


def _offset(found: Mapping[str, Any], inscription_id: str, wanted: str) -> int | None:
    if found.get("id") != inscription_id:
        raise Unreadable("the answer is about another inscription")
    output, _, offset = parse.text(found.get("satpoint"), "satpoint").rpartition(":")
    if not offset.isascii() or not offset.isdecimal() or len(offset) > _LONGEST_OFFSET:
        raise Unreadable("a satpoint ends in no number")
    return int(offset) if output == wanted else None


def _inscription(found: Mapping[str, Any], wanted: str, taken_ms: int) -> Whereabouts:
    if found.get("id") != wanted:
        raise Unreadable("the answer is about another inscription")
    output, _, offset = parse.text(found.get("satpoint"), "satpoint").rpartition(":")
    parse.whole(offset, "offset")
    place = parse.outpoint(output, "satpoint")
    if place.startswith(_NOWHERE):
        return Whereabouts(wanted, None, None, None, taken_ms)
    holder, value = found.get("address"), found.get("value")
    return Whereabouts(
        inscription_id=wanted,
        outpoint=place,
        address=None if holder is None else parse.address(holder, "address"),
        value=None if value is None else parse.sats(value, "value"),
        taken_ms=taken_ms,
    )
