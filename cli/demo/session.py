"""The demo user's session: signed in with a wallet of its own, over plain HTTP."""

from __future__ import annotations

import json
import secrets
from pathlib import Path
from typing import Any

from embit.ec import PrivateKey

from cli import api
from core.settings import Settings
from wallet import address, hash160
from wallet.signer.signing import sign_message

_PATIENCE_S = 30
_PATIENCE_AT_THE_END_S = 2


class Session:
    """Calls to one installation, and to its practice marketplace."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._token = ""

    @property
    def is_signed_in(self) -> bool:
        return bool(self._token)

    def sign_in(self) -> None:
        """Signs in. Raises as `call`."""
        key = _demo_key(self._settings.data_dir / "demo-wallet.json")
        who = address.p2wpkh(hash160.hash160(key.get_public_key().sec()))
        challenge = self.call("POST", "/api/auth/challenge", {"address": who})
        proof = {
            "challengeId": challenge["challengeId"],
            "address": who,
            "signature": sign_message(key, "p2wpkh", challenge["message"]),
        }
        self._token = str(self.call("POST", "/api/auth/verify", proof)["token"])
        print(f"signed in as {who}; to look around with its eyes:", flush=True)
        print(f"  export TOKEN={self._token}", flush=True)

    def call(self, method: str, path: str, body: Any = None) -> Any:
        """Returns the service's answer.

        Raises OSError, HTTPException or ValueError when there is none, Unauthorized when the session has ended, and
        BidkeeperError with the text of a refusal.
        """
        return json.loads(self._ask(self._settings.port, method, path, body))

    def metrics(self) -> str:
        """Returns the installation's metrics as text, with little patience; raises as `call`."""
        return self._ask(self._settings.port, "GET", "/metrics", None, _PATIENCE_AT_THE_END_S)

    def give(self, vault: str, gifts: list[dict[str, str]]) -> None:
        """Lets the practice market put inscriptions into a vault, and take out any others; raises as `call`."""
        self._ask(self._settings.simulator_port, "PUT", f"/sim/wallets/{vault}", {"inscriptions": gifts})

    def send(self, inscription: str, address: str) -> None:
        """Sends an inscription of the demo user's to another address; raises as `call`."""
        body = {"inscriptionId": inscription, "address": address}
        self._ask(self._settings.simulator_port, "POST", "/sim/move", body)

    def _ask(self, port: int, method: str, path: str, body: Any, patience_s: float = _PATIENCE_S) -> str:
        try:
            return api.ask(self._settings.host, port, method, path, body, self._token, patience_s)
        except api.Unauthorized:
            self._token = ""
            raise


def _demo_key(path: Path) -> PrivateKey:
    """Returns the demo user's sign-in key, made at the first demo in this data directory. It never holds money."""
    if not path.exists():
        path.touch(mode=0o600)
        path.write_text(json.dumps({"play_money_sign_in_key": secrets.token_hex(32)}))
    stored = json.loads(path.read_text())
    return PrivateKey(bytes.fromhex(stored["play_money_sign_in_key"]))
