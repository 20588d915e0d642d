"""The meaning of a field of a venue's answer by its name, which decides how its value is replaced in a probe file."""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import Enum, auto
from typing import Any


class Sort(Enum):
    """The sorts of values."""

    SECRET = auto()  # a key, a session's token, a signature, a PSBT: replaced whole
    TEXT = auto()  # anyone can write it, or it is a picture's address: replaced whole
    ID = auto()
    SLUG = auto()
    WORD = auto()  # a state, a kind, an error's text: its words stay
    TIME = auto()
    PRICE = auto()  # an amount of sats, whatever its size
    VALUE = auto()  # the sats of an output: small ones are padding, which says nothing
    PLAIN = auto()  # a count, a page, a height, a rate, a quantity
    UNKNOWN = auto()


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_SECRETS = _words(
    "token sessiontoken accesstoken refreshtoken apikey key secret password authorization cookie nonce jwt bearer"
)
_SECRET_PARTS = re.compile(r"psbt|signature|signedmessage|signedbidding|privatekey|rawtx|witness")
_TEXTS = _words(
    "name title description desc bio symbol summary about displayname username user handle nickname twitter discord "
    "telegram website email social socials collectionname collectionitemname inscriptionname traittype trait text "
    "content hash owner seller buyer maker taker bidder holder creator artist author"
)
_TEXT_PARTS = re.compile(r"name$|image|icon|avatar|banner|picture|thumbnail|preview|url$|uri$|link$|href$")
_SLUGS = _words("slug collectionslug collectionid collectionsymbol tick ticker spacedrune rune runename runeid slugs")
_WORDS = _words(
    "type status state event kind markettype nfttype ordertype saletype metatype biddertype code error errors message "
    "msg reason detail details policy protocol transition role chain contenttype mimetype mime currency source "
    "marketplace market timetype sort sortby sortdirection direction success active challenge rawcontenttype"
)
_TIME = re.compile(r"(?:At|_at|[tT]ime|[tT]imestamp|[dD]ate|[eE]xpir\w*|Ms|_ms)$|^(?:created|updated|expires?)$")
_PLAINS = _words(
    "total count page pages totalpages pagesize size limit offset start cursor nextcursor divisibility "
    "decimals height blocks vout index version quantity supply totalsupply confirmations listed owners holders sales "
    "rank sighash signingindexes indicestosign retryafter fastestfee halfhourfee hourfee economyfee minimumfee feerate "
    "txcount vsize weight sponsoredpriority featuredpriority n"
)
_PLAIN_PARTS = re.compile(r"count$|height$|rate$|percent|pct$|ppm$|bps$|change|quantity|^runesamount|supply")
_PRICE_PARTS = re.compile(
    r"price|floor|cost|volume|topbid|bestbid|highestbid|balance|payout|fee|sats|funded|spent|cap$"
)
_VALUES = _words("value satoshi outputvalue postage outputsats")
_ID = re.compile(r"(?:^|_)ids?$|[a-z]I[dD]s?$|^\$oid$|(?:^|_)num(?:ber)?$|Number$|^sat$")


def sort_of(name: str, parent: str, row: Mapping[str, Any]) -> Sort:
    """Returns the sort of the field `name` in the object `row`, which is itself the field `parent`."""
    plain = re.sub(r"[^a-z0-9]", "", name.lower())
    above = re.sub(r"[^a-z0-9]", "", parent.lower())
    if plain in _SECRETS or _SECRET_PARTS.search(plain):
        return Sort.SECRET
    if _is_of_trait(plain, row):
        return Sort.TEXT
    if above == "sort":  # in a request: which way
        return Sort.PLAIN
    if plain in _SLUGS or (plain == "id" and "collection" in above) or (plain == "name" and "rune" in above):
        return Sort.SLUG
    if plain in _WORDS:
        return Sort.WORD
    if plain in _TEXTS or _TEXT_PARTS.search(plain):
        return Sort.TEXT
    if plain == "amount":
        return Sort.PLAIN if _is_quantity(above, row) else Sort.PRICE
    if plain in _PLAINS or _PLAIN_PARTS.search(plain):
        return Sort.PLAIN
    if _TIME.search(name):
        return Sort.TIME
    if plain in _VALUES:
        return Sort.VALUE
    if _PRICE_PARTS.search(plain):
        return Sort.PRICE
    return Sort.ID if _ID.search(name) else Sort.UNKNOWN


def _is_of_trait(plain: str, row: Mapping[str, Any]) -> bool:
    """Tells whether it is the kind or the value of a trait."""
    if plain not in ("traittype", "type", "value", "values"):
        return False
    if plain in ("value", "values") and isinstance(row.get("value", row.get("values")), str | list):
        return True
    names = {re.sub(r"[^a-z0-9]", "", name.lower()) for name in row}
    return "traittype" in names or bool({"type"} < names and names & {"value", "values"})


def _is_quantity(above: str, row: Mapping[str, Any]) -> bool:
    """Tells whether an `amount` counts tokens: a price is in the same row, or the row is a rune's."""
    names = " ".join(row).lower()
    return "rune" in above or any(word in names for word in ("price", "divisibility", "rune"))
