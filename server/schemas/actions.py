"""One action on many bidding tasks: the request and its answer."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, PlainValidator

from server.http.api_errors import invalid
from server.http.bodies import Body, one_of, read, some_text, whole, wrong
from server.schemas.answers import Answer, Error
from server.schemas.bidding_answers import BiddingTask, DeletedBiddingTask, StoppedBiddingTask
from server.schemas.tags import LONGEST_TAG
from server.schemas.task_bodies import BiddingTaskChange

ACTIONS = ("start", "stop", "delete", "change")
MOST_IDS = 100


def _ids(value: Any) -> tuple[int, ...]:
    if not isinstance(value, list) or not 1 <= len(value) <= MOST_IDS:
        raise wrong(f"must be a list of 1 to {MOST_IDS} ids")
    found = [whole(each) for each in value]
    if min(found) < 1 or max(found) >= 2**63:
        raise wrong("each must be the id of a task")
    return tuple(dict.fromkeys(found))


def _change(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise wrong("must be an object")
    return value


_ID_LIST = Annotated[list[Annotated[int, Field(ge=1, le=2**63 - 1)]], Field(min_length=1, max_length=MOST_IDS)]


def _required(schema: dict[str, Any]) -> None:
    for described in schema["properties"].values():
        described.pop("default", None)
    schema["required"] = ["action"]


class TaskActions(Body):
    """An action, and the tasks that it is for: those with these `ids`, or those with this `tag`."""

    model_config = ConfigDict(json_schema_extra=_required)

    action: Annotated[str, one_of(ACTIONS), Field(description="What is done to each.")] = ""
    ids: Annotated[
        tuple[int, ...] | None,
        PlainValidator(_ids, json_schema_input_type=_ID_LIST),
        Field(description="The tasks; one that is not yours is 404 among the results."),
    ] = None
    tag: Annotated[
        str | None,
        some_text(LONGEST_TAG),
        Field(description="All your bidding tasks with this tag, in place of `ids`."),
    ] = None
    change: Annotated[
        dict[str, Any] | None,
        PlainValidator(_change, json_schema_input_type=BiddingTaskChange),
        Field(description="With the action `change`, and only then: what PUT takes, the same for each."),
    ] = None


def read_actions(given: dict[str, Any]) -> TaskActions:
    """Reads the body. Raises ApiError (400) with all its faults."""
    wanted, faults = read(TaskActions, given)
    named = {name for name, _ in faults}
    if "action" not in given:
        faults.append(("action", "is required"))
    if not named & {"ids", "tag"} and (wanted.ids is None) == (wanted.tag is None):
        faults.append(("ids", "is required, or tag, and not both"))
    if "action" in given and "action" not in named and "change" not in named:
        if wanted.action == "change" and wanted.change is None:
            faults.append(("change", "is required with the action change"))
        elif wanted.action != "change" and wanted.change is not None:
            faults.append(("change", "is for the action change only"))
    if faults:
        raise invalid([f"{name}: {words}" for name, words in faults])
    return wanted


class ActionResult(Answer):
    """The result of one task: status and body as its own operation answers them."""

    id: int
    status: Literal[200, 400, 401, 403, 404, 409, 429, 500, 502, 503]
    body: StoppedBiddingTask | BiddingTask | DeletedBiddingTask | Error


class ActionResults(Answer):
    """The result of each task, in the order in which they were named."""

    results: list[ActionResult]
