"""The page: its files, its content security policy, and the fields of its forms.

Also the description of the interface, as JSON for programs and as a page.
"""

from __future__ import annotations

import asyncio
import base64
import gzip
import hashlib
import re
from collections.abc import Mapping
from decimal import Decimal
from functools import cache
from typing import Annotated, Any, NamedTuple

from msgspec import Raw

from core.fields import words
from models.accounts import READ
from server.http.answers import not_found
from server.http.base import Handler, Route, SignedIn, route
from server.http.shapes import Answer, camel, dumps
from server.task_config import shown_part
from strategy.config.bid import BidConfig
from strategy.config.listing import ListingConfig
from strategy.config.table import fields_of, table_of
from strategy.reasons import page_module
from web import FOLDER

_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".mjs": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".webmanifest": "application/manifest+json",
    ".txt": "text/plain; charset=utf-8",
    ".json": "application/json",
    ".woff2": "font/woff2",
}
CODES = "js/texts/codes.js"
_PACKED_ALREADY = (".woff2", ".png")
_INDEX = "index.html"
_IMPORT_MAP = re.compile(r'<script type="importmap">(.*?)</script>', re.S)
_TO_STAMP = re.compile(r'"/web/(?=js/|vendor/|app\.css")')
_FOREVER = f"public, max-age={365 * 86_400}, immutable"


class WebFile(NamedTuple):
    """A file as it is sent: plain, compressed unless its type is compressed already, and the entity tag of both."""

    kind: str
    body: bytes
    packed: bytes | None
    tag: str


@cache
def web_files() -> dict[str, WebFile]:
    """Returns the page's files by their names below web/. No other file can be served, whatever the path.

    The file CODES is generated from strategy/reasons.py. The paths of scripts and style in the page contain the
    `stamp`, so that a browser keeps these files until one of them changes.
    """
    text = _TO_STAMP.sub(f'"/web/-{stamp()}/', _read_files()[_INDEX].body.decode())
    # Also for the paths by which modules, and people at the console, import others.
    others = "".join(f'"/web/{folder}/":"/web/-{stamp()}/{folder}/",' for folder in ("js", "vendor"))
    text = text.replace('{"imports":{', f'{{"imports":{{{others}', 1)
    return _read_files() | {_INDEX: _file(".html", text.encode())}


@cache
def stamp() -> str:
    """Returns the name of this state of all files."""
    return hashlib.sha256("".join(sorted(file.tag for file in _read_files().values())).encode()).hexdigest()[:16]


@cache
def _read_files() -> dict[str, WebFile]:
    paths = (path for path in FOLDER.rglob("*") if path.suffix in _TYPES and path.is_file())
    found = {path.relative_to(FOLDER).as_posix(): _file(path.suffix, path.read_bytes()) for path in paths}
    return found | {CODES: _file(".js", page_module().encode())}


def _file(suffix: str, body: bytes) -> WebFile:
    packed = None if suffix in _PACKED_ALREADY else gzip.compress(body, 9, mtime=0)
    return WebFile(_TYPES[suffix], body, packed, f'W/"{hashlib.sha256(body).hexdigest()[:32]}"')


@cache
def policy() -> str:
    """Writes the page's Content-Security-Policy.

    Scripts must be files of this server. The import map, which browsers accept only inside the page, is allowed by its
    hash. No text can become markup or a script (Trusted Types), and nothing is loaded from other servers.
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
            "manifest-src 'self'",
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
        """Returns the file's entity tag, which is the same for both forms."""
        return self._tag

    def get(self, name: str) -> None:
        stamped, _, rest = name.partition("/")
        # A page of a former version gets the files of this one under its own stamp, and must not keep them.
        found = web_files().get(rest if stamped.startswith("-") else name)
        if found is None or found is web_files()[_INDEX]:
            raise not_found()
        self._send_file(found, is_kept=stamped == f"-{stamp()}")

    def _send_file(self, found: WebFile, *, is_kept: bool = False) -> None:
        self.set_header("Content-Type", found.kind)
        # Without its stamp a file is cached, too, but revalidated by its tag each time.
        self.set_header("Cache-Control", _FOREVER if is_kept else "no-cache")
        self._tag = found.tag
        # Compressed only once for all clients. The application does not compress an answer whose coding is set.
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
    """GET /favicon.ico, which browsers request even if the page names another icon."""

    def get(self) -> None:  # type: ignore[override]
        self._send_file(web_files()["icon.svg"])


class Description(Handler):
    """The description of the interface. Both texts are made once, at the first request for either."""

    tag = "service"

    def set_default_headers(self) -> None:
        super().set_default_headers()
        self.set_header("Cache-Control", "no-cache")  # cached, but revalidated by its tag each time

    async def _texts(self) -> tuple[Raw, bytes, str]:
        """Describes the application's own route table, as JSON and as a page with its policy."""
        shared = self.application.settings
        if "description" not in shared:
            # Done in a thread because it takes 0.2 s; the task is stored, so that concurrent requests share it.
            shared["description"] = asyncio.create_task(asyncio.to_thread(_describe, shared["declared"]))
        try:
            made: tuple[Raw, bytes, str] = await shared["description"]
        except Exception:
            shared.pop("description", None)  # so that the next request tries again
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
    # Imported here because the schemas of all answers would take a fifth of a server's start and are rarely requested.
    from server import description
    from server.description import document

    made = document(declared)
    return Raw(dumps(made).encode()), description.render(made).encode(), description.POLICY


class FormChoice(Answer, frozen=True, kw_only=True):
    """A value that a field may have."""

    value: str
    label: str


class FormField(Answer, frozen=True, kw_only=True):
    """A field of a config. Bounds that it does not have are null; an empty text says nothing."""

    name: Annotated[str, words("As bodies and answers name it.")]
    kind: Annotated[str, words("How its value is read and drawn: sats, count, fraction, check, choice and the like.")]
    group: Annotated[str, words("Fields of a group belong together.")]
    label: Annotated[str, words("Its name in forms.")]
    hint: Annotated[str, words("What it means, in a form.")]
    words: Annotated[str, words("What it means, to programs.")]
    default: Annotated[Any, words("Its value where it is left out; null: none, or it has to be given.")]
    is_required: Annotated[bool, words("A new task needs it.")]
    least: Decimal | None
    above: Annotated[Decimal | None, words("Values are greater than it.")]
    most: Decimal | None
    longest: Annotated[int | None, words("Most characters of a text.")]
    choices: Annotated[list[FormChoice], words("What it may be; none: it is not chosen from a list.")]
    unit: str
    when: Annotated[
        dict[str, list[Any]],
        words("It matters only while each of these fields has one of these values."),
    ]
    usual: Annotated[str, words("What null means, in a few words.")]
    no_limit_at0: Annotated[bool, words("0 is no limit.")]
    is_replayed: Annotated[bool, words("A replay shows what a change of it does.")]


class ConfigShapes(Answer, frozen=True, kw_only=True):
    """The fields of both kinds of configs, in their order."""

    bidding: list[FormField]
    autolist: list[FormField]


class Shapes(SignedIn):
    """The operation on the configs' fields."""

    tag = "bidding tasks"

    @route("GET /api/shapes", READ, says="The fields of both kinds of configs.")
    def list_shapes(self) -> ConfigShapes:
        """The fields of a config, for forms

        With type, bounds, default and words. They change with the service's version only.
        """
        return shapes()


@cache
def shapes() -> ConfigShapes:
    """Returns the answer, which is the same for every caller."""
    return ConfigShapes(bidding=_fields(BidConfig), autolist=_fields(ListingConfig, has_replay=False))


def _fields(config: Any, *, has_replay: bool = True) -> list[FormField]:
    table = table_of(config)
    return [
        FormField(
            name=camel(field.name),
            kind=mark.kind,
            group=mark.group,
            label=mark.label,
            hint=mark.hint,
            words=mark.words,
            default=None if field.required else shown_part(field.default),
            is_required=field.required,
            least=_number(mark.least),
            above=_number(mark.above),
            most=None if mark.has_open_top else _number(mark.most),
            longest=mark.longest,
            choices=[FormChoice(value=value, label=label) for value, label in mark.choices.items()],
            unit=mark.unit,
            when=_when(mark.when),
            usual=mark.usual,
            no_limit_at0=mark.no_limit_at_0,
            is_replayed=has_replay and mark.is_replayed,
        )
        for field, mark in zip(fields_of(config), table.values(), strict=True)
    ]


def _number(bound: int | Decimal | None) -> Decimal | None:
    return None if bound is None else Decimal(bound)


def _when(when: Mapping[str, tuple[Any, ...]]) -> dict[str, list[Any]]:
    return {camel(name): list(values) for name, values in when.items()}
