"""`bidkeeper sign-in ADDRESS`: signs in without a front end, by a signature made in any wallet."""

from __future__ import annotations

import argparse
import sys

from cli import api
from cli.arguments import address
from core.errors import BidkeeperError
from core.settings import Settings

# How to make a BIP-322 signature in each wallet; several make another kind by default.
WALLETS = """Sign this text with BIP-322 in your wallet:
  UniSat, OKX   signMessage(text, "bip322-simple")        Leather   request("signMessage", {message, paymentType})
  Xverse        request("signMessage", {address, message, protocol: "BIP322"})
  Sparrow       Tools, Sign/Verify Message, Format: BIP322 (Simple)"""


def add_arguments(verb: str, parser: argparse.ArgumentParser) -> None:
    """Adds ADDRESS."""
    parser.add_argument("address", type=address, help="the address that you sign in with")


def run(settings: Settings, options: argparse.Namespace) -> int:
    """Prints the text to sign, reads the signature from standard input, and prints the session's token.

    Raises BidkeeperError if the service does not answer or refuses.
    """
    challenge = _ask(settings, "/api/auth/challenge", {"address": options.address})
    print(f"{WALLETS}\n\n{challenge['message']}\n", file=sys.stderr)
    print("signature (base64): ", end="", file=sys.stderr, flush=True)
    signature = sys.stdin.readline().strip()
    if not signature:
        raise BidkeeperError("no signature was given")
    proof = {"challengeId": challenge["challengeId"], "address": options.address, "signature": signature}
    session = _ask(settings, "/api/auth/verify", proof)
    print(f"signed in; bidkeeper wallet {options.address} shows where money goes", file=sys.stderr)
    print(f"export TOKEN={session['token']}")
    return 0


def _ask(settings: Settings, path: str, body: dict[str, str]) -> dict[str, str]:
    try:
        answer: dict[str, str] = api.ask_json("server", settings.server_at(), "POST", path, body)
    except api.NoAnswer as error:
        raise BidkeeperError(f"{error}; start one with bidkeeper up") from error
    return answer
