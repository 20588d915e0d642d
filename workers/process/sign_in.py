"""Sign-ins at a venue that wants a session: the gateway asks for one, the signer signs, the gateway keeps it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from markets.base import RateLimited, Refused, SignInNeeded, Unavailable, VenueError
from markets.client import MarketClient
from markets.orders import Pair, SignInAnswer
from markets.verbs import Answer, Args
from models.tasks import tasks
from wallet.protocol import UserKeys
from wallet.signer_client import SignerClient, SignerError

SignIn = Callable[[MarketClient], None]


class SigningInClient(MarketClient):
    """A client of the gateway that signs in when a venue asks for it, and then repeats the call.

    Nothing was sent when a venue asks for a sign-in, so a write is repeated as safely as a read.
    """

    def __init__(self, socket_path: Path, sign_in: SignIn, timeout_s: float = 30.0, venue: str | None = None) -> None:
        super().__init__(socket_path, timeout_s, venue)
        self._sign_in = sign_in
        self._is_signing_in = False

    def call(self, args: Args[Answer], **more: Any) -> Answer:
        try:
            return super().call(args, **more)
        except SignInNeeded:
            if self._is_signing_in:
                raise
        self._is_signing_in = True
        try:
            self._sign_in(self)
        except RateLimited:
            raise
        except VenueError as error:
            # Whatever its result, the call itself was not sent.
            raise Unavailable(f"failed to sign in: {error}") from error
        finally:
            self._is_signing_in = False
        return super().call(args, **more)


class TaskSignIn:
    """Signs a task's user in, with the payment address and the vault, under the grant of `token`.

    `owner` is the user's sign-in address; without it the task's row has it, where a newer token's holder ends this one.
    """

    def __init__(self, signer: SignerClient, task_id: int, token: int, secret: str, owner: str | None = None) -> None:
        self._signer = signer
        self._task_id = task_id
        self._token = token
        self._secret = secret
        self._owner = owner
        self._keys: UserKeys | None = None

    def __call__(self, market: MarketClient) -> None:
        """Signs in. Raises VenueError leaves; Unavailable without a signature."""
        try:
            keys = self._known_keys()
            pair = Pair(keys.payment, keys.payment_pubkey, keys.vault, keys.vault_pubkey)
            wanted = market.sign_in_texts(pair)
            signatures = {text.id: self._signed(text.message, text.address, keys) for text in wanted.texts}
        except SignerError as error:
            raise Unavailable(str(error)) from error
        try:
            market.sign_in(SignInAnswer(pair, wanted.reference, signatures))
        except Refused as error:  # a venue may want some money at that address
            if "payment address" not in error.message.lower():
                raise
            raise Unavailable(f"{error.message}; the payment address is {keys.payment}") from error

    def _known_keys(self) -> UserKeys:
        if self._keys is None:
            self._keys = self._signer.addresses(self._owner or self._owner_in_row())
        return self._keys

    def _owner_in_row(self) -> str:
        row = tasks.under_token(self._task_id, self._token)
        if row is None:
            raise Unavailable("the task is no longer this worker's")
        return str(row.user.address)

    def _signed(self, message: str, address: str, keys: UserKeys) -> str:
        if address not in (keys.payment, keys.vault):
            raise Unavailable("the venue wants an address to sign that is none of ours")
        return self._signer.sign_sign_in(
            self._task_id, self._token, self._secret, message, "vault" if address == keys.vault else "payment"
        )
