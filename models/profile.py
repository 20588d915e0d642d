"""Changes of users' own profiles, and of their plans."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from models.database.base import transaction
from models.ledger.orders import has_open_orders
from models.tasks.tasks import BIDDING, RUNNING, Task
from models.users import OwnCeilings, Subscription, User, own_ceilings, use_challenge


class StillTrading(Exception):
    """A refusal: orders are open, or a task runs, so bought items would go to the old address. The message says why."""


class ProofUsed(Exception):
    """A refusal: the challenge was used by another request in the meantime."""


class ConsentMissing(Exception):
    """A refusal: the change allows more than before, and the sign-in address has not signed for it."""


def check_not_trading(user_id: int) -> None:
    """Raises StillTrading when the user's ordinals address is in use."""
    if has_open_orders(user_id):
        raise StillTrading("bids are open")
    wanted = Task.select().where(Task.desired == RUNNING, Task.deleted_ms.is_null())
    if wanted.where(Task.user == user_id, Task.kind == BIDDING).exists():
        raise StillTrading("a bidding task is running")


def set_display_name(user_id: int, name: str | None) -> None:
    """Sets or, with None, takes away the name."""
    User.update(display_name=name).where(User.id == user_id).execute()


def set_ordinals_address(user_id: int, address: str, challenge_ids: Iterable[str], now_ms: int) -> None:
    """Sets the address for bought items, and uses up the challenges that proved it and the user's consent.

    Raises StillTrading or ProofUsed; then nothing was written.
    """
    with transaction():
        check_not_trading(user_id)
        _use(challenge_ids, now_ms)
        User.update(ordinals_address=address).where(User.id == user_id).execute()


def set_own_ceilings(user_id: int, wanted: OwnCeilings, challenge_ids: Collection[str], now_ms: int) -> None:
    """Sets both, and has the user's bidders started anew, whose grants are of the former ones.

    What allows more needs the consent that `challenge_ids` are of, and uses it up. Raises ConsentMissing or ProofUsed;
    then nothing was written.
    """
    with transaction():
        former = own_ceilings(User.get_by_id(user_id))
        if wanted.allows_more_than(former):
            if not challenge_ids:
                raise ConsentMissing
            _use(challenge_ids, now_ms)
        if wanted != former:
            User.update(max_exposure=wanted.max_exposure, max_hardcap=wanted.max_hardcap).where(
                User.id == user_id
            ).execute()
            _start_bidders_anew(user_id)


def set_plan(user_id: int, plan: str, expires_ms: int, now_ms: int) -> None:
    """Gives the user `plan` until `expires_ms`, in place of the former one.

    With another plan the user's bidders are started anew: their grants are of the former one's limits.
    """
    with transaction():
        former = Subscription.get_or_none(Subscription.user == user_id)
        Subscription.delete().where(Subscription.user == user_id).execute()
        Subscription.create(user=user_id, plan=plan, started_ms=now_ms, expires_ms=expires_ms)
        if former is not None and former.plan != plan:
            _start_bidders_anew(user_id)


def _start_bidders_anew(user_id: int) -> None:
    running = Task.user == user_id, Task.kind == BIDDING, Task.desired == RUNNING
    Task.update(revision=Task.revision + 1).where(*running).execute()


def _use(challenge_ids: Iterable[str], now_ms: int) -> None:
    for challenge_id in challenge_ids:
        if not use_challenge(challenge_id, now_ms):
            raise ProofUsed(challenge_id)
