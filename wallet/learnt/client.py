"""The client for questions about learnt forms. `learnt` is answered by both of the signer's sockets, the others by the
operators' only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from wallet.judgement import Judgement, read_judgement
from wallet.learnt.form import LearntForm, read_form
from wallet.protocol import ListingToSign, UserKeys
from wallet.signer_client import FACTS_S, SignerClient


@dataclass(frozen=True, slots=True)
class Studied:
    """One kind of draft: the judgement of each, and their form with its digest; `why` says why there is none."""

    kind: str
    judgements: tuple[Judgement, ...]
    form: LearntForm | None
    digest: str
    why: str


@dataclass(frozen=True, slots=True)
class Learnt:
    """All stored forms. `problem` says why the file is not believed; then no listing is signed."""

    forms: tuple[LearntForm, ...]
    problem: str


class LearntClient(SignerClient):
    """Asks the signer; raises as every SignerClient."""

    def holder(self, address: str) -> tuple[str, UserKeys]:
        """Returns the user with this address, or the only user (""), and their keys."""
        return self._ask(lambda answer: (answer["user"], UserKeys(**answer["keys"])), "holder", address=address)

    def study(self, user: str, venue: str, drafts: Sequence[ListingToSign]) -> tuple[Studied, ...]:
        """Has the forms of these drafts worked out, one for each kind; nothing is stored."""
        return self._ask(_studied, "study", self._patience_s, **_drafts(user, venue, drafts))

    def learn(self, user: str, venue: str, drafts: Sequence[ListingToSign], studied: Studied) -> None:
        """Stores the form of one kind, as it was worked out from the same drafts."""
        shown = {"kind": studied.kind, "digest": studied.digest}
        self._ask(lambda answer: None, "learn", self._patience_s, **_drafts(user, venue, drafts), **shown)

    def learnt(self) -> Learnt:
        """Returns all stored forms."""
        return self._ask(
            lambda answer: Learnt(tuple(read_form(each) for each in answer["forms"]), answer["problem"]), "learnt"
        )

    def forget(self, venue: str) -> int:
        """Drops the forms of a venue, of all if it is ""; returns their number."""
        return self._ask(lambda answer: int(answer["forgotten"]), "forget", venue=venue)

    @property
    def _patience_s(self) -> float:
        return self._timeout_s + FACTS_S


def _drafts(user: str, venue: str, drafts: Sequence[ListingToSign]) -> dict[str, Any]:
    return {"user": user, "venue": venue, "listings": [asdict(each) for each in drafts]}


def _studied(answer: dict[str, Any]) -> tuple[Studied, ...]:
    return tuple(
        Studied(
            each["kind"],
            tuple(read_judgement(judged) for judged in each["judgements"]),
            None if each["form"] is None else read_form(each["form"]),
            each["digest"],
            each["why"],
        )
        for each in answer["kinds"]
    )
