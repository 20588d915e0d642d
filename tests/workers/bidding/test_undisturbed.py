from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from types import FrameType

import pytest

from workers.context import signals_held


@pytest.fixture
def asked_to_stop() -> Iterator[list[int]]:
    heard: list[int] = []

    def hear(number: int, frame: FrameType | None) -> None:
        heard.append(number)

    before = signal.signal(signal.SIGTERM, hear)
    yield heard
    signal.signal(signal.SIGTERM, before)


def test_a_stop_waits_for_the_end_of_the_step(asked_to_stop: list[int]) -> None:
    with signals_held():
        signal.pthread_kill(threading.get_ident(), signal.SIGTERM)
        assert asked_to_stop == []
    assert asked_to_stop == [signal.SIGTERM]


def test_a_failing_step_does_not_deafen(asked_to_stop: list[int]) -> None:
    with pytest.raises(ZeroDivisionError), signals_held():
        raise ZeroDivisionError
    signal.pthread_kill(threading.get_ident(), signal.SIGTERM)
    assert asked_to_stop == [signal.SIGTERM]
