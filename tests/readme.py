"""The README's commands, by the name in the comment above each block: `python3 tests/readme.py run` prints one block.

Standard library only, so that a machine without `.venv` can run them.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

README = Path(__file__).resolve().parents[1] / "README.md"
_BLOCK = re.compile(r"^<!-- ci: ([\w-]+) -->\n```sh\n(.*?)^```$", re.M | re.S)


def commands() -> dict[str, str]:
    """Returns each named block's lines."""
    return dict(_BLOCK.findall(README.read_text(encoding="utf-8")))


if __name__ == "__main__":
    print(commands()[sys.argv[1]], end="")
