"""`python -m server.openapi`: the description as it is answered, for other programs to look at."""

from __future__ import annotations

from server.http import json_out
from server.openapi.document import document
from server.urls import ROUTES

if __name__ == "__main__":
    print(json_out.dumps(document(ROUTES)))
