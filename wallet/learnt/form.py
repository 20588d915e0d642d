"""The form of a venue's drafts as an operator has confirmed it, and the differences of a later draft.

A form decides nothing about money: the rules do that, for each draft anew. It is an alarm for a venue that begins to
draft in another way. Standard library only, since the command line shows forms, too.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from wallet.learnt.laws import LEAST_SPAN, Law, Sample, laws_of
from wallet.policy import PolicyRefused

TAG = "learnt-form"
# Three different prices tell every output's law.
ENOUGH_PRICES = 3
ALL_OUTPUTS = 0x81
SIGHASHES = {0x83: "SINGLE|ANYONECANPAY 0x83", ALL_OUTPUTS: "ALL|ANYONECANPAY 0x81"}

Whose = Literal["payment", "vault", "venue", "varying"]
Told = Literal["ours", "told", "silent"]
WHOSE: dict[Whose, str] = {"payment": "your payment address", "vault": "your vault"}
_TOLD: dict[Told, str] = {"ours": "yours", "told": "somebody's", "silent": "an unknown one"}


@dataclass(frozen=True, slots=True)
class InputForm:
    """An input. `told`: ours, or somebody's of which the draft tells what it spends, or does not."""

    told: Told
    sequence: int


@dataclass(frozen=True, slots=True)
class OutputForm:
    """An output. `script` (hex) is of one that the venue always pays. It comes to the value of one of `laws`; none of
    them: its value is not compared.
    """

    whose: Whose
    script: str
    is_covered: bool
    laws: tuple[Law, ...]


@dataclass(frozen=True, slots=True)
class LearntForm:
    """The form of one kind of draft at a venue: `plain`, `secure`, `secure-2` and so on, in the order of its answer.

    `index` is our input's. `locktime` None: it varies. `prices` (sats) and `drafts` (SHA-256) are those that it was
    learnt from, at `learnt_ms`.
    """

    venue: str
    kind: str
    sighash: int
    index: int
    version: int
    locktime: int | None
    inputs: tuple[InputForm, ...]
    outputs: tuple[OutputForm, ...]
    prices: tuple[int, ...]
    drafts: tuple[str, ...]
    learnt_ms: int

    def digest(self) -> str:
        """Returns the SHA-256 of all but the time."""
        told = asdict(self)
        del told["learnt_ms"]
        return hashlib.sha256(canonical(told)).hexdigest()


@dataclass(frozen=True, slots=True)
class SeenOutput:
    """An output of a draft, in sats. `whose` is `varying` for a script that is not ours."""

    value: int
    script: str
    whose: Whose


@dataclass(frozen=True, slots=True)
class SeenDraft:
    """A draft: all that a form says about it, and the price and postage (sats) that it was drafted for."""

    price: int
    postage: int
    sha256: str
    sighash: int | None
    index: int
    version: int
    locktime: int
    inputs: tuple[InputForm, ...]
    outputs: tuple[SeenOutput, ...]


def canonical(value: Any) -> bytes:
    """Returns the only spelling of a JSON value."""
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def read_form(stored: Mapping[str, Any]) -> LearntForm:
    """Reads what `asdict` and JSON made of a form. Raises KeyError or TypeError when it is none."""
    outputs = (
        OutputForm(**{**each, "laws": tuple(Law(**law) for law in each["laws"])}) for each in _dicts(stored["outputs"])
    )
    inputs = tuple(InputForm(**each) for each in _dicts(stored["inputs"]))
    lists = {name: tuple(stored[name]) for name in ("prices", "drafts")}
    return LearntForm(**{**stored, **lists, "inputs": inputs, "outputs": tuple(outputs)})


def _dicts(value: Any) -> Iterator[dict[str, Any]]:
    yield from value


def form_of(venue: str, kind: str, drafts: Sequence[SeenDraft], now_ms: int) -> LearntForm:
    """Works out the form of these drafts. Raises PolicyRefused when they have none in common.

    Of a single draft no value of an output is learnt: some venues draft only once.
    """
    first, prices = drafts[0], {draft.price for draft in drafts}
    is_single = len(drafts) == 1
    if not is_single and len(prices) < ENOUGH_PRICES:
        raise PolicyRefused(TAG, f"{len(prices)} prices do not tell how the outputs follow from the price")
    if not is_single and max(prices) - min(prices) < LEAST_SPAN:
        raise PolicyRefused(TAG, f"the prices lie less than {LEAST_SPAN} sats apart")
    for draft in drafts:
        if told := _unlike(_shape(first), _shape(draft)):
            raise PolicyRefused(TAG, f"the drafts are not of one form: at {draft.price} sats {'; '.join(told)}")
    if first.sighash not in SIGHASHES:
        raise PolicyRefused(TAG, "the drafts ask for no sighash of a listing")
    locktimes = {draft.locktime for draft in drafts}
    return LearntForm(
        venue=venue,
        kind=kind,
        sighash=first.sighash,
        index=first.index,
        version=first.version,
        locktime=first.locktime if len(locktimes) == 1 else None,
        inputs=first.inputs,
        outputs=tuple(_output(at, drafts, is_single=is_single) for at in range(len(first.outputs))),
        prices=tuple(draft.price for draft in drafts),
        drafts=tuple(draft.sha256 for draft in drafts),
        learnt_ms=now_ms,
    )


def differences(form: LearntForm, draft: SeenDraft) -> list[str]:
    """Returns in words how the draft differs from the form; nothing when it is of that form."""
    told = _unlike(_shape(form), _shape(draft))
    if form.locktime not in (None, draft.locktime):
        told.append(f"locktime: {draft.locktime}, not {form.locktime}")
    for at, (output, seen) in enumerate(zip(form.outputs, draft.outputs, strict=False)):
        if output.whose == "venue" and output.script != seen.script:
            told.append(f"output {at} pays: {seen.script}, not {output.script}")
        values = [law.value(draft.price, draft.postage) for law in output.laws]
        if values and seen.value not in values:
            told.append(f"output {at}: {seen.value} sats, not {' or '.join(map(str, values))}")
    return told


def _shape(of: LearntForm | SeenDraft) -> dict[str, object]:
    """Returns all that must be the same whatever the price is, by its name."""
    shape: dict[str, object] = {
        "sighash": "none" if of.sighash is None else f"{of.sighash:#x}",
        "our input": of.index,
        "version": of.version,
        "inputs": len(of.inputs),
        "outputs": len(of.outputs),
    }
    outputs: Sequence[OutputForm | SeenOutput] = of.outputs
    shape |= {f"input {at}": f"{_TOLD[each.told]}, sequence {each.sequence:#x}" for at, each in enumerate(of.inputs)}
    return shape | {f"output {at}": WHOSE.get(each.whose, "not ours") for at, each in enumerate(outputs)}


def _unlike(wanted: dict[str, object], found: dict[str, object]) -> list[str]:
    both = [name for name in wanted if name in found]
    return [f"{name}: {found[name]}, not {wanted[name]}" for name in both if found[name] != wanted[name]]


def _output(at: int, drafts: Sequence[SeenDraft], *, is_single: bool) -> OutputForm:
    first, laws = drafts[0], tuple[Law, ...]()
    whose, script = first.outputs[at].whose, first.outputs[at].script
    is_covered = first.sighash == ALL_OUTPUTS or at == first.index
    if not is_single:
        if whose == "varying" and {draft.outputs[at].script for draft in drafts} == {script}:
            whose = "venue"
        laws = laws_of([Sample(draft.price, draft.postage, draft.outputs[at].value) for draft in drafts])
        if is_covered and not laws:
            values = ", ".join(str(draft.outputs[at].value) for draft in drafts)
            raise PolicyRefused(TAG, f"no law explains the sats of output {at}: {values}")
    return OutputForm(whose, script if whose == "venue" else "", is_covered, laws)
