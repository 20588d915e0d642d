"""Changes of users' own profiles."""

from __future__ import annotations

from models.base import transaction
from models.ledger.orders import has_open_orders
from models.sessions import Challenge
from models.tasks.table import BIDDING, RUNNING, Task
from models.users import User


class StillTrading(Exception):
    """A refusal: orders are open, or a task runs, so bought items would go to the old address. The message says why."""


class ProofUsed(Exception):
    """A refusal: the challenge was used by another request in the meantime."""


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


def set_ordinals_address(user_id: int, address: str, challenge_id: str | None, now_ms: int) -> None:
    """Sets the address for bought items, and uses up the challenge that proved it, if it needed one.

    Raises StillTrading or ProofUsed; then nothing was written.
    """
    with transaction():
        check_not_trading(user_id)
        if challenge_id is not None:
            used = Challenge.update(used_ms=now_ms).where(Challenge.id == challenge_id, Challenge.used_ms.is_null())
            if used.execute() != 1:
                raise ProofUsed(challenge_id)
        User.update(ordinals_address=address).where(User.id == user_id).execute()
