"""A process's title in `ps`. A nicety that must not fail."""

from __future__ import annotations

import os


def set_title(title: str) -> None:
    """Shows `title` as the command line; does nothing when that is impossible."""
    # Else the title would overwrite the environment that the kernel shows, by which operators find us. Where it is
    # there already, as under Ray, it is left as it lies in memory: setproctitle finds its place by the first variable,
    # and this may be it.
    if not os.environ.get("SPT_NOENV"):
        os.environ["SPT_NOENV"] = "1"
    try:
        from setproctitle import setproctitle
    except ImportError:
        return
    setproctitle(title)
