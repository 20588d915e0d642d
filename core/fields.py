"""The types of fields, and readers of outside input: JSON, text and pasted values.

All field types are msgspec types, so the API, the sockets and the files read, check, write and describe them alike.
msgspec cannot check bounds of a Decimal: the type only describes them, and the reader of the field checks them.

Whole numbers in JSON are read as int, others as Decimal. A number that is too large becomes Decimal("Infinity"). Every
field refuses that value, so the fault is reported with the field's name.

A text is accepted if it has exactly one meaning. A byte order mark is dropped, and so are the blanks and zero-width
characters that browsers and chats copy along. Other text raises PasteError, NotText or ValueError. The message follows
the name of the field, file or variable, says what to do, and never repeats the text, which may be a secret.
Checksums, signatures and names are verified elsewhere, on the plain form.
"""

from __future__ import annotations

import base64
import codecs
import json
import re
import threading
from datetime import UTC, datetime, timedelta
from decimal import Decimal, InvalidOperation
from functools import cache, lru_cache
from pathlib import Path
from typing import Annotated, Any, ClassVar
from urllib.parse import unquote

from msgspec import Meta, Struct
from msgspec.json import Decoder

from core.errors import BidkeeperError

MAX_SATS = 2_100_000_000_000_000
MAX_ID = 2**63 - 1
A_TIME = "2026-09-21T14:13:20.000Z"
_TXID = "6fb976ab49dcec017f1e201e84395983204ae1a7c2abf7ced0a85d692e442799"

Sats = Annotated[int, Meta(ge=0, le=MAX_SATS)]
Count = Annotated[int, Meta(ge=0)]
Ms = Annotated[int, Meta(ge=0, le=MAX_ID)]  # milliseconds since 1970
Id = Annotated[int, Meta(ge=1, le=MAX_ID)]
Time = Annotated[str, Meta(examples=[A_TIME], extra_json_schema={"format": "date-time"})]  # ISO 8601 in UTC
Price = Annotated[
    Decimal, Meta(description="Sats per token; exact, with as many digits as it has.", extra_json_schema={"minimum": 0})
]
Quantity = Annotated[Decimal, Meta(extra_json_schema={"exclusiveMinimum": 0})]  # a number of items or tokens
Address = Annotated[str, Meta(examples=["bc1qlzrwcf49yrltr5graye452qeypxcrwk7l0wg75"])]
Slug = Annotated[str, Meta(examples=["bitcoin-puppets"])]


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@lru_cache(maxsize=4096)
def iso(ms: int) -> str:
    """Writes milliseconds since 1970 as ISO 8601 in UTC: 2026-11-20T12:00:00.000Z."""
    return (_EPOCH + timedelta(milliseconds=ms)).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def words(text: str, **more: Any) -> Meta:
    """Makes the annotation that describes a field; `more` are other arguments of msgspec's Meta."""
    return Meta(description=text, **more)


def text_of(least: int, most: int) -> Meta:
    """Makes the annotation of a text with `least` to `most` characters."""
    return Meta(min_length=least, max_length=most)


def matching(pattern: str, **more: Any) -> Meta:
    """Makes the annotation of a text that `pattern` matches as a whole; `more` are other arguments of msgspec's Meta.

    `$` alone would also match before a final line end, and `\\Z` is not understood by users of a JSON schema.
    """
    return Meta(pattern=rf"^(?:{pattern})(?!\n)$", **more)


def within(least: int, most: int) -> Meta:
    """Makes the annotation of a whole number from `least` to `most`."""
    return Meta(ge=least, le=most)


Txid = Annotated[str, matching("[0-9a-f]{64}", examples=[_TXID])]
Outpoint = Annotated[str, matching("[0-9a-f]{64}:(0|[1-9][0-9]{0,9})", examples=[f"{_TXID}:1"])]


class WithSecrets(Struct, frozen=True):
    """A struct whose repr omits the fields named in `hidden`, so that no log line or traceback shows them."""

    hidden: ClassVar[frozenset[str]] = frozenset()

    def __repr__(self) -> str:
        shown = [f"{name}={getattr(self, name)!r}" for name in self.__struct_fields__ if name not in self.hidden]
        return f"{type(self).__name__}({', '.join(shown)})"


MARK = "\ufeff"  # the byte order mark, which Windows editors write before UTF-8
_UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_QUOTES = "\"'`"


class NotText(ValueError):
    """The bytes are not text in UTF-8."""


def decoded(content: bytes) -> str:
    """Decodes UTF-8, drops a byte order mark, and keeps line ends as they are. Raises NotText."""
    if content.startswith(_UTF_16):
        raise NotText("is UTF-16: save it as UTF-8")
    if b"\0" in content:
        raise NotText("has a NUL byte in it, as UTF-16 and binary files do: save it as UTF-8 text")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise NotText(f"is not UTF-8 in line {line}: save it as UTF-8") from None


def read_text(path: Path) -> str:
    """Returns a file's text with each line end as a line feed. Raises OSError or NotText."""
    return decoded(path.read_bytes()).replace("\r\n", "\n").replace("\r", "\n")


def secret(value: str) -> str:
    """Returns an API key without surrounding blanks. Raises ValueError for a key that does not fit in a header."""
    found = value.strip().removeprefix(MARK).strip()
    if any(quote in found for quote in _QUOTES):
        raise ValueError("has a quote in it: write the key alone, without quotes")
    if not all("!" <= letter <= "~" for letter in found):
        raise ValueError("must be one word of printable ASCII: copy the key again, without blanks or other text")
    return found


def variable(value: str) -> str:
    """Returns an environment variable's text without surrounding blanks and line ends. Raises ValueError.

    A file of variables saved on Windows leaves a carriage return, and some tools keep the quotes.
    """
    found = value.strip()
    if len(found) > 1 and found[0] == found[-1] and found[0] in _QUOTES:
        raise ValueError("has quotes around it: write the value without them")
    if any(ord(letter) < 32 or ord(letter) == 127 for letter in found):
        raise ValueError("has a line end or another control character in it: write it on one line")
    if not found.isascii() and any("\ud800" <= letter <= "\udfff" for letter in found):
        raise ValueError("is not UTF-8: write it in UTF-8")
    return found


MAX_DEPTH = 10
MOST_KEYS, MOST_VALUES = 100, 2000  # in one object; in the whole body, at any depth
_MAX_DIGITS = 60
_SHOWN = 60


class BadJson(ValueError):
    """Refused JSON; the message names the field and its fault, and can be shown to the caller as it is."""


_preparing = threading.Lock()


@cache
def reader_of(kind: Any) -> Decoder[Any]:
    """Returns the reader of JSON for this type, in any thread; call it before `convert` to this type, too.

    msgspec 0.22 prepares a type at its first use, and crashes the process if two threads do that at the same time.
    """
    with _preparing:
        return Decoder(kind)


def read_object(given: bytes, name: str = "body", most_values: int = MOST_VALUES) -> dict[str, Any]:
    """Reads the JSON object in `given`; messages about faults call it `name`. Raises BadJson."""
    reader = _Reader(name, most_values)
    try:
        value = json.loads(
            given.decode(),
            parse_int=reader.whole,
            parse_float=reader.decimal,
            parse_constant=reader.constant,
            object_pairs_hook=reader.object,
        )
    except BadJson:
        raise
    except (ValueError, RecursionError):
        raise BadJson(f"{name}: is not valid JSON") from None
    if not isinstance(value, dict):
        raise BadJson(f"{name}: must be a JSON object")
    _Checker(name, most_values).check(value, MAX_DEPTH)
    return value


def shown(key: str, most: int = _SHOWN) -> str:
    """Makes text from a caller safe to repeat in a message: printable, and at most `most` characters."""
    return "".join(letter if letter.isprintable() else "?" for letter in key[:most])


class _Counter:
    """Counts values. Too many end the reading, because all other requests wait meanwhile."""

    def __init__(self, name: str, most: int) -> None:
        self._most = self._left = most
        self._name = name

    def count(self) -> None:
        """Counts one value. Raises BadJson."""
        self._left -= 1
        if self._left < 0:
            raise self.fault(f"has more than {self._most} values")

    def fault(self, text: str) -> BadJson:
        """Makes the error for a fault of the whole input, not of one field."""
        return BadJson(f"{self._name}: {text}")


class _Reader(_Counter):
    """Reads and counts numbers and objects while JSON is parsed; other values are counted by _Checker."""

    def whole(self, text: str) -> int | Decimal:
        self.count()
        return int(text) if len(text) <= _MAX_DIGITS else Decimal("Infinity")

    def decimal(self, text: str) -> Decimal:
        self.count()
        try:
            return Decimal(text)
        except InvalidOperation:
            return Decimal("Infinity")

    def constant(self, text: str) -> Any:
        raise self.fault(f"{text} is not a JSON number")

    def object(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        self.count()
        if len(pairs) > MOST_KEYS:
            raise self.fault(f"has an object with more than {MOST_KEYS} fields")
        found: dict[str, Any] = {}
        for key, value in pairs:
            if key in found:
                raise BadJson(f"{shown(key)}: is given more than once")
            found[key] = value
        return found


class _Checker(_Counter):
    """Counts and checks all values after parsing."""

    def check(self, value: Any, depth: int) -> None:
        self.count()
        if isinstance(value, str):
            self._check_text(value)
        elif isinstance(value, dict | list):
            if depth == 0:
                raise self.fault("is nested too deeply")
            if isinstance(value, dict):
                for key in value:
                    self._check_text(key)
                value = value.values()
            for item in value:
                self.check(item, depth - 1)

    def _check_text(self, text: str) -> None:
        """Refuses a lone surrogate, because such text can be neither stored nor sent."""
        try:
            text.encode()
        except UnicodeEncodeError:
            raise self.fault("has text that is not valid Unicode") from None


LONGEST = 2_000
INSCRIPTION = r"[0-9a-f]{64}i(?:0|[1-9][0-9]{0,9})"
TICKER_EXAMPLE = "UNCOMMON\u2022GOODS"

_BLANKS = " \t\r\n\u00a0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200B)))
_NO_WIDTH = "\u00ad\u200b\u200c\u200d\u2060\ufeff"
_RUN = re.compile(f"[{_BLANKS}]+")
_RUN_IN_A_LINE = re.compile(f"[{_BLANKS.replace(chr(10), '').replace(chr(13), '')}]+")
_DROPPED = dict.fromkeys(map(ord, _NO_WIDTH))
_PAGE = re.compile(r"(?:https?://)?[a-z0-9-]+(?:\.[a-z0-9-]+)+(?::[0-9]+)?/([^?#]*)(?:[?#].*)?", re.I | re.ASCII)
_INSCRIPTION = re.compile(INSCRIPTION, re.I | re.ASCII)
_IN_PAGE = re.compile(rf"(?<![0-9a-z]){INSCRIPTION}(?![0-9a-z])", re.I | re.ASCII)
_SPACER = re.compile(" ?[\u2022\u00b7.] ?")
_BULLET = "\u2022"
_HEX = re.compile("(?:[0-9a-fA-F]{2})+")
_BASE64 = re.compile("[A-Za-z0-9+/]+={0,2}")
_SCHEME = "bitcoin:"
_SIMPLE, _OTHER_PROOFS = "smp", ("ful", "pof")  # prefixes of BIP-322


class PasteError(BidkeeperError):
    """A pasted text that has no meaning for its field, or more than one."""


def trimmed(text: str) -> str:
    """Returns a free text, such as a name, without surrounding blanks and zero-width characters."""
    return text.strip(_BLANKS + _NO_WIDTH)


def bare(text: str) -> str:
    """Drops surrounding blanks and all zero-width characters; each run of blanks inside becomes one space."""
    if len(text) > LONGEST:
        raise PasteError(f"is longer than {LONGEST} characters")
    found = _RUN_IN_A_LINE.sub(" ", text.translate(_DROPPED).strip(_BLANKS))
    if not found.isprintable():
        raise PasteError("has a control or invisible character: copy it again without formatting, or type it")
    return found


def slug(type: str, text: str) -> str:
    """Returns the ticker for a task of type `rune`, and the collection's slug for other types."""
    return ticker(text) if type == "rune" else collection(text)


def collection_id(text: str) -> str:
    """Returns a collection's id, also from a page's address. The case is kept because some marketplaces need it."""
    return _from_page(bare(text), "collection", "paste the collection's slug, such as bitcoin-puppets")


def collection(text: str) -> str:
    """Returns a collection's slug in lower case, also from the address of a page that ends in /collection/SLUG."""
    found = collection_id(text)
    return found.lower() if found.isascii() else found  # lower() turns some letters, such as K (Kelvin), into ASCII


def ticker(text: str) -> str:
    """Returns a rune's ticker in upper case with bullets, also from the address of a page that ends in /rune/NAME.

    A dot, a middle dot and a blank count as bullets. A symbol after the name is dropped unless it may be a letter.
    """
    example = f"paste the rune's ticker, such as {TICKER_EXAMPLE}"
    found = _SPACER.sub(_BULLET, _without_symbol(_from_page(bare(text), "rune", example)))
    if re.fullmatch("[0-9]+:[0-9]+", found):
        raise PasteError(f"is a rune's id: {example}")
    if found[-2:-1] == " ":
        raise PasteError("ends in a single character after a blank: put a bullet in its place, or remove the character")
    found = found.replace(" ", _BULLET)
    return found.upper() if found.replace(_BULLET, "").isascii() else found


def without_spacers(text: str) -> str:
    """Returns a part of a ticker without its spacers, for a search while the user types."""
    return _SPACER.sub("", text).replace(" ", "")


def _without_symbol(text: str) -> str:
    """Drops a final word of non-ASCII symbols, such as a rune's emoji. An ASCII symbol may have another meaning."""
    from unicodedata import category  # imported here because workers never need it

    name, blank, last = text.rpartition(" ")
    is_symbol = not last.isascii() and category(last[0])[0] == "S" and all(category(each)[0] in "SM" for each in last)
    return name if blank and is_symbol else text


def _from_page(text: str, noun: str, what_to_do: str) -> str:
    """Returns NAME of a web address that ends in /`noun`/NAME; text without a slash is unchanged. Raises PasteError."""
    if "/" not in text:
        return text
    page = _PAGE.fullmatch(text)
    parts = [unquote(part) for part in page[1].rstrip("/").split("/")] if page else []
    if len(parts) < 2 or parts[-2].lower() != noun or not parts[-1] or "/" in parts[-1]:
        raise PasteError(f"is an address that does not end in /{noun}/ and a name: {what_to_do}")
    return bare(parts[-1])


def inscription(text: str) -> str:
    """Returns an inscription's id, also from an explorer's or marketplace's address with one id in it."""
    found = bare(text)
    what = "an inscription's id has 64 hex digits, the letter i and an index, such as 6fb976ab...2799i0"
    if _PAGE.fullmatch(found):
        ids = {each.lower() for each in _IN_PAGE.findall(found)}
        if len(ids) != 1:
            raise PasteError(f"is an address with {'several ids' if ids else 'no id'} in it: {what}")
        return ids.pop()
    if _INSCRIPTION.fullmatch(found):
        return found.lower()
    if re.fullmatch("#?-?[0-9][0-9,]{0,20}", found):
        raise PasteError(f"is an inscription's number, and its id is needed: {what}")
    if re.fullmatch("[0-9a-fA-F]{64}", found):
        raise PasteError(f"is a transaction's id: add i and the inscription's index, mostly i0; {what}")
    raise PasteError(f"is no inscription's id: {what}")


def address(text: str) -> str:
    """Returns the Bitcoin address in `text`, also from a `bitcoin:` URI (BIP-21), unverified.

    Amount, label and unknown parameters of a URI are ignored because they are not part of the address. A parameter
    that BIP-21 marks as required (`req-`) makes the URI invalid for a reader that does not know it.
    """
    found = bare(text)
    if not found.lower().startswith(_SCHEME):
        return found
    body, _, query = found[len(_SCHEME) :].partition("?")
    names = [unquote(each.partition("=")[0]).lower() for each in query.split("&")]
    if any(name.startswith("req-") for name in names):
        raise PasteError("is a payment request with a condition (req-): paste the address alone")
    if not body or not {"bc", "tb"}.isdisjoint(names):  # BIP-321 allows addresses as parameters
        raise PasteError("is a payment request with addresses in its parameters: paste one address alone")
    return body


def signature(text: str) -> str:
    """Returns a signature in padded base64 of the standard alphabet; a prefix `smp` is kept.

    The input may be base64 with or without padding, in either alphabet, or hex, with blanks anywhere. The bits are not
    changed, so the verifier decides as it would on the original. Text of hex digits only is hex, because the base64 of
    a BIP-322 proof or of a recoverable signature has another letter among its first two.
    """
    found = bare(_joined(text))
    if found.startswith(_OTHER_PROOFS):
        raise PasteError("is not of BIP-322's simple kind; ask the wallet for bip322-simple")
    prefix = _SIMPLE if found.startswith(_SIMPLE) else ""
    body = found.removeprefix(_SIMPLE)
    if digits := _hex_digits(body):
        return prefix + base64.b64encode(bytes.fromhex(digits)).decode()
    body = body.replace("-", "+").replace("_", "/")
    if not _BASE64.fullmatch(body):
        raise PasteError("is neither base64 nor hex: copy it again from the wallet")
    if "=" not in body:
        body += "=" * (-len(body) % 4)
    if len(body) % 4 or body.endswith("==="):
        raise PasteError("is cut off or has letters too many: copy it again from the wallet")
    return prefix + body


def public_key(text: str) -> str:
    """Returns a public key of 32 or 33 bytes as lower-case hex."""
    digits = _hex_digits(bare(_joined(text)))
    if len(digits) not in (64, 66):
        raise PasteError("must be 64 or 66 hex digits")
    return digits.lower()


def _joined(text: str) -> str:
    """Removes all blanks, because some wallets break such a text into lines and groups."""
    return _RUN.sub("", text)


def _hex_digits(text: str) -> str:
    """Returns the hex digits of a text with or without 0x; "" for other text."""
    digits = text[2:] if text[:2] in ("0x", "0X") else text
    return digits if _HEX.fullmatch(digits) else ""
