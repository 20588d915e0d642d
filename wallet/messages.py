"""The texts that are signed: Satflow bid messages, venues' challenges and sign-ins, and our own sign-in text.

A bid's signature spends money and a sign-in's opens a session, so no text of one kind may pass as another. Bids are
composed here from checked fields; a venue's text is refused if it could be a bid or a sign-in here.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator

from core.errors import BidkeeperError
from wallet.address import AddressError, parse
from wallet.protocol import MAX_VENUE_TEXT, BidMessage, UserKeys

SIGN_IN_PHRASE = "Sign in to Bidkeeper"
MAX_SLUG = 200
# The first words of the venues' sign-in texts. The rest differs, and is not always documented in full.
_ORDNET, _ORDINALSWALLET = "Sign in to ord.net", "Sign in to Ordinals Wallet"
SIGN_IN_BEGINNINGS = {
    "ordnet": _ORDNET,
    "simulator-ordnet": _ORDNET,
    "ordinalswallet": _ORDINALSWALLET,
    "simulator-ordinalswallet": _ORDINALSWALLET,
}
# This venue rebuilds the text byte for byte, so it is known in full.
_ORDINALSWALLET_TEXT = re.compile(
    rf"{_ORDINALSWALLET}\n\n"
    r"This proves you own this address\. It does not move funds or cost a fee\.\n\n"
    r"Address: bc1[0-9a-z]{8,87}\nNonce: [0-9a-f]{32}\nIssued At: [1-9][0-9]{12}",
    re.ASCII,
)
SIGN_IN_TEXTS = {"ordinalswallet": _ORDINALSWALLET_TEXT, "simulator-ordinalswallet": _ORDINALSWALLET_TEXT}
MAX_QUANTITY = 60

_SLUG = re.compile(r"[A-Za-z0-9_.\u2022-]+")
_QUANTITY = re.compile(r"(?:0|[1-9][0-9]*)(?:\.[0-9]*[1-9])?")
_NONCE = re.compile(r"[0-9a-f]{32}")
# A witness program's address on any network, anywhere in a text. The shape is enough, because it is long.
_SEGWIT = re.compile(r"(?:bc|tb|bcrt)1[0-9a-z]{8,}")
# Letters and digits that may be an older address (1..., 3..., m..., n..., 2...), or a nonce.
_WORD = re.compile(r"[0-9A-Za-z]+")
# A number in any spelling that a program may accept: 5, +5.0, 1e3, 0x5, 5_000.
_NUMBER = re.compile(r"\s*[+\-.]?[0-9][0-9A-Fa-fXx_.,+\-]*\s*", re.ASCII)
_NUMBERS_OF_A_BID = 3  # price, quantity and expiry are next to each other
_OUR_NAME = SIGN_IN_PHRASE.split()[-1].lower()


class MessageError(BidkeeperError):
    """A text that breaks the grammar of its kind; the message says why."""


def check_slug(slug: str) -> None:
    """Raises MessageError unless `slug` is a collection's slug or a rune's (spaced) name."""
    if len(slug) > MAX_SLUG or not _SLUG.fullmatch(slug):
        raise MessageError("slug must be letters, digits, - _ . and the bullet of rune names")


def check_quantity(quantity: str) -> None:
    """Raises MessageError unless `quantity` is a positive decimal in its only spelling: 1, 1000, 0.5."""
    if len(quantity) > MAX_QUANTITY or not _QUANTITY.fullmatch(quantity) or quantity == "0":
        raise MessageError("quantity must be a positive decimal without exponent, sign or needless zeros")


def compose_bid(bid: BidMessage, keys: UserKeys, receive: str) -> str:
    """Composes Satflow's bid text, which the payment address signs.

    `<payment>:<pubkey>:<receive>:<price>:<quantity>:<expires_ms>:<slug>:<timestamp_ms>`. `receive` is a normalised
    address. Raises MessageError.
    """
    check_slug(bid.slug)
    check_quantity(bid.quantity)
    for name in ("price", "expires_ms", "timestamp_ms"):
        number = getattr(bid, name)
        if type(number) is not int or number <= 0:
            raise MessageError(f"{name} must be a whole number above 0")
    parts = (keys.payment, keys.payment_pubkey, receive)
    if not all(part.isascii() and part.isalnum() for part in parts):
        raise MessageError("an address or key has a character of its own")
    return ":".join([*parts, str(bid.price), bid.quantity, str(bid.expires_ms), bid.slug, str(bid.timestamp_ms)])


def check_challenge(challenge: str) -> None:
    """Raises MessageError unless a venue's challenge is harmless: no bid, no sign-in anywhere, and no mention of us.

    The form of challenges is not documented, so dangerous texts are refused and all others accepted.
    """
    if not 0 < len(challenge) <= MAX_VENUE_TEXT:
        raise MessageError(f"a challenge must have 1 to {MAX_VENUE_TEXT} characters")
    if not challenge.isascii() or not challenge.replace("\r\n", "").replace("\n", "").isprintable():
        raise MessageError("a challenge must be lines of printable ASCII")
    if _has_numbers_of_a_bid(challenge):
        raise MessageError("a challenge must not have three numbers in a row between colons: it could be a bid")
    squeezed = _squeezed(challenge)
    if any(_squeezed(beginning) in squeezed for beginning in SIGN_IN_BEGINNINGS.values()):
        raise MessageError("a challenge must not be a sign-in at a marketplace")
    if _names_us(challenge):
        raise MessageError("a challenge must not name this service: it could be its sign-in text")


def _has_numbers_of_a_bid(text: str) -> bool:
    in_a_row = 0
    for field in text.split(":"):
        in_a_row = in_a_row + 1 if _NUMBER.fullmatch(field) else 0
        if in_a_row == _NUMBERS_OF_A_BID:
            return True
    return False


def check_sign_in(text: str, venue: str, address: str) -> None:
    """Raises MessageError unless `text` signs `address` in at `venue` and nowhere else.

    It must begin as the venue's texts do, for example `Sign in to ord.net at 2026-05-08T18:00:00Z (nonce: …)`, so that
    it is not another service's; its blanks keep it from being a bid. Any address in it must be `address`. Ordinals
    Wallet's text is known in full.
    """
    beginning = SIGN_IN_BEGINNINGS.get(venue)
    if beginning is None:
        raise MessageError("it is not known what this venue's sign-in looks like")
    if len(text) > MAX_VENUE_TEXT or not text.isascii() or not text.replace("\n", "").isprintable():
        raise MessageError(f"a sign-in must be lines of printable ASCII, {MAX_VENUE_TEXT} characters at most")
    rest = text.removeprefix(beginning)
    if rest == text or rest[:1] not in (" ", "\n"):
        raise MessageError(f"a sign-in at {venue} must begin with {beginning!r}")
    exact = SIGN_IN_TEXTS.get(venue)
    if exact is not None and not exact.fullmatch(text):
        raise MessageError(f"a sign-in at {venue} must be word for word what its own client signs")
    if any(found != address.lower() for found in _addresses_in(text)):
        raise MessageError("a sign-in must not name another address than the one that signs it")
    if _names_us(text):
        raise MessageError("a sign-in elsewhere must not name this service: it could be its sign-in text")


def _addresses_in(text: str) -> Iterator[str]:
    """Yields every address in the text, of any network; those of witness programs in lower case."""
    yield from _SEGWIT.findall(text.lower())
    for word in _WORD.findall(text):
        with contextlib.suppress(AddressError):
            yield parse(word).text


def _names_us(text: str) -> bool:
    return _OUR_NAME in _squeezed(text)


def _squeezed(text: str) -> str:
    """Returns letters and digits alone, so that blanks or dashes inside a name cannot hide it."""
    return "".join(letter for letter in text.lower() if letter.isalnum())


def compose_sign_in(name: str, address: str, expires_at_iso: str, nonce_hex: str) -> str:
    """Composes the text by which a user signs in at `name` (domain, or host and port); nonce: 32 hex digits.

    Printable ASCII with LF between its lines, no blank at either end. Raises MessageError.
    """
    for field, value in (("name", name), ("address", address), ("expiry", expires_at_iso)):
        if not value or not value.isascii() or not value.isprintable() or value != value.strip():
            raise MessageError(f"the {field} in the sign-in text must be printable ASCII without blanks at its ends")
    if not _NONCE.fullmatch(nonce_hex):
        raise MessageError("the nonce must be 32 lower-case hex digits")
    return f"{SIGN_IN_PHRASE} at {name}\nAddress: {address}\nExpires: {expires_at_iso}\nNonce: {nonce_hex}"
