"""A keystore whose user has the keys of `listings.py`, so that what is made there can be signed by a signer."""

from __future__ import annotations

import functools
from typing import cast

from tests.wallet import listings
from wallet.keystore.keys import Keystore, UserSecrets, user_secrets


class FixedKeys:
    """USER's payment key and vault are those of `listings.py`; everybody else has keys of their own."""

    def __init__(self, user: str, is_play: bool) -> None:
        self._user = user
        self.users: tuple[str, ...] = (user,)
        self.is_play = is_play

    def secrets_of(self, user: str) -> UserSecrets:
        return _secrets(user, user == self._user)


@functools.cache
def _secrets(user: str, is_known: bool) -> UserSecrets:
    if is_known:
        return user_secrets(listings.PAYMENT, listings.VAULT)
    return user_secrets(listings.key(f"payment of {user}"), listings.key(f"vault of {user}"))


def fixed_keys(user: str, is_play: bool = True) -> Keystore:
    return cast(Keystore, FixedKeys(user, is_play))
