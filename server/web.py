"""The page: its files as they stand in web/, and a policy under which nothing else can run in it.

Also the described interface, for programs, and as a page to read.
"""

from __future__ import annotations

import asyncio
import base64
import gzip
import hashlib
import re
from functools import cache
from typing import NamedTuple

from msgspec import Raw

from server.http.answers import not_found
from server.http.base import Handler, Route, route
from server.http.shapes import dumps
from strategy.reasons import page_module
from web import FOLDER

_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".mjs": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
    ".json": "application/json",
    ".woff2": "font/woff2",
}
CODES = "js/texts/codes.js"
_PACKED_ALREADY = (".woff2",)
_INDEX = "index.html"
_IMPORT_MAP = re.compile(r'<script type="importmap">(.*?)</script>', re.S)


class WebFile(NamedTuple):
    """A file as it is sent: plain, packed where that makes it less, and the tag of both."""

    kind: str
    body: bytes
    packed: bytes | None
    tag: str


@cache
def web_files() -> dict[str, WebFile]:
    """Reads the page's files, by name below web/: what is not here is not served, whatever a path says.

    One of them is made: the words of codes, which strategy/reasons.py has.
    """
    paths = (path for path in FOLDER.rglob("*") if path.suffix in _TYPES and path.is_file())
    found = {path.relative_to(FOLDER).as_posix(): _file(path.suffix, path.read_bytes()) for path in paths}
    return found | {CODES: _file(".js", page_module().encode())}


def _file(suffix: str, body: bytes) -> WebFile:
    packed = None if suffix in _PACKED_ALREADY else gzip.compress(body, 9, mtime=0)
    return WebFile(_TYPES[suffix], body, packed, f'W/"{hashlib.sha256(body).hexdigest()[:32]}"')


@cache
def policy() -> str:
    """Writes the page's Content-Security-Policy.

    Scripts are files of this server, but for the import map, which browsers take in the page only: it is named by its
    hash. No text can become markup or a script (Trusted Types), and nothing is asked from anywhere else.
    """
    maps = _IMPORT_MAP.findall(web_files()[_INDEX].body.decode())
    hashes = [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in maps]
    scripts = " ".join(["'self'", *(f"'sha256-{each}'" for each in hashes)])
    return "; ".join(
        [
            "default-src 'none'",
            f"script-src {scripts}",
            "style-src 'self'",
            "img-src 'self' blob: data:",
            "font-src 'self'",
            "connect-src 'self'",
            "base-uri 'none'",
            "form-action 'none'",
            "frame-ancestors 'none'",
            "require-trusted-types-for 'script'",
            "trusted-types 'none'",
        ]
    )


class WebFileHandler(Handler):
    """GET /web/..."""

    is_of_interface = False
    _tag: str | None = None

    def compute_etag(self) -> str | None:
        """Returns the file's tag, the same packed and plain."""
        return self._tag

    def get(self, name: str) -> None:
        found = web_files().get(name)
        if found is None or name == _INDEX:
            raise not_found()
        self._send_file(found)

    def _send_file(self, found: WebFile) -> None:
        self.set_header("Content-Type", found.kind)
        self.set_header("Cache-Control", "no-cache")  # kept, and asked for by its tag: an update is seen at once
        self._tag = found.tag
        # Packed once, not for each reader; where the coding is set already, the application's packer leaves it alone.
        if found.packed is not None and "gzip" in self.request.headers.get("Accept-Encoding", ""):
            self.set_header("Content-Encoding", "gzip")
            self.finish(found.packed)
        else:
            self.finish(found.body)


class PageHandler(WebFileHandler):
    """GET /"""

    def get(self) -> None:  # type: ignore[override]
        self.set_header("Content-Security-Policy", policy())
        self.set_header("Cross-Origin-Opener-Policy", "same-origin")
        self.set_header("Referrer-Policy", "no-referrer")
        self.set_header("X-Frame-Options", "DENY")
        self._send_file(web_files()[_INDEX])


class IconHandler(WebFileHandler):
    """GET /favicon.ico, which browsers ask for whatever the page says."""

    def get(self) -> None:  # type: ignore[override]
        self._send_file(web_files()["icon.svg"])


class Description(Handler):
    """The description of the interface. Both texts are made once, at the first request for either."""

    tag = "service"

    def set_default_headers(self) -> None:
        super().set_default_headers()
        self.set_header("Cache-Control", "no-cache")  # kept, and asked for by its tag

    async def _texts(self) -> tuple[Raw, bytes, str]:
        """Describes the application's own route table, as JSON and as a page with its policy."""
        shared = self.application.settings
        if "description" not in shared:
            # In a thread, since it takes a fifth of a second; its task is kept, so that nobody begins it again.
            shared["description"] = asyncio.create_task(asyncio.to_thread(_describe, shared["declared"]))
        try:
            made: tuple[Raw, bytes, str] = await shared["description"]
        except Exception:
            shared.pop("description", None)  # the next one tries again
            raise
        return made

    @route("GET /api/openapi.json", says="OpenAPI 3.1.", is_open=True, has_etag=True)
    async def get_description(self) -> Raw:
        """This description

        OpenAPI 3.1. It changes with the version only, so ask with `If-None-Match`.
        """
        return (await self._texts())[0]

    @route("GET /docs", says="A page.", media=_TYPES[".html"], is_open=True, has_etag=True)
    async def read_reference(self) -> None:
        """This description to read

        Made of the same description, without scripts.
        """
        _, page, policy = await self._texts()
        self.set_header("Content-Type", _TYPES[".html"])
        self.set_header("Content-Security-Policy", policy)
        self.set_header("Referrer-Policy", "no-referrer")
        self.set_header("X-Frame-Options", "DENY")
        self.finish(page)


def _describe(declared: list[Route]) -> tuple[Raw, bytes, str]:
    # Not with this module: the schemas of all answers are a fifth of a server's start, and few are ever asked for them.
    from server import description
    from server.description import document

    made = document(declared)
    return Raw(dumps(made).encode()), description.render(made).encode(), description.POLICY
