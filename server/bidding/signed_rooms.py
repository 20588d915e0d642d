"""The use of the signer's ceilings by a user's bids, and one task's, before anything is placed."""

from __future__ import annotations

from core.subscription_plans import SubscriptionPlan
from models.ledger.limits import fills_of, most_signed_task, most_signed_user, with_others
from models.users import User
from server.http.services import Services
from strategy.bid_config import BidConfig
from strategy.plan_inputs import SignedRoom
from wallet.signer_client import SignerError


async def user_room(services: Services, user: User, plan: SubscriptionPlan | None) -> SignedRoom | None:
    """Returns the use by all the user's tasks; None when the signer cannot be asked."""
    most = most_signed_user(plan) if plan else 0
    try:
        rooms = await services.signer(lambda signer: signer.rooms_under(user.address, 0, 0, most))
    except SignerError:
        return None
    return next(room for room in rooms if room.whose == "user")


async def task_rooms(
    services: Services, user: User, task_id: int | None, config: BidConfig, plan: SubscriptionPlan | None
) -> tuple[SignedRoom, ...]:
    """Returns the use that the task's worker would see with this config; a dry run signs nothing.

    Raises SignerError.
    """
    if config.dry_run:
        return ()
    of_task = most_signed_task(config, plan, fills_of(task_id, config).sats) if plan else 0
    of_user = most_signed_user(plan) if plan else 0
    rooms = await services.signer(lambda signer: signer.rooms_under(user.address, task_id or 0, of_task, of_user))
    return with_others(rooms, user.id, task_id)
