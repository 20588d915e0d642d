"""What `ps` shows of a process. A nicety that must not fail."""

from __future__ import annotations

import os


def set_title(title: str) -> None:
    """Shows `title` as the command line; nothing when that cannot be done."""
    # Else the title is written over the environment that the kernel shows, by which operators find us.
    os.environ["SPT_NOENV"] = "1"
    try:
        from setproctitle import setproctitle
    except ImportError:
        return
    setproctitle(title)
