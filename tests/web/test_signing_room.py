"""Signatures count until they expire: what the page says of bids that wait for room under the signing limit."""

from __future__ import annotations

import re
import secrets
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.e2e.installation import Installation, until
from tests.web.javascript import Modules
from tests.web.visitor import Person, Visitor


@pytest.mark.parametrize(
    ("detail", "since", "words"),
    [
        ("task, frees in 150 s", 0, "This task's signing limit is reached. Enough frees up in 3 min."),
        ("task, frees in 150 s", 130, "This task's signing limit is reached. Enough frees up in 20 s."),
        ("task, frees in 150 s", 151, "This task's signing limit is reached. Enough has freed up since."),
        (
            "user, kept for renewals, frees in 42 s",
            0,
            "Your signing limit: the remaining room is reserved for renewals. Enough frees up in 42 s.",
        ),
        (
            "installation, kept for renewals",
            9,
            "All users' signing limit: the remaining room is reserved for renewals.",
        ),
        ("hardcap", 0, "The hard cap leaves no room: raise it, or lower the range."),
    ],
)
def test_a_wait_names_its_reason_and_counts_down(javascript: Modules, detail: str, since: int, words: str) -> None:
    assert javascript.call("texts/reasons.js", "detailWords", detail, since) == words


def test_the_use_of_the_limit_is_that_of_the_ceiling_that_binds(javascript: Modules) -> None:
    rooms = [
        {"whose": "task", "signedSats": 46_400_000, "mostSats": 56_000_000},
        {"whose": "user", "signedSats": 90_000_000, "mostSats": 100_000_000},
    ]
    rung = {
        "isLive": False,
        "reason": "signed_limit",
        "price": 1_300_000,
        "detail": "task, kept for renewals, frees in 9 s",
    }
    decision: dict[str, Any] = {"rungs": [rung], "unpriced": [], "signed": rooms}

    javascript.value("texts/task.js", "")  # the screen's words
    (words,) = javascript.call("screens/task.js", "wantsOf", decision, {"me": None})

    assert "46,400,000 sats of 56,000,000 sats is signed and not expired" in words
    assert "the rest is reserved for renewals" in words


def test_run_says_which_bids_wait_for_signatures_to_expire_and_until_when(
    service: Installation, visitor: Visitor, person: Person
) -> None:
    """Bids at the hard cap may be signed four times over, less what renewals need: the third ladder is short."""
    slug = f"signed-{secrets.token_hex(4)}"
    service.put_collection(slug, [1_000_000, 1_050_000])
    ladder = {"bidPercentLow": 0.9, "bidPercentHigh": 0.95, "bidCount": 5, "hardcapSats": 950_000, "loopSeconds": 5}
    task = person.task(slug=slug, **ladder)
    person.start(task)

    def control(state: str) -> None:
        person.ok("PUT", "/api/control", {"scope": "user", "state": state})

    def bids() -> int:
        return len(person.bids(task))

    for _ in range(2):
        control("run")
        until(lambda: bids() == 5, "five bids")
        control("halt")
        until(lambda: bids() == 0, "the end of all bids")
    visitor.give_token(person)
    page = visitor.open("#/")
    run = page.get_by_role("radio", name="Run")
    expect(run).to_have_attribute("aria-checked", "false")
    run.click()

    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text(re.compile(rf"{slug}: [1-5] of 5 bids can't be signed yet"))
    expect(dialog).to_contain_text(re.compile(r"All of them can at \d\d:\d\d(:\d\d)?, in \d+ min"))
    expect(dialog).to_contain_text("until it expires, even if cancelled")
    assert person.ok("GET", "/api/control")["user"]["state"] == "halt", "nothing runs before the answer"
    dialog.get_by_role("button", name="Run").click()
    until(lambda: person.ok("GET", "/api/control")["user"]["state"] == "run", "the new state")
    until(lambda: 0 < bids() < 5, "as many bids as have room")

    page.goto(f"/#/tasks/{task}")
    why = page.locator(".why-list")
    expect(why).to_contain_text(
        "This task's signing limit: the remaining room is reserved for renewals. Enough frees up in"
    )
    expect(why).to_contain_text("the rest is reserved for renewals")
