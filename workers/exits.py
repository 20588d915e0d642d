"""The meaning of a worker's exit code, and the manager's reaction to an end."""

from __future__ import annotations

import signal
from enum import Enum
from typing import NamedTuple

EXIT_STOPPED = 0  # it was asked to stop, or had nothing left to do
EXIT_BAD_CONFIG = 3
EXIT_SUPERSEDED = 4  # the task's lock or token is another worker's
EXIT_BAD_CREDENTIALS = 5
EXIT_WITHOUT_GRANT = 6  # the signer does not know its grant: another copy of the signer's file was put in its place
EXIT_UNKNOWN = 256  # no process exits with it: the process that could have reported the end is gone


class Sequel(Enum):
    """The manager's reaction to a worker's unasked end."""

    RESTART = "restart"  # counted, with back-off
    RESTART_SOON = "restart soon"  # not counted: it gave way to another, or died with its parent
    GIVE_UP = "give up"  # a restart would not help


class End(NamedTuple):
    """A worker's end, in words that follow "the worker", and the reaction to it."""

    text: str
    sequel: Sequel


def judge(status: int) -> End:
    """Judges `status` as subprocess gives it: an exit code, or a signal's number below 0."""
    if status == -signal.SIGKILL:
        return End("was killed by SIGKILL (perhaps out of memory)", Sequel.RESTART)
    if status < 0:
        return End(f"was killed by {_signal_name(-status)}", Sequel.RESTART)
    if status == EXIT_UNKNOWN:
        return End("ended when the zygote did", Sequel.RESTART_SOON)
    if status == EXIT_BAD_CONFIG:
        return End("ended: its config cannot be carried out", Sequel.GIVE_UP)
    if status == EXIT_BAD_CREDENTIALS:
        return End("ended: its credentials are not accepted", Sequel.GIVE_UP)
    if status == EXIT_SUPERSEDED:
        return End("ended: another worker held its lock or token", Sequel.RESTART_SOON)
    if status == EXIT_WITHOUT_GRANT:
        return End("ended: the signer does not know its grant any more", Sequel.RESTART_SOON)
    return End(f"ended by itself with code {status}", Sequel.RESTART)


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
