"""The errors that every layer may raise or catch.

    BidkeeperError
    ├── SettingsError        the installation is configured wrongly; lists every fault
    └── PeerError            another process of this installation ...
        ├── PeerUnavailable  ... could not be reached, or did not answer
        └── PeerRefused      ... refused the request, with a code

Venue errors are in `markets/base.py`, the signer's in `wallet/signer_client.py`. Only `server/` turns any of
them into a status code.
"""

from __future__ import annotations


class BidkeeperError(Exception):
    """Root of all errors that Bidkeeper raises on purpose."""


class SettingsError(BidkeeperError):
    """Settings are wrong; `problems` has one line for each fault."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("; ".join(problems))
        self.problems = problems


class PeerError(BidkeeperError):
    """Root of the errors between two processes of one installation."""

    def __init__(self, peer: str, message: str) -> None:
        super().__init__(f"{peer}: {message}")
        self.peer = peer
        self.message = message


class PeerUnavailable(PeerError):
    """The peer could not be reached, or its answer was lost: the request may or may not have taken effect."""


class PeerRefused(PeerError):
    """The peer understood the request and refused it; `code` is the reason in one word.

    `highest` is set if a task's token was refused as too low: the highest one that the peer has seen for the task.
    """

    def __init__(self, peer: str, code: str, message: str, highest: int | None = None) -> None:
        super().__init__(peer, message)
        self.code = code
        self.highest = highest
