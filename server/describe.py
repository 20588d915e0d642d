"""`python -m server.describe`: prints the description that the server answers, for other programs to check."""

from __future__ import annotations

from server.http import json_out
from server.openapi.document import document
from server.urls import DECLARED, ROUTES, SCOPES

if __name__ == "__main__":
    print(json_out.dumps(document(ROUTES, SCOPES, DECLARED)))
