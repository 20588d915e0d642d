"""Withdrawals as callers see them."""

from __future__ import annotations

import json
from collections.abc import Sequence

from models.ledger.withdrawals import Withdrawal
from server.http import json_out
from server.withdrawals.coins import LeftOut
from server.withdrawals.plan import WithdrawalPlan


def withdrawal_as_json(row: Withdrawal) -> dict[str, object]:
    return {
        "id": row.id,
        "from": row.source,
        "venue": row.venue,
        "inscriptionId": row.inscription_id,
        "destination": row.destination,
        "state": row.state,
        "sentSats": row.sent_sats,
        "feeSats": row.fee_sats,
        "txid": row.txid,
        "reason": row.reason,
        "coins": json.loads(row.coins),
        "createdAt": json_out.iso(row.created_ms),
        "updatedAt": json_out.iso(row.updated_ms),
    }


def quote(plan: WithdrawalPlan) -> dict[str, object]:
    """Returns the amounts of a plan."""
    return {
        "dryRun": True,
        "from": plan.asked.source,
        "destination": plan.destination,
        "sentSats": plan.sent_sats,
        "feeSats": plan.fee_sats,
        "coins": list(plan.coins),
        "leftOut": left_out(plan.left_out),
    }


def left_out(found: Sequence[LeftOut]) -> list[dict[str, object]]:
    return [{"outpoint": each.coin.outpoint, "valueSats": each.coin.value, "reason": each.reason} for each in found]
