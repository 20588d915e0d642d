"""A person's affairs with something of everything to show: bids, a rune's, a fill, a listing, a fault."""

from __future__ import annotations

import secrets

from tests.e2e.installation import Installation, in_path, until
from tests.web.visitor import Person

BEARS, CATS, RUNE = "ordinal-bears", "quiet-cats", "FURNISHED•RUNE"
AWAY, RESTING = "not-a-collection", "a-task-that-was-never-started"


def furnish(service: Installation) -> Person:
    """Makes a person and their tasks, and waits until each has something to show."""
    person = Person(service).sign_in()
    service.put_collection(BEARS, [2_000_000, 2_050_000, 2_200_000, 2_400_000, 2_700_000])
    service.put_collection(CATS, [800_000, 810_000, 950_000])
    asks = [{"tokens": 400_000, "unitPrice": "1.00"}, {"tokens": 300_000, "unitPrice": "1.10"}]
    service.sim("PUT", f"/sim/runes/{in_path(RUNE)}", {"divisibility": 0, "asks": asks, "bids": []})

    ladder = {"bidPercentLow": 0.5, "bidPercentHigh": 0.9, "bidCount": 4, "loopSeconds": 5}
    bears = person.task(slug=BEARS, **ladder, hardcapSats=1_700_000)
    rune = person.task(slug=RUNE, type="rune", **ladder, quantity=50_000, hardcapSats=90_000)
    on_paper = person.task(slug=CATS, **ladder, hardcapSats=900_000, dryRun=True)
    away = person.task(slug=AWAY, **ladder, hardcapSats=900_000)
    person.task(slug=RESTING, **ladder, hardcapSats=900_000)
    for task in (bears, rune, on_paper, away):
        person.start(task)
    listing = _list(person)

    until(lambda: len(service.live_prices(BEARS)) == 4, "the ladder")
    until(lambda: person.bids(rune), "the rune's bids")
    service.sim("POST", "/sim/sell", {"slug": BEARS})
    until(lambda: person.ok("GET", "/api/fills")["fills"], "the fill")
    until(lambda: person.get(away)["lastError"], "the fault")
    until(lambda: (person.ok("GET", f"/api/autolist/{listing}")["listing"] or {}).get("state") == "live", "the listing")
    return person


def _list(person: Person) -> int:
    vault = person.ok("GET", "/api/wallet")["vault"]
    item = {"id": f"{secrets.token_hex(32)}i0", "collection": CATS, "name": "Quiet Cat #7"}
    person.installation.sim("PUT", f"/sim/wallets/{vault}", {"inscriptions": [item]})
    body = {"inscriptionId": item["id"], "collectionId": CATS, "pricePercent": 1.15, "loopSeconds": 5}
    task = int(person.ok("POST", "/api/autolist", body)["id"])
    person.ok("POST", f"/api/autolist/{task}/start")
    return task
