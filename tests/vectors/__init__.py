"""Published test vectors; README.md beside them names each file's source and licence."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

DIRECTORY = Path(__file__).parent


def load(name: str) -> Any:
    """Returns the vectors of the file `name`.json."""
    return json.loads((DIRECTORY / f"{name}.json").read_text(encoding="utf-8"))
