"""The two forms of an event outside the service: a sentence, and data under the interface's names."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from core.fields import iso

Data = Mapping[str, Any]


def outward(stored: str) -> dict[str, Any]:
    """Reads an event's stored data: camelCase names, times in ISO 8601 (`sold_ms` becomes `soldAt`)."""
    return {_name(name): _value(name, value) for name, value in json.loads(stored).items()}


def _name(name: str) -> str:
    for ending, shown in (("_ms", "_at"), ("_s", "_seconds")):
        if name.endswith(ending):
            name = name.removesuffix(ending) + shown
    first, *rest = name.split("_")
    return first + "".join(part.capitalize() for part in rest)


def _value(name: str, value: Any) -> Any:
    return iso(value) if name.endswith("_ms") and value is not None else value


def words(event: str, stored: str) -> str:
    """Writes the event as one sentence for its owner."""
    return _WORDS[event](json.loads(stored))


def _fill(data: Data) -> str:
    begun = "Dry run: would have bought" if data["dry_run"] else "Bought"
    return f"{begun} {data['quantity']} of {_thing(data)} for {data['price']:,} sats"


def _order(data: Data) -> str:
    fate = "is live" if data["state"] == "live" else f"is closed ({data['close_reason']})"
    bid = "dry-run bid" if data["dry_run"] else "bid"
    return f"A {bid} of {data['price']:,} sats on {_thing(data)} {fate}"


def _listing(data: Data) -> str:
    fate = "is live again" if data["state"] == "live" else f"is closed ({data['close_reason']})"
    return f"The listing of {_item(data)} at {data['price']:,} sats {fate}"


def _task(data: Data) -> str:
    return f"The task was {data['change']}" if "change" in data else f"The task is {data['observed']}"


def _wallet(data: Data) -> str:
    what = f"{data['sent']:,} sats" if data.get("sent") is not None else data.get("inscription_id") or "money"
    return f"A withdrawal of {what} from {data['source']} is {data['state']}"


def _control(data: Data) -> str:
    scope = {"global": "everything here", "user": "all your tasks", "task": "this task"}[data["scope"]]
    return f"{data['state'].capitalize()} for {scope}, set by {data['by'] if data['by'] == 'you' else 'the operator'}"


def _daily(data: Data) -> str:
    text = f"{data['day']}: bought {data['bought']} for {data['bought_sats']:,} sats, sold {data['sold']} for"
    text += f" {data['sold_sats']:,} sats; {data['open_bids']} open bids of {data['exposure']:,} sats now"
    return f"{text}; {data['running']} tasks run, {data['failing']} of them with an error"


def _thing(data: Data) -> str:
    trait = data.get("trait")
    return f"{data['slug']} ({trait['type']}: {trait['value']})" if trait else str(data["slug"])


def _item(data: Data) -> str:
    return f"{data['slug']} {data['inscription_id']}" if data["slug"] else str(data["inscription_id"])


_WORDS: dict[str, Callable[[Data], str]] = {
    "fill": _fill,
    "sold": lambda data: f"Sold {_item(data)} for {data['price']:,} sats",
    "listed": lambda data: f"Listed {_item(data)} at {data['price']:,} sats",
    "outbid_limited": lambda data: f"Outbid on {data['slug']}, and raised as often as allowed",
    "error": lambda data: f"Has failed {data['cycles']} times in a row: {data['error']}",
    "recovered": lambda data: f"Works again after {data['cycles']} failures in a row",
    "halted": _control,
    "control": _control,
    "quota": lambda data: f"The calls to {data['venue']} run short: read every {data['every_s']} s",
    "plan_expiring": lambda data: f"The plan {data['plan']} ends at {iso(data['ends_ms'])}; then its tasks stop",
    "worker_dead": lambda data: f"Crashed, and is not started again: {data['error']}",
    "daily": _daily,
    "cycle": lambda data: data["action"] if data["error"] is None else f"{data['action']}; {data['error']}",
    "task": _task,
    "order": _order,
    "listing": _listing,
    "wallet": _wallet,
    "test": lambda data: "A test: this is where you will be told",
}
