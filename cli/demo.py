"""`bidkeeper demo`: up, on the practice marketplace, with a demo user whose tasks trade before your eyes.

The demo user is an ordinary one: it signs in with a wallet of its own and talks to the service over HTTP only.
"""

from __future__ import annotations

import argparse
import dataclasses
import hashlib
import http.client
import json
import os
import secrets
from pathlib import Path
from typing import Any

from embit.ec import PrivateKey

from cli.up import Installation
from core.errors import BidkeeperError, SettingsError
from core.settings import Settings
from wallet import address, hash160
from wallet.signing import sign_message

# A quick market wants quick tasks: in half a minute a newcomer is to see bids placed, kept and replaced.
_TASKS: tuple[dict[str, Any], ...] = (
    {
        "slug": "bitcoin-puppets-demo",
        "bidPercentLow": 0.6,
        "bidPercentHigh": 0.9,
        "bidCount": 4,
        "hardcapSats": 4_000_000,
        "loopSeconds": 5,
    },
    {
        "slug": "PRACTICE•RUNE•TOKEN",
        "type": "rune",
        "bidPercentLow": 0.7,
        "bidPercentHigh": 0.95,
        "bidCount": 3,
        "quantity": 20_000,
        "hardcapSats": 1_000_000,
        "loopSeconds": 5,
    },
)

_LISTING = {"collectionId": "bitcoin-puppets-demo", "pricePercent": 1.05, "minPriceSats": 500_000}


def add_arguments(verb: str, parser: argparse.ArgumentParser) -> None:
    """Takes nothing: everything is a setting."""


def run(settings: Settings, options: argparse.Namespace) -> int:
    """As `up`, with the demo's own settings where none were given."""
    if settings.market != "simulator":
        raise SettingsError(["BIDKEEPER_MARKET must be simulator: the demo never touches a real market"])
    environment = {
        "BIDKEEPER_SIMULATOR_BACKGROUND": os.environ.get("BIDKEEPER_SIMULATOR_BACKGROUND") or "true",
        "BIDKEEPER_MIN_AGE_SECONDS": os.environ.get("BIDKEEPER_MIN_AGE_SECONDS") or "8",
        "BIDKEEPER_WHITELIST": os.environ.get("BIDKEEPER_WHITELIST") or "*",
    }
    settings = dataclasses.replace(settings, whitelist=frozenset({"*"}))
    print("starting everything on the practice marketplace: play money, real work (Ctrl-C ends it)", flush=True)
    demo = Demo(settings)
    return Installation(settings, environment).run(demo.step)


class Unauthorized(BidkeeperError):
    """The session is over."""


class Demo:
    """Signs the demo user in, starts its tasks, then prints each cycle of theirs as it ends."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._token = ""
        self._started = False
        self._trouble = ""
        self._seen: dict[str, Any] = {}

    def step(self) -> None:
        """One look; whatever the service cannot answer at the moment is tried again at the next."""
        try:
            if not self._token:
                self._token = self._sign_in()
            if not self._started:
                self._start_tasks()
                self._started = True
            for task in self._call("GET", "/api/tasks"):
                self._tell(f"task {task['id']} {task['slug']}", task)
            for task in self._call("GET", "/api/autolist"):
                self._tell(f"auto-list task {task['id']} {_short(task['inscriptionId'])}", task)
            self._trouble = ""
        except Unauthorized:
            self._token = ""
        except (OSError, http.client.HTTPException, ValueError, BidkeeperError) as error:
            if self._trouble != str(error):
                self._trouble = str(error)
                print(f"demo: {error}", flush=True)

    def _tell(self, name: str, task: dict[str, Any]) -> None:
        now = (task["lastCycle"], task["lastError"])
        if self._seen.get(name) == now or task["lastCycle"] is None:
            return
        self._seen[name] = now
        trouble = f" ({task['lastError']})" if task["lastError"] else ""
        print(f"{name}: {task['lastCycle']['action']}{trouble}", flush=True)

    def _sign_in(self) -> str:
        key = _demo_key(self._settings.data_dir / "demo-wallet.json")
        who = address.p2wpkh(hash160.hash160(key.get_public_key().sec()))
        challenge = self._call("POST", "/api/auth/challenge", {"address": who})
        proof = {
            "challengeId": challenge["challengeId"],
            "address": who,
            "signature": sign_message(key, "p2wpkh", challenge["message"]),
        }
        answer = self._call("POST", "/api/auth/verify", proof)
        print(f"signed in as {who}; to look around with its eyes:", flush=True)
        print(f"  export TOKEN={answer['token']}", flush=True)
        return str(answer["token"])

    def _start_tasks(self) -> None:
        there = {task["slug"]: task for task in self._call("GET", "/api/tasks")}
        for config in _TASKS:
            task = there.get(config["slug"]) or self._call("POST", "/api/tasks", config)
            self._call("POST", f"/api/tasks/{task['id']}/start")
            print(f"task {task['id']} {task['slug']}: started", flush=True)
        self._start_listing()

    def _start_listing(self) -> None:
        """The practice market gives the demo user's vault an inscription, which is put up for sale."""
        vault = self._call("GET", "/api/wallet")["vault"]
        inscription = f"{hashlib.sha256(vault.encode()).hexdigest()}i0"
        there = {task["inscriptionId"]: task for task in self._call("GET", "/api/autolist")}
        if inscription in there and not there[inscription]["isRunning"]:
            return  # it was sold, or stopped
        gift = {"id": inscription, "collection": _LISTING["collectionId"], "name": "Demo Puppet"}
        self._ask(self._settings.simulator_port, "PUT", f"/sim/wallets/{vault}", {"inscriptions": [gift]})
        body = {"inscriptionId": inscription, **_LISTING}
        task = there.get(inscription) or self._call("POST", "/api/autolist", body)
        self._call("POST", f"/api/autolist/{task['id']}/start")
        print(f"auto-list task {task['id']} {_short(inscription)}: started", flush=True)

    def _call(self, method: str, path: str, body: Any = None) -> Any:
        return self._ask(self._settings.port, method, path, body)

    def _ask(self, port: int, method: str, path: str, body: Any) -> Any:
        connection = http.client.HTTPConnection(self._settings.host, port, timeout=30)
        headers = {"Authorization": f"Bearer {self._token}"} if self._token else {}
        try:
            connection.request(method, path, None if body is None else json.dumps(body), headers)
            answer = connection.getresponse()
            text = answer.read()
            if answer.status == 401:
                raise Unauthorized(f"{method} {path}: the session is over")
            if answer.status >= 300:
                raise BidkeeperError(f"{method} {path}: {answer.status} {text.decode(errors='replace')[:300]}")
            return json.loads(text)
        finally:
            connection.close()


def _short(inscription_id: str) -> str:
    return f"{inscription_id[:8]}...{inscription_id[-4:]}"


def _demo_key(path: Path) -> PrivateKey:
    """The demo user's sign-in key, made at the first demo in this data directory. It never holds money."""
    if not path.exists():
        path.touch(mode=0o600)
        path.write_text(json.dumps({"play_money_sign_in_key": secrets.token_hex(32)}))
    stored = json.loads(path.read_text())
    return PrivateKey(bytes.fromhex(stored["play_money_sign_in_key"]))
