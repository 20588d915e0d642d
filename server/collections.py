"""Collections and runes to choose from, and the traits of one: their names, pictures and floors.

All of it comes from answers to other questions, or from the caller's own past. So it may be asked at every letter, and
what it leaves out may exist all the same. Pictures go the way of those of inscriptions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Annotated, Any
from urllib.parse import urlencode

from msgspec import Meta

from core import fields
from core.fields import Count, Price, Sats, Slug, Time, iso, text_of, words
from core.settings import VENUES
from markets.base import PICTURE_MEDIA, Kind, Known, NotFound, TooManyLookups, VenueError
from markets.client import MarketClient
from models import presets, users
from models.accounts import READ
from models.tasks import tasks
from models.tasks.tasks import BIDDING, LISTING
from server import task_handler
from server.http import answers, blocking
from server.http.answers import INVALID, TOO_MANY_LOOKUPS, UNREADABLE, Venue, invalid, not_found
from server.http.base import SignedIn, route
from server.http.shapes import Answer, Asked, exact, one_of, own_words, read_by
from server.inscriptions import DRAWING, show_picture
from strategy.config.bid import TYPES, normal_slug
from wallet.signer_client import SignerError

MOST_FOUND = 20
MOST_FACES = 1_000
_AT_ONCE = 500  # slugs in one question to the gateway
_MOST_VALUES = 3_000
_VENUE = words("The marketplace, by its name; the default one when left out.")
_Venue = Annotated[str | None, one_of(VENUES), _VENUE]
_Type = Annotated[str, one_of(TYPES), words("What the slug names.")]
_Slug = Annotated[str, read_by(str), words("Collection slug or rune ticker.", min_length=1)]
_Picture = Annotated[str | None, words("The path of its picture here; null: none is known.")]
_Name = Annotated[str | None, words("As the marketplace writes it; null: it is not known.")]


class AskedCollections(Asked, frozen=True, kw_only=True):
    """A search of collections or runes."""

    venue: _Venue = None
    type: _Type = "ordinals"
    q: Annotated[
        Annotated[str, text_of(1, 200)] | None,
        read_by(own_words),
        words("A part of the slug or name, tickers with or without bullets; all when left out."),
    ] = None


class AskedCollection(Asked, frozen=True, kw_only=True):
    """One collection or rune."""

    venue: _Venue = None
    type: _Type = "ordinals"
    slug: _Slug


class Collection(Answer, frozen=True, kw_only=True):
    """A collection or rune, as the marketplace showed it."""

    slug: Annotated[Slug, words("As tasks name it: a rune's with its bullets, where they are known.")]
    type: answers.Kind
    name: _Name
    picture: _Picture
    floor: Annotated[Price | None, words("Sats of an item, or per token; null: nothing is listed, or it is not known.")]
    floor_at: Annotated[Time | None, words("When that was read; null: it never was.")]
    listed: Annotated[Count | None, words("Listings then.")]
    volume_sats: Annotated[Sats | None, words("All that was paid for it there, as the marketplace counts.")]
    told_at: Annotated[Time | None, words("When the marketplace showed it last; null: it is from your past alone.")]
    is_own: Annotated[bool, words("You had to do with it here: tasks, bids, presets, items.")]
    task_id: Annotated[int | None, words("The caller's bidding task on it; null: none.")]


class FoundCollections(Answer, frozen=True, kw_only=True):
    """The collections or runes of a search: one's own first, then by volume, then by name."""

    venue: Venue
    collections: Annotated[list[Collection], Meta(max_length=MOST_FOUND)]
    is_whole: Annotated[bool, words("These are all.")]


class Face(Answer, frozen=True, kw_only=True):
    """The name and picture of a collection or rune that one of the caller's tasks is on."""

    venue: Venue
    type: answers.Kind
    slug: Slug
    name: _Name
    picture: _Picture


class TraitValue(Answer, frozen=True, kw_only=True):
    """One value of a trait."""

    value: str
    count: Annotated[Count | None, words("Items that have it; null: not known.")]
    floor_sats: Annotated[Sats | None, words("The cheapest listing with it in the book; null: none there, or no book.")]


class TraitType(Answer, frozen=True, kw_only=True):
    """One type of traits with its values, the rarest first."""

    type: str
    values: list[TraitValue]


class CollectionTraits(Answer, frozen=True, kw_only=True):
    """The traits of a collection."""

    slug: Slug
    venue: Venue
    types: Annotated[list[TraitType] | None, words("Null: the marketplace does not show them.")]
    unknown: Annotated[str | None, words("Why `types` has no counts, or is null; else null.")]
    floors_at: Annotated[Time | None, words("When the book was read that floors are from; null: none was read lately.")]
    is_whole: Annotated[bool, words("These are all values.")]


class Choices(SignedIn):
    """The operations on collections."""

    tag = "market"

    @route("GET /api/market/collections", READ, says=f"At most {MOST_FOUND}.", errors={400: INVALID})
    async def search_collections(self, asked: AskedCollections) -> FoundCollections:
        """Search collections and runes

        The caller's own, and those that the marketplace named in other answers; with several users here, only those
        that it named unasked. It is not asked for this: what is not found may exist all the same.
        """
        venue, kind = self._venue(asked.venue), _kind(asked.type)
        own = {
            normal_slug(asked.type, each.slug): each
            for each in presets.known_slugs(self.user.id, await self._addresses())
            if each.type == asked.type
        }
        told = await self._told(venue, kind, [each.slug for each in own.values()][:_AT_ONCE], asked.q or "")
        found: dict[str, tuple[Known, presets.KnownSlug | None]] = {
            normal_slug(asked.type, each.slug): (each, None) for each in told
        }
        for key, each in own.items():
            known, _ = found.get(key, (Known(kind, each.slug), None))
            found[key] = known, each
        fitting = [pair for pair in found.values() if _fits(asked.q or "", *pair)]
        fitting.sort(key=_order)
        best = [self._shown(venue, asked.type, *pair) for pair in fitting[:MOST_FOUND]]
        return FoundCollections(venue=venue, collections=best, is_whole=len(fitting) <= MOST_FOUND)

    @route("GET /api/market/faces", READ, says=f"At most {MOST_FACES}; what is not known is left out.")
    async def list_faces(self) -> list[Face]:
        """Names and pictures of what my tasks are on

        As marketplaces showed them in other answers; none is asked for this.
        """
        wanted = sorted(set(self._of_tasks()))[:MOST_FACES]
        # A restart of the gateway loses names; a stored wallet may have them.
        wallets = task_handler.venue_telling_wallets(self.services.settings)
        held = presets.known_slugs(self.user.id, await self._addresses())
        names = {(wallets, each.type, normal_slug(each.type, each.slug)): each.name for each in held if each.name}
        faces = list[Face]()
        for (venue, type_), each in groupby(wanted, key=lambda found: found[:2]):
            slugs = [slug for _, _, slug in each]
            told: dict[str, Known] = {}
            for start in range(0, len(slugs), _AT_ONCE):
                for known in await self._told(venue, _kind(type_), slugs[start : start + _AT_ONCE], None):
                    told[normal_slug(type_, known.slug)] = known
            for slug in slugs:
                key = normal_slug(type_, slug)
                known = told.get(key, Known(_kind(type_), slug))
                name, picture = known.name or names.get((venue, type_, key)), self._picture_of(venue, type_, known)
                if name or picture:
                    faces.append(Face(venue=venue, type=type_, slug=slug, name=name, picture=picture))
        return faces

    @route(
        "GET /api/market/traits",
        READ,
        says="The traits; with counts and floors where they are known.",
        errors={
            400: INVALID,
            404: "The marketplace does not know the collection.",
            429: TOO_MANY_LOOKUPS,
            502: UNREADABLE,
        },
    )
    async def list_traits(self, asked: AskedCollection) -> CollectionTraits:
        """Traits of a collection

        Counts are the marketplace's, kept as long as those that a task's trait is checked with. Floors are those of the
        book that was read last, within an hour: none is read for this.
        """
        venue, slug = self._venue(asked.venue), self._slug(asked)
        counts: dict[str, dict[str, int]] = {}
        unknown = None
        try:
            counts = await self.look(lambda market: market.at(venue).traits(slug, task_handler.TRAITS_AGE_S))
        except NotFound:
            raise not_found(f"The marketplace does not know {slug}.") from None
        except TooManyLookups as error:
            raise blocking.answer_to(error) from error
        except VenueError as error:
            unknown = str(error)
        book = await self.ask_market(lambda market: market.at(venue).trait_floors(slug))
        floors = {} if book is None else {(kind, value): price for kind, value, price in book.floors}
        if unknown is not None and not floors:
            return CollectionTraits(slug=slug, venue=venue, types=None, unknown=unknown, floors_at=None, is_whole=True)
        every: list[tuple[str, str, int | None]] = [
            (kind, value, count) for kind, values in counts.items() for value, count in values.items()
        ]
        every += [(*trait, None) for trait in floors if trait[1] not in counts.get(trait[0], {})]
        every.sort(key=lambda each: (each[0], each[2] or 0, each[1]))
        types = [
            TraitType(
                type=kind,
                values=[
                    TraitValue(value=value, count=count, floor_sats=floors.get((kind, value)))
                    for _, value, count in of_kind
                ],
            )
            for kind, of_kind in groupby(every[:_MOST_VALUES], key=lambda each: each[0])
        ]
        return CollectionTraits(
            slug=slug,
            venue=venue,
            types=types,
            unknown=unknown,
            floors_at=None if book is None else iso(book.taken_ms),
            is_whole=len(every) <= _MOST_VALUES,
        )

    @route(
        "GET /api/market/picture",
        READ,
        says="The picture, or a drawing in its place.",
        media=PICTURE_MEDIA[0],
        others=(*PICTURE_MEDIA[1:], DRAWING),
        errors={400: INVALID, 404: "No picture of it is known.", 429: TOO_MANY_LOOKUPS},
        has_etag=True,
        answers_s=12.0,
    )
    async def get_collection_picture(self, asked: AskedCollection) -> None:
        """The picture of a collection

        The marketplace's own, or of one of its items; fetched and judged as those of inscriptions.
        """
        venue, slug, pictures = self._venue(asked.venue), self._slug(asked), self.services.pictures
        pictures.count(self.user.id)
        told = await self._told(venue, _kind(asked.type), [slug], None)
        if not told or not _has_picture(told[0]):
            raise not_found()
        found = await pictures.picture(self.user.id, told[0].item, told[0].image_url, self.until)
        self.require_signed_in()
        show_picture(self, f"{venue} {slug}", found)

    async def _addresses(self) -> list[str]:
        """Returns where the caller's items are; without the vault while the signer is away."""
        known = [self.user.address, self.user.ordinals_address]
        try:
            keys = await self.services.signer(lambda signer: signer.addresses(self.user.address))
        except SignerError:
            return known
        return [*known, keys.vault]

    async def _told(self, venue: str, kind: Kind, slugs: Iterable[str], part: str | None) -> tuple[Known, ...]:
        """Returns what the gateway knows; nothing while it is away: one's own past is there all the same."""

        # Where there are several users, none learns what the others trade.
        only_public = part is not None and not users.is_alone()

        def question(market: MarketClient) -> tuple[Known, ...]:
            return market.at(venue).collections(kind, tuple(slugs), part, only_public=only_public)

        try:
            return await self.look(question)
        except VenueError:
            return ()

    def _of_tasks(self) -> Iterator[tuple[str, str, str]]:
        for task in tasks.of_user(self.user.id, BIDDING):
            if self.may_name(task.id):
                yield task.venue, task.type, task.slug
        for task in tasks.of_user(self.user.id, LISTING):
            if self.may_name(task.id) and task.collection_id:
                yield task.venue, "ordinals", task.collection_id

    def _shown(self, venue: str, type_: str, known: Known, own: presets.KnownSlug | None) -> Collection:
        floor, floor_ms = known.floor, known.floor_ms
        last = None if own is None or own.task_id is None else presets.last_floor(own.task_id)
        if last is not None and last[1] > (floor_ms or 0):
            floor, floor_ms = last
        return Collection(
            slug=known.slug,
            type=type_,
            name=known.name or (own.name if own is not None else None),
            picture=self._picture_of(venue, type_, known),
            floor=exact(floor),
            floor_at=None if floor_ms is None else iso(floor_ms),
            listed=known.listed,
            volume_sats=known.volume,
            told_at=iso(known.told_ms) if known.told_ms else None,
            is_own=own is not None,
            task_id=None if own is None else own.task_id,
        )

    def _picture_of(self, venue: str, type_: str, known: Known) -> str | None:
        if not _has_picture(known):
            return None
        return "/api/market/picture?" + urlencode({"venue": venue, "type": type_, "slug": known.slug})

    def _venue(self, name: str | None) -> str:
        venue, unknown = task_handler.named_venue({} if name is None else {"venue": name}, self.services.settings)
        if unknown:
            raise invalid(unknown)
        return venue

    def _slug(self, asked: AskedCollection) -> str:
        try:
            slug = fields.slug(asked.type, asked.slug)
        except fields.PasteError as error:
            raise invalid([f"slug: {error}"]) from None
        if not slug:
            raise invalid(["slug: is required"])
        return slug


def _kind(type_: str) -> Kind:
    return "runes" if type_ == "rune" else "ordinals"


def _has_picture(known: Known) -> bool:
    return known.image_url is not None or known.item is not None


def _fits(part: str, known: Known, own: presets.KnownSlug | None) -> bool:
    wanted = part.casefold()
    bare = fields.without_spacers(wanted)
    names = [known.name or "", "" if own is None else own.name or ""]
    slug = fields.without_spacers(known.slug.casefold())
    return bare in slug or any(wanted in name.casefold() for name in names)


def _order(pair: tuple[Known, presets.KnownSlug | None]) -> tuple[Any, ...]:
    known, own = pair
    return own is None, -(known.volume or 0), (known.name or known.slug).casefold(), known.slug
