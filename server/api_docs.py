"""The described interface over HTTP: for programs, and as a page to read."""

from __future__ import annotations

from server.http import json_out
from server.http.base import Handler
from server.http.json_out import Raw
from server.openapi import page
from server.openapi.document import Document, document


class Described(Handler):
    """The common part: the document is made once, at the first request, and may be kept by its readers."""

    has_etag = True

    def set_default_headers(self) -> None:
        super().set_default_headers()
        self.set_header("Cache-Control", "no-cache")

    def document(self) -> Document:
        """Describes the application's own route table."""
        shared = self.application.settings
        if "document" not in shared:
            shared["document"] = document(shared["routes"])
        made: Document = shared["document"]
        return made


class OpenApiHandler(Described):
    """GET /api/openapi.json"""

    def get(self) -> None:
        shared = self.application.settings
        if "document_text" not in shared:
            shared["document_text"] = Raw(json_out.dumps(self.document()))
        self.answer(shared["document_text"])


class DocsHandler(Described):
    """GET /docs: no scripts, and nothing from anywhere else."""

    def get(self) -> None:
        shared = self.application.settings
        if "docs_page" not in shared:
            shared["docs_page"] = page.render(self.document()).encode()
        self.set_header("Content-Type", "text/html; charset=utf-8")
        self.set_header("Content-Security-Policy", page.POLICY)
        self.set_header("Referrer-Policy", "no-referrer")
        self.set_header("X-Frame-Options", "DENY")
        self.finish(shared["docs_page"])
