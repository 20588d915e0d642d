"""The demo user's session: signed in as the practice market's play wallet, over plain HTTP."""

from __future__ import annotations

from typing import Any

from cli import api
from core.settings import Settings

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
        """Signs in and prints the page and the token of the same user. Raises as `call`."""
        who = self._market("GET", "/sim/play-wallet")["address"]
        challenge = self.call("POST", "/api/auth/challenge", {"address": who})
        signed = self._market("POST", "/sim/play-wallet/sign", {"message": challenge["message"]})
        proof = {"challengeId": challenge["challengeId"], "address": who, "signature": signed["signature"]}
        self._token = str(self.call("POST", "/api/auth/verify", proof)["token"])
        print(f"signed in as {who}; see its tasks on the page, or call the API with its token:", flush=True)
        print(f"  {page_line(self._settings)}", flush=True)
        print(f"  export TOKEN={self._token}", flush=True)

    def call(self, method: str, path: str, body: Any = None) -> Any:
        """Returns the service's answer.

        Raises NoAnswer when there is none, Unauthorized when the session has ended, and BidkeeperError with the text of
        a refusal.
        """
        try:
            return api.ask_json("server", self._settings.server_at(), method, path, body, token=self._token)
        except api.Unauthorized:
            self._token = ""
            raise

    def metrics(self) -> str:
        """Returns the installation's metrics as text, with little patience; raises as `call`."""
        return api.ask("server", self._settings.server_at(), "GET", "/metrics", patience_s=_PATIENCE_AT_THE_END_S)

    def give(self, vault: str, gifts: list[dict[str, str]]) -> None:
        """Lets the practice market put inscriptions into a vault, and take out any others; raises as `call`."""
        self._market("PUT", f"/sim/wallets/{vault}", {"inscriptions": gifts})

    def send(self, inscription: str, address: str) -> None:
        """Sends an inscription of the demo user's to another address; raises as `call`."""
        body = {"inscriptionId": inscription, "address": address}
        self._market("POST", "/sim/move", body)

    def _market(self, method: str, path: str, body: Any = None) -> Any:
        return api.ask_json("practice market", self._settings.simulator_at, method, path, body)


def page_line(settings: Settings) -> str:
    """Returns the line with the page's address."""
    hint = "click Play wallet to sign in" if settings.has_play_wallet else "sign in with your wallet"
    return f"Bidkeeper's page: {settings.server_at().url}/  ({hint})"
