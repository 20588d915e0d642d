"""The operations on the marketplaces, and on the caller's money here."""

from __future__ import annotations

from server.http.answers import INVALID, SIGNER_AWAY, TOO_MANY_LOOKUPS, UNREADABLE
from server.openapi.operation import AnswerBody, Operation, many, one
from server.schemas.service_answers import VenueInfo
from server.schemas.withdrawals import NewWithdrawal, Quote, Wallet, WithdrawalBody

OPERATIONS = {
    "GET /api/venues": Operation(
        id="listVenues",
        tag="market",
        summary="Marketplaces that tasks can name",
        text="With what each can do here, its limits and what is left of its quota.",
        success=many(VenueInfo, "The default one first."),
    ),
    "GET /api/wallet": Operation(
        id="getWallet",
        tag="wallet",
        summary="My addresses here and the money behind my bids",
        text="With the balance behind the bids, what is signed, and the newest withdrawals.",
        success=one(Wallet, "`biddingWallet` is null, with `balanceError`, when it cannot be told."),
        errors={503: SIGNER_AWAY},
    ),
    "POST /api/wallet/withdraw": Operation(
        id="withdraw",
        tag="wallet",
        summary="Get my money and inscriptions out",
        text="From `payment` and `vault` everything goes to the address that the caller signs in with; the signer "
        "knows it by itself and sends nowhere else. From `bidding` sats come to the caller's payment address. Asking "
        "twice withdraws twice.",
        body=WithdrawalBody,
        success={
            200: AnswerBody("With `dryRun`: what would be sent.", Quote),
            201: AnswerBody("It is on its way.", NewWithdrawal),
            202: AnswerBody("It is signed, and it is not known yet whether it has left.", NewWithdrawal),
        },
        errors={
            400: INVALID,
            409: "Nothing can be withdrawn like this; `message` says why and what to do.",
            429: TOO_MANY_LOOKUPS,
            502: UNREADABLE,
            503: SIGNER_AWAY,
        },
    ),
}
