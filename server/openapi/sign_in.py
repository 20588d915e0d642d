"""The operations of signing in and of the profile."""

from __future__ import annotations

from server.http.answers import INVALID, SIGNER_AWAY, TOO_MANY_LOOKUPS, UNREADABLE
from server.openapi.operation import Operation, one
from server.schemas.answers import Success
from server.schemas.auth import (
    Challenge,
    ChallengeBody,
    PlayBody,
    PlayProof,
    PlayWallet,
    Profile,
    ProfileBody,
    Session,
    VerifyBody,
)

_TAG = "sign-in"
_TOO_OFTEN = "Too many sign-in calls; `Retry-After` says when to come back."
_NOT_LISTED = "The address is not whitelisted."

OPERATIONS = {
    "POST /api/auth/challenge": Operation(
        id="openChallenge",
        tag=_TAG,
        summary="Ask for a text to sign",
        text="With a bearer token and another address than one's own, the text only proves that address.",
        body=ChallengeBody,
        success=one(Challenge, "The text, to be signed before it expires."),
        errors={400: "Not a Bitcoin address that can sign in.", 403: _NOT_LISTED, 429: _TOO_OFTEN},
        is_open=True,
        may_sign_in=True,
    ),
    "POST /api/auth/verify": Operation(
        id="signIn",
        tag=_TAG,
        summary="Give the signature, get a token",
        text="The signature is BIP-322 (simple). `publicKey` is checked for its shape and never trusted.",
        body=VerifyBody,
        success=one(Session, "Signed in."),
        errors={
            400: "Fields are missing or wrong.",
            401: "The signature is wrong, or the challenge is unknown, used or expired.",
            403: _NOT_LISTED,
            429: _TOO_OFTEN,
        },
        is_open=True,
    ),
    "GET /api/auth/play": Operation(
        id="getPlayWallet",
        tag=_TAG,
        summary="The play wallet's address",
        text="The practice market's own user, whom everybody may sign in as: the money is play money.",
        success=one(PlayWallet, "Whether there is one."),
        errors={429: _TOO_OFTEN, 502: UNREADABLE},
        is_open=True,
    ),
    "POST /api/auth/play": Operation(
        id="signAsPlayWallet",
        tag=_TAG,
        summary="Have the play wallet sign",
        text="Signs the text of a challenge of the play wallet's own address, for signIn.",
        body=PlayBody,
        success=one(PlayProof, "The signature."),
        errors={
            400: "Not a challenge of the play wallet's, or it is used or expired.",
            404: "There is no play wallet here.",
            429: _TOO_OFTEN,
            502: UNREADABLE,
        },
        is_open=True,
    ),
    "POST /api/auth/logout": Operation(
        id="signOut",
        tag=_TAG,
        summary="End this session",
        text="Ends the session of the token that it is called with; others go on.",
        success=one(Success, "The token is void."),
    ),
    "GET /api/auth/me": Operation(
        id="getProfile",
        tag=_TAG,
        summary="Who I am",
        text="With the limits of the plan, and how much of them is used.",
        success=one(Profile, "Profile, plan and its use."),
    ),
    "PATCH /api/auth/me": Operation(
        id="changeProfile",
        tag=_TAG,
        summary="Change the name or the ordinals address",
        text="Another `ordinalsAddress` comes with `approvalId` and `approvalSignature` of an approval (openApproval), "
        "and with `challengeId` and `signature` of a challenge for that address unless it is the sign-in address.",
        body=ProfileBody,
        success=one(Profile, "The profile as it is now."),
        errors={
            400: INVALID,
            409: "The ordinals address is in use: bids are open, a task runs, or the bidding wallet holds a balance.",
            429: TOO_MANY_LOOKUPS,
            502: UNREADABLE,
            503: SIGNER_AWAY,
        },
    ),
}
