"""Checks before a task starts that its money can be got out again: otherwise none is taken in.

Sats and items of a user lie at the payment address, in the vault, and in a bidding wallet. Goods that bids
buy are delivered to the user's own ordinals address. Every withdrawal needs a mempool server and an index. One from a
bidding wallet also needs a script that the signer signs for, which only the marketplace's draft tells.

A marketplace or a source that cannot be asked does not object to a start, nor does a wallet with nothing in it.
"""

from __future__ import annotations

import asyncio
import logging

from core.settings import Settings
from markets.base import VenueError
from server import task_handler
from server.http.answers import ApiError, invalid
from server.http.base import SignedIn
from server.withdrawals.planner import CannotWithdraw, InvalidWithdrawal, Wanted, bidding_venue, plan_from_bidding
from wallet.signer_client import SignerError, SignerRefused

log = logging.getLogger(__name__)

PATIENCE_S = 5.0
_NOT_YET = "This cannot be started yet"
# Rules that a marketplace's draft breaks by its form, so that it would break them tomorrow as well.
_OF_THE_FORM = frozenset(
    {
        "psbt-size",
        "psbt-strict",
        "inputs-own",
        "amount-proof",
        "dest-allow",
        "outputs-known",
        "sighash-allowed",
        "input-signed",
        "tx-form",
    }
)


def refuse_without_sources(settings: Settings) -> None:
    """Raises ApiError (400) where no withdrawal is ever signed, by the settings alone."""
    if not settings.venue_url("mempool"):
        lacking = "no mempool server is set (BIDKEEPER_MEMPOOL_URL)"
    elif not (settings.venue_url("ord") or settings.venue_url("unisat")):
        lacking = "no index of inscriptions is set (BIDKEEPER_ORD_URL, or BIDKEEPER_UNISAT_URL)"
    else:
        return
    raise invalid([f"venue: nothing could be withdrawn again: {lacking} (docs/withdrawing.md)"], _NOT_YET)


async def refuse_without_way_out(handler: SignedIn, venue: str) -> None:
    """Raises ApiError (400) when sats that back bids at this venue could not be withdrawn."""
    settings = handler.services.settings
    refuse_without_sources(settings)
    if venue not in task_handler.venues_with_bidding_wallets(settings):
        return
    if (other := bidding_venue(settings)) != venue:
        raise invalid([f"venue: its bidding wallet could not be withdrawn from: that is done at {other}"], _NOT_YET)
    await _refuse_locked_wallet(handler, venue)


async def _refuse_locked_wallet(handler: SignedIn, venue: str) -> None:
    """Has a withdrawal of all that is in the bidding wallet drafted and judged, once for each user."""
    services, user = handler.services, handler.user
    about = (user.id, user.ordinals_address, venue)
    if about in services.ways_out:
        return
    try:
        await asyncio.wait_for(_judge(handler), PATIENCE_S)
    except CannotWithdraw:
        return  # nothing is in there
    except (VenueError, TimeoutError) as error:
        # Nothing later asks this until the next start, so the operator has to know.
        text = "failed to check whether user %d could withdraw from the bidding wallet at %s before a start: %s"
        log.warning(text, user.id, venue, error or "no answer in time")
        return
    except InvalidWithdrawal as wrong:
        raise invalid([f"venue: its bidding wallet could not be withdrawn from: {wrong}"], _NOT_YET) from None
    except SignerRefused as refused:
        if refused.tag not in _OF_THE_FORM:
            return
        text = (
            f"venue: the signer would not sign a withdrawal from its bidding wallet: {refused.tag}: {refused.message}"
        )
        raise invalid([text], _NOT_YET) from None
    except (SignerError, ApiError):
        return
    services.ways_out.add(about)


async def _judge(handler: SignedIn) -> None:
    services, user = handler.services, handler.user
    keys = await services.signer(lambda signer: signer.addresses(user.address))
    wanted = Wanted("bidding", force=True)
    plan = await plan_from_bidding(services.settings, handler.act, user, wanted, keys.payment, keys.payment_pubkey)
    await services.signer(lambda signer: signer.judge_withdrawal(plan.asked))
