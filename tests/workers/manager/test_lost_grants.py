"""A signer whose file was put back from an older copy does not know the grants given since: workers get new ones."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from core.call import Request
from core.errors import PeerRefused
from wallet.signer_client import SignerClient, SignerRefused
from workers import kernel
from workers.kernel import Sequel, judge_end
from workers.process.worker import Worker


class Asks:
    """A job that shows its grant in each cycle, and is through after `cycles` of them."""

    def __init__(self, signer: SignerClient, cycles: int) -> None:
        self.signer, self.left = signer, cycles

    def cycle(self) -> float | None:
        self.left -= 1
        with pytest.raises(SignerRefused):
            self.signer.sign_challenge(17, 5, "secret", "challenge")
        return 0.0 if self.left else None


def lived(monkeypatch: pytest.MonkeyPatch, tag: str, least_life_s: float, cycles: int = 3) -> tuple[int, int]:
    """Returns the exit code of a worker that is refused with `tag`, and how many cycles it had left."""

    def call(path: Path, peer: str, request: Request[Any], *, timeout: float) -> Any:
        raise PeerRefused("signer", tag, "no")

    monkeypatch.setattr("wallet.signer_client.call", call)
    monkeypatch.setattr("workers.process.worker._LEAST_LIFE_S", least_life_s)
    idle: Any = SimpleNamespace(pause=lambda seconds: None, rotate=lambda: None, touch=lambda: None)
    context: Any = SimpleNamespace(signer=SignerClient(Path("signer.sock")))
    job = Asks(context.signer, cycles)
    return Worker("lister", 17, 5, idle, idle.rotate)._work(lambda kind, given: job, context, idle), job.left


@pytest.mark.parametrize("tag", ["grant-live", "stale-token"])
def test_a_worker_without_a_grant_gives_way_to_one_with_a_new_one(tag: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert lived(monkeypatch, tag, 0.0) == (kernel.EXIT_WITHOUT_GRANT, 2)
    assert judge_end(kernel.EXIT_WITHOUT_GRANT).sequel is Sequel.RESTART_SOON


def test_not_before_it_has_lived_for_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    assert lived(monkeypatch, "grant-live", 60.0) == (kernel.EXIT_STOPPED, 0)


@pytest.mark.parametrize("tag", ["op-allowed", "control-state", "max-bid", "velocity"])
def test_other_refusals_are_no_reason_to_end(tag: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert lived(monkeypatch, tag, 0.0) == (kernel.EXIT_STOPPED, 0)
