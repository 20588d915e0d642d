"""Probe files as they should be, one for each marketplace, of six rows a list; tests spoil copies of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

AT_MS = 1_790_000_000_000
SLUG, RUNE = "puppets", "AAA•BBB"
ROWS = range(1, 7)


def address(number: int) -> str:
    """Returns an address of one of the traders."""
    return f"bc1p{'q' * 57}{number}"


def item(number: int) -> str:
    """Returns the id of an inscription."""
    return f"{number:064x}i0"


def order(number: int) -> str:
    """Returns the id of an order."""
    return f"65a0{number:020x}"


def iso(number: int) -> str:
    """Returns the time of a row."""
    return f"2026-09-2{number}T10:00:00.000Z"


def each(row: Callable[[int], dict[str, Any]]) -> list[dict[str, Any]]:
    """Returns six rows."""
    return [row(number) for number in ROWS]


def exchange(path: str, answer: Any, method: str = "GET", status: int = 200) -> dict[str, Any]:
    """Returns one exchange of a probe file."""
    asked = {"method": method, "path": path, "params": {}, "body": None}
    return asked | {"status": status, "headers": {"Content-Type": "application/json"}, "answer": answer}


def file(venue: str, **exchanges: dict[str, Any]) -> dict[str, Any]:
    """Returns a probe file with one exchange for each question, whose name has _ for blanks."""
    about = {"collection": SLUG, "rune": RUNE, "inscription": item(1), "bidder": address(1), "seller": address(1)}
    asked = [{"name": name.replace("_", " "), "exchanges": [made]} for name, made in exchanges.items()]
    head = {"format": "bidkeeper-probe", "version": 1, "bidkeeper": "0.1.0 (test)", "venue": venue, "askedMs": AT_MS}
    return head | {"about": about, "questions": asked}


def satflow() -> dict[str, Any]:
    def data(found: Any) -> dict[str, Any]:
        return {"success": True, "data": found}

    def listing(n: int) -> dict[str, Any]:
        row = {"_id": order(n), "collectionSlug": SLUG, "inscriptionId": item(n), "price": 500_000 + 1000 * n}
        return row | {"sellerOrdAddress": address(n), "timestamp": AT_MS + n, "cancelledAt": None}

    def bid(n: int) -> dict[str, Any]:
        row = {"_id": order(n), "collectionSlug": SLUG, "price": 400_000 - 1000 * n, "unitPrice": 400_000 - 1000 * n}
        return row | {"quantity": 1, "bidderAddress": address(n), "createdAt": iso(n)}

    def own_bid(n: int) -> dict[str, Any]:
        row = {"bid_id": order(n), "type": "collection", "price": 300_000 + n, "quantity": 1}
        return row | {"expiration": AT_MS + n, "inscription_metadata": {"collection": {"id": SLUG}}}

    def sale(n: int) -> dict[str, Any]:
        row = {"_id": order(n), "collectionSlug": SLUG, "inscriptionId": item(n), "price": 490_000 + n}
        return row | {"fillCompletedAt": iso(n)}

    def held(n: int) -> dict[str, Any]:
        listing = {"_id": order(n), "price": 600_000 + n, "sellerOrdAddress": address(1)}
        return {"token": {"inscription_id": item(n)}, "collection": {"id": SLUG}, "listing": listing}

    contents = {"results": {"ordinals": each(held)}, "nextCursor": None}
    pages = {"page": 1, "pageSize": 100, "total": 6, "totalPages": 1}
    return file(
        "satflow",
        floors=exchange("/collection-stats/floors", data([{"slug": SLUG, "floor": 501_000, "listedCount": 6}])),
        listings=exchange("/activity/listings", data({"items": each(listing), "pagination": pages})),
        bids=exchange("/activity/bids", data({"items": each(bid), "pagination": pages})),
        bids_of_a_bidder=exchange("/address/bids", data(each(own_bid))),
        sales=exchange("/activity/sales", data({"items": each(sale), "pagination": pages})),
        listings_of_a_seller=exchange("/address/wallet-contents", data(contents)),
        item=exchange("/item", data({"id": item(1), "owner": address(1), "listed": True})),
    )


def unisat() -> dict[str, Any]:
    def data(found: Any) -> dict[str, Any]:
        return {"code": 0, "msg": "ok", "data": found}

    def rows(row: Callable[[int], dict[str, Any]]) -> dict[str, Any]:
        return data({"list": each(row), "total": 6})

    def listing(n: int, seller: str = "") -> dict[str, Any]:
        row = {"auctionId": order(n), "inscriptionId": item(n), "price": 500_000 + 1000 * n, "marketType": "fixedPrice"}
        return row | {"unitPrice": 500_000 + 1000 * n, "address": seller or address(n), "collectionId": SLUG}

    def lot(n: int) -> dict[str, Any]:
        return {
            "auctionId": order(n),
            "address": address(n),
            "price": 5000 * n,
            "tick": RUNE,
            "amount": 1000,
            "unitPrice": 5 * n,
        }

    def sale(n: int) -> dict[str, Any]:
        row = {"auctionId": order(n), "inscriptionId": item(n), "collectionId": SLUG, "event": "Sold"}
        return row | {"price": 490_000 + n, "to": address(n), "from": address(n + 1), "timestamp": AT_MS + n}

    there, runes = "/v3/market/collection/auction", "/v3/market/runes/auction/list"
    statistic = {"collectionId": SLUG, "name": "Puppets", "floorPrice": 501_000, "listed": 6}
    return file(
        "unisat",
        rune_listings=exchange(runes, rows(lot), "POST"),
        floors=exchange(f"{there}/collection_statistic", data(statistic), "POST"),
        listings=exchange(f"{there}/list", rows(listing), "POST"),
        listings_of_a_seller=exchange(f"{there}/list", rows(lambda n: listing(n, address(1))), "POST"),
        sales=exchange(f"{there}/actions", rows(sale), "POST"),
    )


def ordnet() -> dict[str, Any]:
    pages = {"pageSize": 6, "hasNext": False, "nextCursor": None}

    def uuid(n: int) -> str:
        return f"00000000-0000-4000-8000-{n:012}"

    def listing(n: int, seller: str = "") -> dict[str, Any]:
        row = {"listingId": uuid(n), "inscriptionId": item(n), "priceSats": 500_000 + 1000 * n}
        return row | {"collection": {"slug": SLUG}, "sellerAddress": seller or address(n), "listedAt": iso(n)}

    def offer(n: int) -> dict[str, Any]:
        row = {"id": uuid(n), "priceSats": 400_000 - 5000 * n, "makerAddress": address(n), "status": "active"}
        return row | {"target": {"kind": "traits", "traits": [{"type": "Hat", "values": ["Red"]}]}, "createdAt": iso(n)}

    def sale(n: int) -> dict[str, Any]:
        row = {"saleId": uuid(n), "inscriptionId": item(n), "collection": {"slug": SLUG}, "saleType": "internal"}
        return row | {"priceSats": 490_000 + n, "buyerAddress": address(n), "soldAt": iso(n)}

    pair = {"payment": address(8), "ordinals": address(9)}
    texts = [
        {"challengeId": uuid(10 + n), "role": role, "address": where, "message": "sign in"}
        for n, (role, where) in enumerate(pair.items())
    ]
    binding = {"walletBindingId": uuid(20), "paymentAddress": address(8), "ordinalsAddress": address(9)}
    session = {"sessionToken": "t" * 40, "expiresAt": "2026-09-22T10:00:00.000Z", "walletBindings": [binding]}
    offers = {"rows": each(offer), "totalCount": 6}
    made = file(
        "ordnet",
        sign_in_texts=exchange("/auth/challenge", {"authRequestId": uuid(9), "challenges": texts}, "POST"),
        sign_in=exchange("/auth/verify", session, "POST"),
        floors=exchange(
            "/collection-stats/floors", {"success": True, "data": [{"slug": SLUG, "floor": 501_000, "listedCount": 6}]}
        ),
        listings=exchange("/listings", {"listings": each(listing), "pagination": pages}),
        bids=exchange(f"/collection/{SLUG}/collection-offers", offers),
        sales=exchange("/sales", {"sales": each(sale), "pagination": pages}),
        listings_of_a_seller=exchange(
            "/listings", {"listings": each(lambda n: listing(n, address(1))), "pagination": pages}
        ),
    )
    made["questions"][1]["name"] = "sign-in"
    made["questions"][0]["name"] = "sign-in texts"
    made["about"] |= pair
    return made


def ordinalswallet() -> dict[str, Any]:
    def uuid(n: int) -> str:
        return f"00000000-0000-4000-8000-{n:012}"

    def listing(n: int) -> dict[str, Any]:
        row = {"id": uuid(n), "inscription_id": item(n), "seller_address": address(n), "bought_at": None}
        return row | {"satoshi_price": 500_000 + 1000 * n, "purchase_txid": None}

    def sale(n: int) -> dict[str, Any]:
        row = {"id": uuid(n), "inscription_id": item(n), "seller_address": address(n), "buyer_address": address(n + 1)}
        return row | {"satoshi_price": 490_000 + n, "bought_at": f"2026-09-2{n} 10:00:00.000000+00"}

    def held(n: int) -> dict[str, Any]:
        escrow = {"satoshi_price": 600_000 + n, "escrow_price": 580_000 + n, "seller_address": address(1)}
        return {"id": item(n), "collection": {"slug": SLUG}, "escrow": escrow}

    there = f"/collection/{SLUG}"
    return file(
        "ordinalswallet",
        floors=exchange(f"{there}/stats", {"floor_price": 501_000, "listed": 6}),
        listings=exchange(f"{there}/escrows", each(listing)),
        sales=exchange(f"{there}/sold-escrows", each(sale)),
        listings_of_a_seller=exchange(f"/wallet/{address(1)}/inscriptions", each(held)),
    )


GOOD: dict[str, Callable[[], dict[str, Any]]] = {
    "satflow": satflow,
    "unisat": unisat,
    "ordnet": ordnet,
    "ordinalswallet": ordinalswallet,
}
