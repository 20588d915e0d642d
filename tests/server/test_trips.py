"""The files of models/ that one request enters: a reader follows the request through these."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import models
from tests.worlds.service import Service

MODELS = Path(models.__file__).parent


@contextmanager
def entered() -> Iterator[set[str]]:
    """Collects the files of models/ of which a function is entered in the block, in this thread or a new one."""
    names: set[str] = set()

    def note(frame: FrameType, event: str, argument: Any) -> None:
        path = Path(frame.f_code.co_filename)
        if event == "call" and path.is_relative_to(MODELS):
            names.add(path.relative_to(MODELS).as_posix())

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        yield names
    finally:
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type]


async def test_a_new_task_enters_at_most_five_files_of_models(service: Service) -> None:
    await service.new_task(slug="first")  # the first request fills caches
    with entered() as names:
        await service.new_task(slug="second")
    assert "tasks/tasks.py" in names, "nothing was watched"
    assert len(names) <= 5, sorted(names)
