"""The way to a picture: which address is asked for it, and one exchange there.

Addresses come from venues, so from strangers. Only https on public hosts is asked, a redirect is not followed, no key
goes along, and no more is read than a picture may have. On the practice market its own pictures alone are asked for.
"""

from __future__ import annotations

import ipaddress
import logging
import time
from collections.abc import Sequence
from http.client import HTTPException
from urllib.parse import quote, urlsplit

from core.public_address import public_url_problem
from core.public_connection import Connection
from core.setting_values import Network
from gateway.picture_sizes import judged
from markets.pictures import MEDIA, MOST_BYTES, NoPicture, Picture

log = logging.getLogger(__name__)

LONGEST_S = 10.0  # from the first look-up of the name to the last byte
_AT_ONCE = 65_536
_THIS_MACHINE = (ipaddress.ip_network("127.0.0.0/8"),)
_HEADERS = {
    "User-Agent": "bidkeeper",
    "Accept": ", ".join(MEDIA),
    "Accept-Encoding": "identity",
    "Connection": "close",
}


class PictureSource:
    """The source of pictures. May be used by several threads at once.

    `practice` is the address of the practice market, where it is traded at; `networks` are those, beside the public
    one, that may be asked.
    """

    def __init__(
        self,
        practice: str | None = None,
        networks: Sequence[Network] = (),
        longest_s: float = LONGEST_S,
        public_name: str = "",
    ) -> None:
        self._practice = practice
        self._networks = _THIS_MACHINE if practice is not None else networks
        self._longest_s = longest_s
        self._public_name = public_name

    def address_of(self, inscription_id: str, url: str | None) -> str | None:
        """Returns the address to ask for an inscription's picture, or None; `url` is what a venue told."""
        if self._practice is not None:
            return f"{self._practice}/content/{quote(inscription_id, safe='')}"
        if url is None or public_url_problem(url, self._networks) is not None:
            return None
        # Pictures are on the web's own port: nobody is to have others' ports asked by us.
        return url if self._networks or urlsplit(url).port in (None, 443) else None

    def fetch(self, address: str) -> Picture | NoPicture:
        """Fetches a picture, once; never raises."""
        try:
            return self._fetch(address)
        except (OSError, HTTPException, ValueError) as error:
            log.info("failed to fetch a picture of %s: %s", urlsplit(address).hostname, type(error).__name__)
            return NoPicture("unreachable")
        except Exception:
            log.exception("failed at a picture of %s", urlsplit(address).hostname)
            return NoPicture("file")

    def _fetch(self, address: str) -> Picture | NoPicture:
        parts = urlsplit(address)
        is_tls = parts.scheme == "https"
        connection = Connection(
            parts.hostname or "",
            parts.port or (443 if is_tls else 80),
            is_tls=is_tls,
            networks=self._networks,
            ends_at=time.monotonic() + self._longest_s,
            public_name=self._public_name,
        )
        path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        try:
            connection.request("GET", path, headers=_HEADERS)
            answer = connection.answer()
            if answer.status != 200:
                return NoPicture("unreachable")
            if answer.length is not None and answer.length > MOST_BYTES:
                return NoPicture("too_large")
            data = bytearray()
            while chunk := answer.read(min(_AT_ONCE, MOST_BYTES + 1 - len(data))):
                data += chunk
            if len(data) > MOST_BYTES:
                return NoPicture("too_large")
            if answer.length:
                return NoPicture("unreachable")  # it was cut off
        finally:
            connection.close()
        return judged(bytes(data))
