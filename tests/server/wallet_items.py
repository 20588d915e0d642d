"""An inscription, and what a venue says of it as an item of a wallet."""

from __future__ import annotations

from typing import Any

from markets.base import WalletItem

INSCRIPTION = "7" * 64 + "i0"


def item(**fields: Any) -> WalletItem:
    values = {
        "id": INSCRIPTION,
        "name": "Goosinal #1",
        "collection_id": "goosinals",
        "collection_name": "Goosinals",
        "image_url": "https://example.org/1.png",
        "listed": True,
        "listing_price": 100_000,
    }
    return WalletItem(**(values | fields))
