"""The measure of a reference price: the name under which its history is kept."""

from __future__ import annotations

from collections.abc import Collection

from strategy.config.bid import BidConfig


def measure(config: BidConfig) -> str:
    """Returns the measure of this config's reference: tasks of one slug with the same measure share its history."""
    return _measured(config) + without(config.ignore_addresses)


def without(ignored: Collection[str]) -> str:
    """Returns the end of a measure for which the orders of these addresses do not count."""
    return f" without {' '.join(sorted(ignored))}" if ignored else ""


def _measured(config: BidConfig) -> str:
    if config.bid_type == "trait":
        kind = config.trait_type.replace("\\", "\\\\").replace("=", "\\=")  # "A=B" of "c" is not "A" of "B=c"
        return f"trait:{kind}={config.trait_value}"
    return f"vwap:{config.depth_sats}" if config.is_rune and config.use_vwap else "floor"
