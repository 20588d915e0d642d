"""A check that Satflow hides no sales: a filled bid without a sale looks like a cancelled one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from cli.doctor.check import Check, fail, ok

_NAME = "satflow fills"
_REMEDY = "bidkeeper venue probe satflow --save FILE, and report it"


def examine(answers: Mapping[tuple[str, str], Any]) -> Iterator[Check]:
    """Compares the newest sales, asked for with `active=false`, with those told without, by (venue, question)."""
    asked, unasked = answers.get(("satflow", "sales")), answers.get(("satflow", "sales unasked"))
    if asked is None or not unasked:
        return
    known = {sale.sale_id for sale in asked}
    # Older ones may be on a later page.
    since_ms = min((sale.sold_ms for sale in asked), default=0)
    hidden = [sale for sale in unasked if sale.sold_ms > since_ms and sale.sale_id not in known]
    if hidden:
        text = f"{len(hidden)} of {len(unasked)} sales are missing when asked with active=false"
        yield fail(_NAME, f"{text}: our fills may be mistaken for lost bids", _REMEDY)
    else:
        yield ok(_NAME, f"the {len(asked)} sales with active=false include all of the newest sales")
