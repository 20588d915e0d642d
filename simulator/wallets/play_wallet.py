"""The play wallet: a user of the practice market's own, for a newcomer who wants to look around."""

from __future__ import annotations

from collections.abc import Callable

from embit.ec import PrivateKey

from wallet import address
from wallet.hash160 import hash160
from wallet.signer.signing import sign_message


class PlayWallet:
    """One P2WPKH key that signs any text for anybody who reaches this market: it is worth play money only.

    It is made at its first use, of `random_bytes`, so that no two markets in the world have the same one; restarts and
    resets keep it.
    """

    def __init__(self, random_bytes: Callable[[int], bytes]) -> None:
        self._random_bytes = random_bytes
        self._secret: bytes | None = None

    @property
    def address(self) -> str:
        return address.p2wpkh(hash160(self._key().get_public_key().sec()))

    def sign(self, message: str) -> str:
        """Returns the BIP-322 signature (base64) of `message`. Raises UnicodeEncodeError when it is no Unicode."""
        return sign_message(self._key(), "p2wpkh", message)

    def dump(self) -> str | None:
        """Returns the key in hex for the state file, None before its first use."""
        return None if self._secret is None else self._secret.hex()

    def load(self, row: str | None) -> None:
        """Goes on with a dumped key. Raises ValueError or TypeError for anything else."""
        secret = None if row is None else bytes.fromhex(row)
        if secret is not None and len(secret) != 32:
            raise ValueError("the play wallet's key has not 32 bytes")
        self._secret = secret

    def _key(self) -> PrivateKey:
        if self._secret is None:
            self._secret = self._random_bytes(32)
        return PrivateKey(self._secret)
