"""Masks a venue's saved answers; within one file, equal values get equal replacements.

docs/probe-files.md explains the rule: keys, addresses, ids, signatures, PSBTs and texts that anyone can write are
replaced character by character, which keeps their length and kinds of character. Amounts of sats are multiplied by one
secret factor, which keeps types, order and ratios. Field names, slugs, states, times, counts and quantities are kept.
"""

from __future__ import annotations

import base64
import hmac
import html
import ipaddress
import json
import re
import string
import unicodedata
from collections.abc import Collection, Iterator, Mapping
from decimal import ROUND_FLOOR, Decimal, localcontext
from enum import Enum, auto
from typing import Any
from urllib.parse import quote, quote_plus, unquote

from markets.parse import MAX_SATS, same


class Sort(Enum):
    """The kinds of values, each with its own replacement."""

    SECRET = auto()  # a key, a session's token, a signature, a PSBT: replaced entirely
    TEXT = auto()  # a text that anyone can write, or a picture's address: replaced entirely
    ID = auto()
    SLUG = auto()
    WORD = auto()  # a state, a kind, an error's text: only keys, ids and amounts in it are replaced
    TIME = auto()
    PRICE = auto()  # an amount of sats of any size
    VALUE = auto()  # the sats of an output: small values are padding and reveal nothing
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
    if above == "sort":  # in a request: the direction of sorting
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
    """Returns True if the field `plain` is a trait's kind or value."""
    if plain not in ("traittype", "type", "value", "values"):
        return False
    if plain in ("value", "values") and isinstance(row.get("value", row.get("values")), str | list):
        return True
    names = {re.sub(r"[^a-z0-9]", "", name.lower()) for name in row}
    return "traittype" in names or bool({"type"} < names and names & {"value", "values"})


def _is_quantity(above: str, row: Mapping[str, Any]) -> bool:
    """Returns True if an `amount` counts tokens: a price is in the same row, or the row is about a rune."""
    names = " ".join(row).lower()
    return "rune" in above or any(word in names for word in ("price", "divisibility", "rune"))


HIDDEN = "[hidden]"  # replaces our own key
_RUN = 12  # characters of a key that identify a part of it
_LOWER = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)
_FEW = 10_000  # sats of an output; smaller values are only padding
_LEAST_UNKNOWN, _LEAST_STRANGE = 1000, 100_000  # error codes have fewer digits
_PLACES = 4  # decimal places of an amount in BTC
_STRAIGHT_TO = Decimal(10**11)  # sats; above 1,000 BTC amounts approach the total supply and stay below it
_TIMES = ((10**9, 10**10), (10**12, 10**13))  # epoch seconds and milliseconds, from 2001 to 2286
_BECH32 = "qpzry9x8gf2tvdw0s3jn54khce6mua7l"
_HEX = "0123456789abcdef"
_BASE58 = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
_PSBTS = {"70736274ff": 12, "cHNidP8": 8}  # the beginning of a PSBT, and how many of its characters are kept
_URL = re.compile(r"[a-z][a-z0-9+]{1,10}://", re.I)
_ISO_TIME = re.compile(r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?(?:Z|[+-]\d\d(?::?\d\d)?)?)?", re.ASCII)
_NUMBER = re.compile(r"-?[0-9]{1,39}(?:\.[0-9]{1,39})?", re.ASCII)
_FIELD = re.compile(r"[A-Za-z0-9_$.\-]{1,64}", re.ASCII)
_RUNE = re.compile(r"[A-Z]{1,28}(?:•[A-Z]{1,28})+")
_LONE_WORD = re.compile(r"[A-Za-z][A-Za-z_\-]{0,31}", re.ASCII)
_TOKEN = re.compile(r"[A-Za-z0-9_\-]{8,}", re.ASCII)
_IN_TEXT = re.compile(  # a time, or a number that may have separators between thousands
    rf"(?P<time>{_ISO_TIME.pattern})"
    r"|(?<![0-9A-Za-z_.,])(?<![0-9A-Za-z]-)"
    r"(?:[0-9]{1,3}(?:(?P<mark>[,'_ \xa0\u202f])[0-9]{3}(?:(?P=mark)[0-9]{3})*|(?:\.[0-9]{3}){2,})|[0-9]+)(?:\.[0-9]+)?"
    r"(?=(?:sats?|btc|k|m)\b|[^0-9A-Za-z]|$)",
    re.I,
)
_FOUND = re.compile(
    r"""
    (?P<uuid>(?<![0-9A-Za-z])[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}(?![0-9A-Za-z]))
    |(?P<bech32>(?<![0-9A-Za-z])(?i:bc|tb|bcrt)1[0-9A-Za-z]{2,90}(?![0-9A-Za-z]))
    |(?P<hex>(?:(?<![0-9A-Za-z])|(?<=0x))(?:[0-9a-f]{16,}|[0-9A-F]{16,})(?=i\d|[^0-9A-Za-z]|$))
    |(?P<long>(?<![0-9A-Za-z+/_\-])(?=[^\s]*\d)(?=[^\s]*[a-z])(?=[^\s]*[A-Z])[0-9A-Za-z+/_\-]{36,}={0,2})
    |(?P<lower>(?<![0-9A-Za-z])(?=[0-9]*[a-z])(?=[a-z]*[0-9])[0-9a-z]{36,}(?![0-9A-Za-z]))
    |(?P<base58>(?<![0-9A-Za-z])[123mn][1-9A-HJ-NP-Za-km-z]{25,34}(?![0-9A-Za-z]))
    |(?P<email>[\w.+\-]{1,64}(?:@|%40)[\w\-]{1,64}(?:\.[\w\-]{1,64})+)
    |(?P<ipv4>(?<![\w.])(?:\d{1,3}\.){3}\d{1,3}(?![\w.]*\d))
    |(?P<ipv6>(?<![\w:])(?:[0-9a-fA-F]{0,4}:){2,7}[0-9a-fA-F]{0,4}(?![\w:]))
    """,
    re.X | re.ASCII,
)


class Masker:
    """The replacements of one file. `salt` is random and never stored; texts in `kept` are not replaced."""

    def __init__(self, salt: bytes, secrets: Collection[str], kept: Collection[str], numbers: Collection[int]) -> None:
        self._salt = salt
        forms = sorted({form for secret in secrets for form in _forms(secret)}, key=len, reverse=True)
        self._short = [form for form in forms if len(form) < _RUN]
        self._runs = {run for form in forms for run in _runs(form)}
        self._kept = {same(text) for text in kept}
        self._numbers = frozenset(numbers)
        self._known: dict[str, str] = {}
        self._given: set[str] = set()
        drawn = int.from_bytes(hmac.digest(salt, b"factor", "sha256")[:8])
        self._factor = Decimal(1000) + Decimal(drawn % 8_999_000_000) / 1_000_000

    def value(self, value: Any, name: str = "", parent: str = "", row: Mapping[str, Any] | None = None) -> Any:
        """Masks parsed JSON. `name` is its field, in the object `row`, which is itself the field `parent`."""
        if isinstance(value, Mapping):
            return {self._name(each): self.value(part, each, name, value) for each, part in value.items()}
        if isinstance(value, list):
            return [self.value(part, name, parent, row) for part in value]
        if value is None or isinstance(value, bool):
            return value
        sort = sort_of(name, parent, row or {})
        return self._text_of(value, sort) if isinstance(value, str) else self._number(value, sort)

    def text(self, text: str) -> str:
        """Masks keys, addresses, ids, tokens, IP addresses and amounts in words, and ids known from fields."""
        found = self.marks(text)
        return _IN_TEXT.sub(self._counted, found)

    def marks(self, text: str) -> str:
        """Masks as `text` does, but keeps numbers."""
        if same(text) in self._kept:
            return text
        found = _FOUND.sub(self._marked, self._hidden(text))
        return _TOKEN.sub(self._recalled, found)

    def path(self, path: str) -> str:
        """Masks each segment of a path."""
        return "/".join(quote(self.marks(unquote(segment)), safe="") for segment in path.split("/"))

    def amount(self, number: Decimal) -> Decimal:
        """Multiplies an amount by the file's factor, keeping its decimal places. More than the total supply is kept."""
        size = abs(number)
        if not size or size > MAX_SATS or (number == int(number) and int(number) in self._numbers):
            return number
        with localcontext(prec=120):
            scaled = min(size, _STRAIGHT_TO) * self._factor
            if size > _STRAIGHT_TO:
                scaled += (size - _STRAIGHT_TO) * (MAX_SATS - scaled) / (MAX_SATS - _STRAIGHT_TO)
            return scaled.quantize(number, ROUND_FLOOR).copy_sign(number)

    def _hidden(self, text: str) -> str:
        """Hides our keys, and each part of a key that is long enough to identify it."""
        for form in self._short:
            text = text.replace(form, HIDDEN)
        kept, end = [], 0
        for at in [at for at, run in enumerate(_runs(text)) if run in self._runs]:
            kept += [text[end:at], HIDDEN] if at >= end else []
            end = at + _RUN
        return "".join([*kept, text[end:]])

    def _name(self, name: str) -> str:
        """Masks an object's key that is not a field name: an id, or a text that anyone can write."""
        if _RUNE.fullmatch(name) or same(name) in self._kept:
            return name
        if (found := self.marks(name)) != name or _FIELD.fullmatch(name):
            return found
        return self._like(name)

    def _number(self, value: Any, sort: Sort) -> Any:
        number = Decimal(value)
        if not number.is_finite():
            return value
        is_amount = sort is Sort.PRICE or (sort is Sort.VALUE and abs(number) > _FEW)
        if sort is Sort.UNKNOWN:  # of unknown meaning: from four digits on it may be an amount
            is_amount = _may_be_amount(number)
        elif sort in (Sort.TIME, Sort.WORD, Sort.TEXT, Sort.SLUG):
            is_amount = abs(number) >= _LEAST_STRANGE and not _is_time(number)
        if is_amount:
            found = self.amount(number)
            return found if isinstance(value, Decimal) else int(found)
        if sort in (Sort.ID, Sort.SECRET) and number != int(number):
            return self.amount(number)
        if sort in (Sort.ID, Sort.SECRET) and number == int(number) and abs(number) >= 10:
            return type(value)(self._like(str(int(number))))
        return value

    def _text_of(self, value: str, sort: Sort) -> str:
        if not value.strip() or value in ("true", "false") or same(value) in self._kept or _ISO_TIME.fullmatch(value):
            return value
        if _NUMBER.fullmatch(value) and sort is not Sort.TEXT:
            return self._digits(value, sort)
        match sort:
            case Sort.SECRET | Sort.TEXT:
                return self._like(value)
            case Sort.PRICE | Sort.VALUE:
                return re.sub(r"\d+", lambda digits: self._digits(digits[0], Sort.PRICE), self.marks(value))
            case Sort.ID:
                found = self.marks(value)
                return found if found != value else self._like(value)
            case Sort.SLUG | Sort.PLAIN | Sort.TIME:
                return self.marks(value)
            case Sort.WORD:
                return self.text(value)
            case _:
                return self._unknown(value)

    def _digits(self, value: str, sort: Sort) -> str:
        """Replaces a number in text by one with as many decimal places."""
        number = Decimal(value)
        if sort is Sort.UNKNOWN and _is_time(number):
            return value
        found = self._number(number if "." in value else int(value), sort)
        return value if found == number else format(found, "f") if isinstance(found, Decimal) else str(found)

    def _unknown(self, value: str) -> str:
        """Keeps a lone word, which may be a state; replaces a longer text entirely unless it holds only masked ids."""
        found = self.marks(value)
        rest = _FOUND.sub("", value)
        if _LONE_WORD.fullmatch(value) or (found != value and not re.search(r"[^\W\d_]|\d{5}", rest.replace("i", ""))):
            return found
        return self._like(value)

    def _counted(self, found: re.Match[str]) -> str:
        if found["time"]:
            return found[0]
        mark = found["mark"] or ("." if found[0].count(".") > 1 else "")
        number = Decimal(found[0].replace(mark, "") if mark else found[0])
        if not _may_be_amount(number) or _is_time(number):
            return found[0]
        return format(self.amount(number), ",f" if mark else "f").replace(",", mark)

    def _recalled(self, token: re.Match[str]) -> str:
        # A known name without a digit may be one of the venue's own words, such as "insufficient".
        return self._known.get(token[0], token[0]) if any(map(str.isdigit, token[0])) else token[0]

    def _marked(self, found: re.Match[str]) -> str:
        text, kind = found[0], found.lastgroup
        if same(text) in self._kept:
            return text
        if kind in ("ipv4", "ipv6"):
            return self._ip(text)
        return self._like(text)

    def _ip(self, text: str) -> str:
        try:
            version = ipaddress.ip_address(text).version
        except ValueError:
            return text
        drawn = int.from_bytes(hmac.digest(self._salt, text.encode(), "sha256")[:2])
        return f"192.0.2.{drawn % 256}" if version == 4 else f"2001:db8::{drawn:x}"

    def _like(self, text: str) -> str:
        """Returns another text of the same length and kinds of characters; equal texts get equal results."""
        if text in self._known:
            return self._known[text]
        for attempt in range(20):  # because short texts have few alternatives
            found = "".join(_drawn(text, self._stream(f"{attempt}:{text}")))
            if found != text and found not in self._given:
                break
        self._given.add(found)
        self._known[text] = found
        return found

    def _stream(self, text: str) -> Iterator[int]:
        number = 0
        while True:
            yield from hmac.digest(self._salt, f"{number}:{text}".encode("utf-8", "surrogatepass"), "sha256")
            number += 1


def _drawn(text: str, stream: Iterator[int]) -> Iterator[str]:
    """Yields a random character of the same kind for each; keeps the prefix of an address, a PSBT or a URL."""
    start = _start_of(text)
    yield text[:start]
    lower = text.lower()
    special = ""
    if re.fullmatch(r"(?:bc|tb|bcrt)1[0-9a-z]+", lower):
        special = _BECH32.upper() if text.isupper() else _BECH32
    elif re.fullmatch(r"[0-9a-f\-]*[a-f][0-9a-f\-]*", lower) and len(text) >= 16:
        special = _HEX.upper() if text.isupper() else _HEX
    elif re.fullmatch(f"[123mn][{_BASE58}]{{25,34}}", text):
        special = _BASE58
    for at, letter in enumerate(text[start:]):
        choice = next(stream) + 256 * next(stream)
        if special and letter.isalnum():
            yield special[choice % len(special)]
        elif letter.isascii() and letter.isdigit():
            is_first = start + at == 0 and len(text) > 1
            yield (string.digits[1:] if is_first else string.digits)[choice % (9 if is_first else 10)]
        elif letter.isascii() and letter.isalpha():
            yield (string.ascii_uppercase if letter.isupper() else string.ascii_lowercase)[choice % 26]
        else:
            yield letter if letter.isascii() or unicodedata.category(letter)[0] in "PZC" else "ж"


def _start_of(text: str) -> int:
    for start, length in _PSBTS.items():
        if text.startswith(start):
            return length
    if found := _URL.match(text):
        return found.end()
    if found := re.match(r"(?i:bc|tb|bcrt)1[qpQP]?", text):
        return found.end()
    return 1 if re.fullmatch(f"[123mn][{_BASE58}]{{25,34}}", text) else 0


def _forms(secret: str) -> Iterator[str]:
    """Yields the spellings in which a venue may repeat a key, also inside base64."""
    raw = secret.encode()
    yield from (secret, quote(secret), quote(secret, safe=""), quote_plus(secret), html.escape(secret), raw.hex())
    yield from (json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1])
    for before, dropped in enumerate((0, 2, 3)):  # the base64 characters that depend on the bytes before the key
        for encode in (base64.b64encode, base64.urlsafe_b64encode):
            whole = (before + len(raw)) * 8 // 6
            yield encode(b"\0" * before + raw).decode()[dropped:whole]


def _runs(text: str) -> Iterator[str]:
    """Yields each run of `_RUN` characters, in lower case."""
    lower = text.translate(_LOWER)
    return (lower[at : at + _RUN] for at in range(len(lower) - _RUN + 1))


def _may_be_amount(number: Decimal) -> bool:
    """Returns True if a number of unknown meaning may be an amount of sats, or of BTC by its decimal places."""
    exponent = number.as_tuple().exponent
    return abs(number) >= _LEAST_UNKNOWN or (isinstance(exponent, int) and exponent <= -_PLACES)


def _is_time(number: Decimal) -> bool:
    return any(first <= number < last for first, last in _TIMES)
