"""The forms of venues' drafts, learnt for an operator: worked out from drafts here, shown, confirmed, stored.

Storing is for operators alone, by a socket in the signer's own directory. The signer works the form out itself, and
stores exactly the one that was shown.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from wallet import protocol
from wallet.address import sign_in_address
from wallet.judgement import Judgement
from wallet.learnt.form import TAG, LearntForm, SeenDraft, form_of
from wallet.policy import PolicyRefused
from wallet.protocol import ListingToSign, RequestError
from wallet.psbt.listing import OutpointFacts
from wallet.signer.authority import Answer, Authority
from wallet.signer.judge import ListingJudge
from wallet.signer.learnt import kind_at, seen_of
from wallet.signer.listing_terms import intent_of, owner_of, raw_psbt

Facts = Mapping[str, OutpointFacts]

MOST_DRAFTS = 9
_DIGEST_DIGITS = 64
_SHOWN = ("kind", "digest")  # the form that was shown
# Rules about settings, or about other listings of ours: they say nothing about the form of this one.
_NOT_OF_THE_FORM = frozenset({"op-allowed", "list-lower", "outputs-unique", TAG})


class Learner:
    """Learns forms. `facts` as `ListingSigner`'s."""

    def __init__(self, authority: Authority, judge: ListingJudge) -> None:
        self._authority = authority
        self._judge = judge

    def outpoints_to_look_up(self, request: Answer) -> tuple[str, ...]:
        """Returns the outputs of all drafts. Raises as `study` and `learn` do."""
        about = {name: value for name, value in request.items() if name not in _SHOWN}
        found = [each for asked in _to_judge(about) for each in self._judge.outpoints_to_look_up(asked)]
        return tuple(dict.fromkeys(found))

    def study(self, request: Answer, facts: Facts) -> Answer:
        """Works the forms out, one for each kind of draft, with the judgement of each draft; stores nothing."""
        asked = _to_judge(request)
        judged = [self._judge.judgements(each, facts) for each in asked]
        if len({len(each) for each in judged}) != 1:
            raise PolicyRefused(TAG, "the drafts have different numbers of PSBTs")
        return {
            "kinds": [
                {"judgements": [asdict(each[at]) for each in judged]} | self._told(asked, judged, at, facts)
                for at in range(len(judged[0]))
            ]
        }

    def learn(self, request: Answer, facts: Facts) -> Answer:
        """Stores the form of one kind if it is the one that was shown (`digest`)."""
        fields = dict(request)
        kind, digest = protocol.text("kind", fields.pop("kind", None)), fields.pop("digest", None)
        digest = protocol.hex_text("digest", digest, _DIGEST_DIGITS)
        asked = _to_judge(fields)
        judged = [self._judge.judgements(each, facts) for each in asked]
        for at in range(min(map(len, judged))):
            if kind_at(at) == kind:
                form = self._form(asked, judged, at, facts)
                if form.digest() != digest:
                    raise PolicyRefused(TAG, "this is not the form that was shown")
                self._store(form)
                return {}
        raise PolicyRefused(TAG, f"the drafts have no {kind} form")

    def learnt(self, request: Answer) -> Answer:
        """Returns all forms, or why the file is not believed."""
        protocol.take(request)
        self._authority.unlocked()
        learnt = self._authority.learnt
        if learnt is None or learnt.problem:
            return {"forms": [], "problem": learnt.problem if learnt else ""}
        return {"forms": [asdict(form) for form in learnt.all()], "problem": ""}

    def forget(self, request: Answer) -> Answer:
        """Drops the forms of a venue, or of all ("")."""
        (venue,) = protocol.take(request, "venue")
        venue = protocol.text_or_nothing("venue", venue)
        self._authority.unlocked()
        learnt = self._authority.learnt
        gone = 0 if learnt is None else learnt.forget(venue, lambda digest: self._note("forget", digest, venue=venue))
        return {"forgotten": gone}

    def holder(self, request: Answer) -> Answer:
        """Returns the user with this address and their keys' public side; "" is the only user."""
        (address,) = protocol.take(request, "address")
        address = protocol.text_or_nothing("address", address)
        keystore = self._authority.unlocked()
        if not address and len(keystore.users) != 1:
            raise PolicyRefused("dest-allow", f"{len(keystore.users)} users have keys here: name one of them")
        for user in keystore.users:
            public = keystore.secrets_of(user).public
            if address in ("", user, public.payment, public.vault):
                return {"user": user, "keys": asdict(public)}
        raise PolicyRefused("dest-allow", f"{address} is of no user of this signer")

    def _told(self, asked: list[Answer], judged: list[list[Judgement]], at: int, facts: Facts) -> Answer:
        told: Answer = {"kind": kind_at(at), "form": None, "digest": "", "why": ""}
        try:
            form = self._form(asked, judged, at, facts)
        except PolicyRefused as refused:
            return told | {"why": f"{refused.tag}: {refused.message}"}
        return told | {"form": asdict(form), "digest": form.digest()}

    def _form(self, asked: list[Answer], judged: list[list[Judgement]], at: int, facts: Facts) -> LearntForm:
        """Returns the form of one kind. Raises PolicyRefused, also for drafts that no signature is for."""
        for judgements in judged:
            for finding in judgements[at].findings:
                if finding.holds is not True and finding.rule not in _NOT_OF_THE_FORM:
                    raise PolicyRefused(finding.rule, finding.why)
        drafts = [self._seen(each, at, facts) for each in asked]
        return form_of(asked[0]["venue"], kind_at(at), drafts, self._authority.clock())

    def _seen(self, asked: Answer, at: int, facts: Facts) -> SeenDraft:
        listing: ListingToSign = protocol.read_listing(asked["listing"])
        secrets = self._authority.unlocked().secrets_of(sign_in_address(asked["user"]))
        intent = intent_of(listing, asked["venue"], 0, secrets, self._authority.ceilings)
        return seen_of(raw_psbt(listing.drafts[at]), intent, facts.get(listing.outpoint), owner_of(secrets))

    def _store(self, form: LearntForm) -> None:
        learnt = self._authority.learnt
        if learnt is None:
            raise PolicyRefused(TAG, "this signer has no place to keep it")
        told = {"kind": form.kind, "form_sha256": form.digest(), "drafts_sha256": list(form.drafts)}
        learnt.put(form, lambda digest: self._note("learn", digest, venue=form.venue, **told))

    def _note(self, operation: str, digest: str, **told: Any) -> None:
        entry = {"operation": operation, **told, "learnt_sha256": digest}
        self._authority.audit.append(self._authority.clock(), entry)


def _to_judge(request: Answer) -> list[Answer]:
    """Returns a question to the judge for each draft. Raises RequestError."""
    user, venue, listings = protocol.take(request, "user", "venue", "listings")
    if not isinstance(listings, list) or not 0 < len(listings) <= MOST_DRAFTS:
        raise RequestError(f"listings must be a list of 1 to {MOST_DRAFTS} listings")
    return [{"user": user, "venue": venue, "min_price_sats": 0, "listing": each} for each in listings]
