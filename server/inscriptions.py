"""Inscriptions: those of the caller's addresses, one in detail, and its picture.

A marketplace's answers are cached for five minutes. A picture is fetched through the gateway, so that browsers do not
reveal to third parties what their users own. A picture is untrusted content served from our origin. So only a few types
are allowed, detected from the bytes, and the headers stop browsers from guessing another type, running or loading code.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Annotated

from msgspec import Raw

from core import fields
from core.fields import Sats, words
from markets.base import PICTURE_MEDIA, Instead, Item, NoPicture, Picture, VenueError, WalletItem
from markets.parse import link
from models import venue_memory
from models.accounts import READ
from models.venue_memory import Told
from server.http import blocking
from server.http.answers import INVALID, SIGNER_AWAY, TOO_MANY_LOOKUPS, UNREADABLE, ApiError, Trait
from server.http.base import SignedIn, route
from server.http.blocking import UserMarket
from server.http.shapes import Answer, Asked, dumps, read_by, shown_as
from server.task_handler import venue_telling_wallets

KEPT_MS = 300_000
REFRESHED_MS = 20_000  # maximum age of an answer to a refresh, so that a page that always refreshes costs little
# The gateway's copies may be this old, so that refreshing a wallet does not use up the venue's quota.
_MAX_AGE_S = 30.0
_MOST_ITEMS = 500
_MOST_TEXT = 500
_MOST_TRAITS = 100
# Seconds for which a browser, but no proxy, may cache a picture.
_PICTURE_S, _LACKING_S, _AWAY_S = 86_400, 3_600, 60
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; sandbox",
    "Content-Disposition": "inline",
    "Cross-Origin-Resource-Policy": "same-origin",
}
DRAWING = "image/svg+xml"


class Refreshed(Asked, frozen=True, kw_only=True):
    """The query of kept answers."""

    refresh: Annotated[
        str | None,
        read_by(str),
        words("`1` reads afresh what is older than 20 seconds; else it is kept for 5 minutes."),
    ] = None

    @property
    def kept_ms(self) -> int:
        """The maximum age of a cached answer."""
        return REFRESHED_MS if self.refresh == "1" else KEPT_MS

    @property
    def max_age_s(self) -> float:
        """The maximum age of the gateway's answer."""
        return REFRESHED_MS / 1000 if self.refresh == "1" else _MAX_AGE_S


class WalletInscription(Answer, frozen=True, kw_only=True):
    """An inscription at one of the caller's addresses; details that the venue does not tell are null."""

    id: str
    name: str | None
    collection_id: str | None
    collection_name: str | None
    image_url: str | None
    listed: bool
    listing_price: Sats | None
    address: str


class Inscription(Answer, frozen=True, kw_only=True):
    """One inscription; details that the venue does not tell are null."""

    id: str
    inscription_number: int | None
    name: str | None
    collection_id: str | None
    collection_name: str | None
    image_url: str | None
    content_url: str | None
    content_type: str | None
    owner: str | None
    location: str | None
    output: str | None
    output_value: int | None
    genesis_transaction: str | None
    listed: bool
    listing_price: int | None
    seller: str | None
    top_bid: int | None
    traits: list[Trait] | None


class Inscriptions(SignedIn):
    """The operations on inscriptions."""

    tag = "inscriptions"

    def named(self, path: str) -> str:
        """Returns the id of the inscription in a path. Raises ApiError (404) with a message that explains ids."""
        try:
            return fields.inscription(path)
        except fields.PasteError as error:
            raise ApiError(404, "Not found", message=f"The inscription in the path {error}.") from None

    @route(
        "GET /api/autolist/wallet/ordinals",
        READ,
        says="At most 500.",
        answer=list[WalletInscription],
        errors={
            400: INVALID,
            404: "The marketplace does not know an address.",
            429: TOO_MANY_LOOKUPS,
            502: UNREADABLE,
            503: SIGNER_AWAY,
        },
    )
    async def list_inscriptions(self, asked: Refreshed) -> list[Raw]:
        """Inscriptions at my ordinals address and vault

        Each with the address that holds it, and its listing where the marketplace knows one.
        """
        keys = await self.ask_signer(lambda signer: signer.addresses(self.user.address))
        addresses = dict.fromkeys((self.user.ordinals_address, keys.vault))
        items = await asyncio.gather(*(self._items(address, asked) for address in addresses))
        return [*chain.from_iterable(items)][:_MOST_ITEMS]

    async def _items(self, address: str, asked: Refreshed) -> list[Raw]:
        kept = venue_memory.cached_wallet(address, self.now_ms - asked.kept_ms, self.now_ms)
        if kept is None:
            venue = venue_telling_wallets(self.services.settings)
            items = await self.ask_market(lambda market: market.at(venue).wallet_contents(address, asked.max_age_s))
            kept = "\n".join(dumps(_item(item, address)) for item in items[:_MOST_ITEMS])
            told = {item.id: Told(item.collection_id, link(item.image_url)) for item in items[:_MOST_ITEMS]}
            venue_memory.store_wallet(address, kept, told, self.now_ms)
        # One item on each line, because this JSON contains no line breaks.
        return [Raw(line.encode()) for line in kept.splitlines()]

    @route(
        "GET /api/autolist/item/{inscriptionId}",
        READ,
        of=named,
        says="The inscription.",
        answer=Inscription,
        errors={400: INVALID, 404: "There is no such inscription.", 429: TOO_MANY_LOOKUPS, 502: UNREADABLE},
    )
    async def get_inscription(self, inscription_id: str, asked: Refreshed) -> Inscription | Raw:
        """One inscription

        What the marketplace of the installation tells of it; what it does not tell is null.
        """
        kept = venue_memory.cached_inscription(inscription_id, self.now_ms - asked.kept_ms, self.now_ms)
        if kept is not None:
            return Raw(kept.encode())
        return await self._looked_up(inscription_id, asked.max_age_s)

    async def _looked_up(self, inscription_id: str, max_age_s: float) -> Inscription:
        try:
            return await look_up(self, self.look, inscription_id, max_age_s)
        except VenueError as error:
            raise blocking.answer_to(error) from error

    @route(
        "GET /api/autolist/item/{inscriptionId}/image",
        READ,
        of=named,
        says="The picture, or a drawing in its place.",
        media=PICTURE_MEDIA[0],
        others=(*PICTURE_MEDIA[1:], DRAWING),
        errors={404: "There is no such inscription.", 429: TOO_MANY_LOOKUPS, 502: UNREADABLE},
        has_etag=True,
        answers_s=12.0,  # because the gateway fetches ten a second, and a page requests sixty
    )
    async def get_inscription_picture(self, inscription_id: str) -> None:
        """The picture of one inscription

        Fetched by the service, so that a browser asks nobody else what its owner holds. Its type is found in its bytes,
        of which there are 2,000,000 at most. In place of anything else (a page, SVG, text, a picture that cannot be had
        now) a drawing says so, whose type is `image/svg+xml`, as no picture's is.
        """
        pictures, user = self.services.pictures, self.user.id
        pictures.count(user)
        # A venue is asked only if the address of the picture is not known yet.
        told = venue_memory.told_of(inscription_id)
        url = (told or await self._looked_up(inscription_id, _MAX_AGE_S)).image_url
        found = await pictures.picture(user, inscription_id, url, self.until)
        self.require_signed_in()
        show_picture(self, inscription_id, found)


def show_picture(handler: SignedIn, of: str, found: Picture | NoPicture) -> None:
    """Answers the picture, or the drawing `of` this in its place, with headers that let a browser do no more."""
    for name, value in _HEADERS.items():
        handler.set_header(name, value)
    if isinstance(found, Picture):
        data, kept_s = found.data, _PICTURE_S
    else:
        data = drawn(of, found.instead)
        kept_s = _AWAY_S if found.instead == "unreachable" else _LACKING_S
    handler.set_header("Content-Type", found.media if isinstance(found, Picture) else DRAWING)
    handler.set_header("Cache-Control", f"private, max-age={kept_s}")
    handler.send(data)


async def look_up(
    handler: SignedIn, ask: UserMarket, inscription_id: str, max_age_s: float, venue: str | None = None
) -> Inscription:
    """Reads a marketplace's details of an inscription by `ask`. Raises VenueError.

    They are cached if they are from the usual marketplace: `venue` is None or its name.
    """
    usual = venue_telling_wallets(handler.services.settings)
    asked = venue or usual
    detail = _detail(await ask(lambda market: market.at(asked).item(inscription_id, max_age_s)))
    if asked == usual:
        told = Told(detail.collection_id, detail.image_url)
        venue_memory.store_inscription(inscription_id, dumps(detail), told, handler.now_ms)
    return detail


def _item(item: WalletItem, address: str) -> WalletInscription:
    return shown_as(WalletInscription, item, **_texts(item, *_NAMES), image_url=link(item.image_url), address=address)


def _detail(item: Item) -> Inscription:
    """Converts the venue's record to the shape of this API."""
    return shown_as(
        Inscription,
        item,
        **_texts(item, *_NAMES, "content_type", "owner", "location", "output", "seller"),
        inscription_number=item.number,
        genesis_transaction=_text(item.genesis),
        traits=None if item.traits is None else _traits(item.traits),
    )


_NAMES = ("name", "collection_id", "collection_name")


def _texts(item: Item | WalletItem, *names: str) -> dict[str, str | None]:
    return {name: _text(getattr(item, name)) for name in names}


def _traits(told: Sequence[tuple[str, str]]) -> list[Trait]:
    texts = [(_text(kind), _text(value)) for kind, value in told]
    return [Trait(type=kind, value=value) for kind, value in texts if kind and value][:_MOST_TRAITS]


def _text(value: str | None) -> str | None:
    """Returns a text from a venue, shortened and without unprintable characters."""
    return "".join(letter for letter in (value or "")[:_MOST_TEXT] if letter.isprintable()) or None


# ---- the placeholder for a missing picture: a pattern derived from the inscription's id, and one word

_WORDS: Mapping[Instead, str] = {
    "none": "no picture",
    "unreachable": "no picture",
    "too_large": "too large",
    "svg": "SVG",
    "html": "HTML",
    "text": "text",
    "video": "video",
    "file": "file",
}
_CELLS, _CELL = 5, 40
_SIDE = _CELLS * _CELL
# Background and two tones; all are dark enough for white text.
_TONES = (
    ("#26323f", "#2f4052", "#3a4f66"),
    ("#2b2f45", "#383d5c", "#474e75"),
    ("#233a38", "#2d4a48", "#395d5a"),
    ("#3d2f3f", "#4e3c51", "#614b65"),
    ("#3f3529", "#514434", "#655541"),
)


def drawn(inscription_id: str, instead: Instead) -> bytes:
    """Draws an SVG of 200 by 200 pixels, always the same for an inscription and a kind."""
    digest = hashlib.sha256(inscription_id.encode()).digest()
    ground, *tones = _TONES[digest[0] % len(_TONES)]
    word = _WORDS[instead]
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_SIDE} {_SIDE}" width="{_SIDE}" height="{_SIDE}" '
        f'role="img" aria-label="{word}">',
        f'<rect width="{_SIDE}" height="{_SIDE}" fill="{ground}"/>',
        *_pattern(digest, tones),
        f'<rect y="{_SIDE - 2 * _CELL}" width="{_SIDE}" height="{_CELL}" fill="{ground}"/>',
        f'<text x="{_SIDE // 2}" y="{_SIDE - _CELL - 13}" fill="#ffffff" font-family="system-ui, sans-serif" '
        f'font-size="20" text-anchor="middle">{word}</text>',
        "</svg>",
    ]
    return "".join(parts).encode()


def _pattern(digest: bytes, tones: list[str]) -> Iterator[str]:
    """Draws cells, mirrored left to right."""
    half = (_CELLS + 1) // 2
    for row in range(_CELLS):
        for column in range(half):
            chosen = digest[1 + row * half + column] % 4
            if chosen < len(tones):
                for at in {column, _CELLS - 1 - column}:
                    yield (
                        f'<rect x="{at * _CELL}" y="{row * _CELL}" width="{_CELL}" height="{_CELL}" '
                        f'fill="{tones[chosen]}"/>'
                    )
