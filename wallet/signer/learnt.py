"""The comparison of a venue's drafts with the forms that an operator has confirmed.

It comes after the rules, and never in place of one: without a learnt form they alone decide.
"""

from __future__ import annotations

from collections.abc import Iterable

from wallet.learnt.form import TAG, SeenDraft, Whose, differences
from wallet.learnt.seen import seen_in
from wallet.learnt.store import LearntForms
from wallet.policy import PolicyRefused
from wallet.psbt.check_listing import inputs_reserved
from wallet.psbt.common import psbt_strict
from wallet.psbt.listing import ApprovedListing, ListingIntent, OutpointFacts, Owner
from wallet.psbt.script import own_script

_MOST_TOLD = 3


def kind_at(at: int) -> str:
    """Returns the kind of the PSBT at this place of a listing: `plain`, `secure`, `secure-2`, and so on."""
    return ("plain", "secure")[at] if at < 2 else f"secure-{at}"


def seen_of(raw: bytes, intent: ListingIntent, facts: OutpointFacts | None, owner: Owner) -> SeenDraft:
    """Reads a listing's draft for a comparison. Raises PolicyRefused when it cannot be read, or facts are missing."""
    psbt = psbt_strict(raw)
    index = inputs_reserved(psbt, intent, owner)
    if facts is None or facts.value_sats is None or intent.price_sats is None:
        raise PolicyRefused("amount-proof", "the value of the output is not known")
    return seen_in(psbt, index, intent.price_sats, facts.value_sats, _ours(owner))


def as_learnt(
    learnt: LearntForms | None, venue: str, intent: ListingIntent, approved: Iterable[ApprovedListing]
) -> None:
    """Refuses drafts that are not of the form learnt for their kind, where there is one.

    While the file of forms is not believed it refuses those of an escrow, too, though none of theirs are learnt.
    """
    believed(learnt)
    for at, each in enumerate(approved):
        spent = each.spent[each.index]
        assert intent.price_sats is not None and spent is not None
        draft = seen_in(each.psbt, each.index, intent.price_sats, spent.value, _ours(each.owner))
        alike(learnt, venue, kind_at(at), draft)


def believed(learnt: LearntForms | None) -> None:
    """Refuses while the file of forms is not believed."""
    if learnt is not None:
        learnt.all()


def alike(learnt: LearntForms | None, venue: str, kind: str, draft: SeenDraft) -> None:
    """Refuses a draft that is not of the form learnt for this venue and kind."""
    form = None if learnt is None else learnt.of(venue, kind)
    if form is not None and (told := differences(form, draft)):
        # The command first: a task's error shows no more than so many characters.
        look = f"another form than was learnt, see bidkeeper venue learn {venue}"
        raise PolicyRefused(TAG, f"{kind} draft: {look}: {'; '.join(told[:_MOST_TOLD])}")


def _ours(owner: Owner) -> dict[bytes, Whose]:
    vault = own_script(owner.kind, owner.public_key)
    return {script: "vault" if script == vault else "payment" for script in owner.scripts}
