"""The form of a delivery for each kind of receiver."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from typing import Any

from core.fields import WithSecrets
from core.hook_receivers import DISCORD, NTFY, TELEGRAM, WEBHOOK, Receiver, standard_key
from models.hooks.table import CODE_MS

TELEGRAM_API = "https://api.telegram.org"
SIGNATURE = "X-Bidkeeper-Signature"
_LONGEST = 1_800  # letters of a chat message
_SUBJECT = "Bidkeeper: "
_CODE = """{code}

This code confirms your address for notifications of Bidkeeper, for the user {user}.
Enter it in Bidkeeper under Settings, Hooks, within {minutes} minutes.

Did you not ask for it? Then ignore this mail: without the code, no notification is sent to you.
"""
_FOOT = """You get this because this address was confirmed for the user {user}. A mail a minute is sent at most.
To stop it, delete the hook in Bidkeeper under Settings, Hooks."""


class Post(WithSecrets, frozen=True):
    """One request to a receiver."""

    hidden = frozenset({"url", "headers"})

    url: str
    body: bytes
    headers: dict[str, str]


def post_of(kind: str, receiver: Receiver, body: str, now_s: int, message_id: str) -> Post:
    """Makes the request of a webhook, a chat message, or a notification."""
    if kind == WEBHOOK:
        headers = {SIGNATURE: signature(receiver.secret, now_s, body)}
        headers |= standard_headers(receiver.secret, now_s, body, message_id)
        return Post(receiver.url, body.encode(), {"Content-Type": "application/json"} | headers)
    text = line(json.loads(body))
    if kind == NTFY:
        token = {"Authorization": f"Bearer {receiver.secret}"} if receiver.secret else {}
        return Post(
            receiver.url, text.encode(), {"Content-Type": "text/plain; charset=utf-8", "Title": "Bidkeeper"} | token
        )
    if kind == TELEGRAM:
        chat = receiver.url.partition(":")[2]
        url = f"{TELEGRAM_API}/bot{receiver.secret}/sendMessage"
        return _json(url, {"chat_id": chat, "text": text, "disable_web_page_preview": True})
    if kind == DISCORD:
        return _json(receiver.url, {"content": text, "allowed_mentions": {"parse": []}})
    raise ValueError(f"no request for {kind}")


def signature(secret: str, now_s: int, body: str) -> str:
    """Signs a body together with its time, so that an old request cannot be sent again."""
    found = hmac.new(secret.encode(), f"{now_s}.{body}".encode(), hashlib.sha256).hexdigest()
    return f"t={now_s},v1={found}"


def standard_headers(secret: str, now_s: int, body: str, message_id: str) -> dict[str, str]:
    """Signs the body by the rules of Standard Webhooks, for receivers that use one of its libraries."""
    signed = f"{message_id}.{now_s}.{body}".encode()
    found = base64.b64encode(hmac.digest(standard_key(secret), signed, "sha256")).decode()
    return {"webhook-id": message_id, "webhook-timestamp": str(now_s), "webhook-signature": f"v1,{found}"}


def message_id(hook_id: int, delivery_id: int, body: str) -> str:
    """Returns the id of a delivery: the same for each try, and unique among all installations.

    The id depends on the body, because a restored database gives the numbers of its deliveries again.
    """
    return "msg_" + hashlib.sha256(f"{hook_id}.{delivery_id}.{body}".encode()).hexdigest()[:32]


def mail_of(body: str) -> tuple[str, str]:
    """Makes a mail's subject and text for a code, one event, or a summary of several events.

    A mail with a code contains no text of the user's choice, because the owner of the address has not agreed to mails.
    """
    found = json.loads(body)
    if "code" in found:
        return _SUBJECT + "confirm this address", _CODE.format(minutes=CODE_MS // 60_000, **found)
    events = found.get("events", [found])
    subject = line(found)[:120] if events == [found] else f"{len(events)} events"
    lines = [line(each) for each in events]
    if events != [found]:
        lines = [f"{each['at']}  {text}" for each, text in zip(events, lines, strict=True)]
    if found.get("lost"):
        lines.append(f"Lost so far, because more than the hook's queue holds waited: {found['lost']}.")
    details = [json.dumps(found, indent=1)] if events == [found] else []
    parts = ["\n".join(lines), *details, _FOOT.format(user=events[0]["user"])]
    return _SUBJECT + " ".join(subject.split()), "\n\n".join(parts) + "\n"


def line(event: dict[str, Any]) -> str:
    """Writes the event as one line for people."""
    task = "" if event["task"] is None else f" (task {event['task']})"
    return f"{event['text']}{task}"[:_LONGEST]


def _json(url: str, value: dict[str, Any]) -> Post:
    return Post(url, json.dumps(value).encode(), {"Content-Type": "application/json"})
