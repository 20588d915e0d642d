"""The adapters of the configured marketplaces, made from the settings by dialect."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from core.settings import PLAY_MARKET, Settings, dialect_of
from markets.adapter import Adapter
from markets.ordinalswallet.adapter import OrdinalsWallet
from markets.ordnet.adapter import OrdNet
from markets.satflow.adapter import Satflow
from markets.unisat.market import UnisatMarket

PLAY_KEY = "simulator"


def market_adapters(settings: Settings) -> dict[str, Adapter]:
    """Makes the adapters of the marketplaces that are set up here, by name, the default one first."""
    found = {}
    for name in settings.venues:
        dialect = dialect_of(name) or ""
        base = settings.venue_url(dialect)
        if base is not None:
            found[name] = adapter_of(name, base, key_of(settings, dialect), settings)
    return found


def adapter_of(name: str, base: str, key: str, settings: Settings) -> Adapter:
    """Makes the adapter of the marketplace `name` at the address `base`."""
    return _MAKERS[dialect_of(name) or ""](base, key, name, settings)


def key_of(settings: Settings, dialect: str) -> str:
    """Returns our key at the marketplace; "" where it wants none."""
    if settings.market == PLAY_MARKET:
        return PLAY_KEY
    given: str | None = getattr(settings, f"{dialect}_api_key", None)
    return given or ""


_MAKERS: Mapping[str, Callable[[str, str, str, Settings], Adapter]] = {
    "satflow": lambda base, key, name, settings: Satflow(base, key, name, settings.satflow_rune_price),
    "ordnet": lambda base, key, name, settings: OrdNet(base, name),
    "unisat": lambda base, key, name, settings: UnisatMarket(base, key, name),
    "ordinalswallet": lambda base, key, name, settings: OrdinalsWallet(
        base, name, is_protecting=settings.ordinalswallet_protected_listings
    ),
}
