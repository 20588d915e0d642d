"""`bidkeeper venue learnt refused [NUMBER]`: the drafts that the signer refused, as it kept them."""

from __future__ import annotations

from datetime import UTC, datetime

from core.errors import BidkeeperError
from core.settings import Settings
from wallet import judgement
from wallet.learnt.refused import REFUSED_DIRECTORY, RefusedDraft, RefusedDrafts
from wallet.signer_client import SignerClient, SignerError

_PATIENCE_S = 15.0
_WIDTH = 160


def show(settings: Settings, number: int | None) -> int:
    """Prints a line for each draft, newest first, or one with its PSBTs; returns 1 when there is none of that number.

    Raises BidkeeperError when the signer's directory may not be read.
    """
    directory = settings.signer_files / REFUSED_DIRECTORY
    try:
        drafts = RefusedDrafts(directory).all()
    except OSError as error:
        raise BidkeeperError(f"failed to read {directory}: {error.strerror}: only the signer's own user may") from None
    if number is None:
        for at, draft in enumerate(drafts, start=1):
            print(f"{at}  {_line(draft)}"[:_WIDTH])
        if not drafts:
            print("no draft of a listing was refused")
        return 0
    if not 0 < number <= len(drafts):
        print(f"there is no draft {number}: {len(drafts)} are kept")
        return 1
    draft = drafts[number - 1]
    print(_line(draft))
    print(f"of {draft.user}, {draft.listing.inscription_id} at {draft.listing.outpoint}, intent {draft.listing.intent}")
    print("\n".join(_judged_now(settings, draft)))
    given = draft.listing
    for name, psbts in (
        ("draft", [given.psbt]),
        ("secure", given.secure),
        ("escrow", [given.transfer, given.recovery]),
    ):
        for psbt in filter(None, psbts):
            print(f"\n{name} PSBT:\n{psbt}")
    return 0


def _line(draft: RefusedDraft) -> str:
    when = datetime.fromtimestamp(draft.refused_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S")
    what = f"{draft.venue} {draft.kind}, task {draft.task}, {draft.listing.price:,} sats"
    return f"{when}  {what}  {draft.rule}: {draft.why}"


def _judged_now(settings: Settings, draft: RefusedDraft) -> list[str]:
    """Returns the signer's judgement of the draft in words, by what is so at this moment."""
    try:
        signer = SignerClient(settings.operators_socket, _PATIENCE_S)
        judged = signer.judge(draft.user, draft.venue, draft.listing, draft.min_price_sats)
    except SignerError as error:
        return [f"it cannot be judged now: {error}"]
    return ["\nas the signer judges it now:", *(line for each in judged for line in judgement.in_words(each))]
