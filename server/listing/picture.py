"""The picture of an inscription, fetched through the gateway: no third party learns from a browser what its owner has.

A picture is somebody else's bytes, answered under our name. So its type is one of a few, found in the bytes themselves,
and the headers let no browser guess another, run anything in it, or load anything for it.
"""

from __future__ import annotations

from typing import Any

from markets.base import TooManyLookups, VenueError
from markets.pictures import NoPicture, Picture
from models import inscriptions
from server.http import blocking
from server.http.base import SignedIn
from server.listing import placeholder
from server.listing.inscriptions import inscription_in, look_up

_MAX_AGE_S = 30.0
# Seconds for which the browser alone may keep an answer.
_PICTURE_S, _LACKING_S, _AWAY_S = 86_400, 3_600, 60
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; sandbox",
    "Content-Disposition": "inline",
    "Cross-Origin-Resource-Policy": "same-origin",
}


class InscriptionPictureHandler(SignedIn):
    """GET /api/autolist/item/:inscriptionId/image"""

    has_etag = True
    answers_s = 12.0  # the gateway fetches ten a second, and a page asks for sixty

    async def get(self, named: str) -> None:
        inscription_id = inscription_in(named)
        way, user = self.services.pictures, self.user.id
        way.count(user)
        url = await self._url(inscription_id)
        try:
            found = await way.picture(user, inscription_id, url, self.until)
        except TooManyLookups as error:
            raise blocking.answer_to(error) from error
        except VenueError:  # the gateway has too much to fetch, or is away: there may be one in a minute
            found = NoPicture("unreachable")
        self.require_signed_in()
        self._show(inscription_id, found)

    async def _url(self, inscription_id: str) -> str | None:
        """Returns the picture's address as a venue told it; only of an inscription that was never told one is asked."""
        told = inscriptions.told_of(inscription_id)
        if told is not None:
            return told.image_url
        try:
            detail: dict[str, Any] = await look_up(self, self.look, inscription_id, _MAX_AGE_S)
        except VenueError as error:
            raise blocking.answer_to(error) from error
        url: str | None = detail["imageUrl"]
        return url

    def _show(self, inscription_id: str, found: Picture | NoPicture) -> None:
        for name, value in HEADERS.items():
            self.set_header(name, value)
        if isinstance(found, Picture):
            self._send(found.media, found.data, _PICTURE_S)
            return
        kept_s = _AWAY_S if found.instead == "unreachable" else _LACKING_S
        self._send(placeholder.MEDIA, placeholder.drawn(inscription_id, found.instead), kept_s)

    def _send(self, media: str, data: bytes, kept_s: int) -> None:
        self.set_header("Content-Type", media)
        self.set_header("Cache-Control", f"private, max-age={kept_s}")
        self.send(data)
