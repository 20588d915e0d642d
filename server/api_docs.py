"""The described interface over HTTP: for programs, and as a page to read."""

from __future__ import annotations

import asyncio
from typing import Any

from server.http import json_out
from server.http.base import Handler
from server.http.json_out import Raw


class Described(Handler):
    """The common part: both texts are made once, at the first request for either, and may be kept by their readers."""

    has_etag = True

    def set_default_headers(self) -> None:
        super().set_default_headers()
        self.set_header("Cache-Control", "no-cache")

    async def texts(self) -> tuple[Raw, bytes, str]:
        """Describes the application's own route table, as JSON and as a page with its policy."""
        shared = self.application.settings
        if "description" not in shared:
            # In a thread, since it takes a fifth of a second; its task is kept, so that nobody begins it again.
            shared["description"] = asyncio.create_task(
                asyncio.to_thread(_describe, shared["routes"], shared["scopes"], shared["declared"])
            )
        try:
            made: tuple[Raw, bytes, str] = await shared["description"]
        except Exception:
            shared.pop("description", None)  # the next one tries again
            raise
        return made


def _describe(routes: Any, scopes: Any, declared: Any) -> tuple[Raw, bytes, str]:
    # Not with this module: the schemas of all answers are a fifth of a server's start, and few are ever asked for them.
    from server.openapi import page
    from server.openapi.document import document

    made = document(routes, scopes, declared)
    return Raw(json_out.dumps(made)), page.render(made).encode(), page.POLICY


class OpenApiHandler(Described):
    """GET /api/openapi.json"""

    async def get(self) -> None:
        described, _, _ = await self.texts()
        self.answer(described)


class DocsHandler(Described):
    """GET /docs: no scripts, and nothing from anywhere else."""

    async def get(self) -> None:
        _, page, policy = await self.texts()
        self.set_header("Content-Type", "text/html; charset=utf-8")
        self.set_header("Content-Security-Policy", policy)
        self.set_header("Referrer-Policy", "no-referrer")
        self.set_header("X-Frame-Options", "DENY")
        self.finish(page)
