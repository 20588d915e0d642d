"""The tags of a task: its owner's own words, to find and handle many tasks at once by."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Field, PlainValidator

from server.http.bodies import Beyond, plain_text, wrong

MOST_TAGS, LONGEST_TAG = 20, 40


def _tags(value: Any) -> tuple[str, ...]:
    """Reads a list of tags without blanks around them; one that is there twice counts once."""
    if not isinstance(value, list) or len(value) > MOST_TAGS:
        raise wrong(f"must be a list of at most {MOST_TAGS} texts")
    found = [plain_text(each) for each in value]
    if not all(0 < len(each) <= LONGEST_TAG for each in found):
        raise wrong(f"each must have 1 to {LONGEST_TAG} characters")
    return tuple(dict.fromkeys(found))


_DESCRIBED = Annotated[list[Annotated[str, Field(min_length=1, max_length=LONGEST_TAG)]], Field(max_length=MOST_TAGS)]
TAGS = Annotated[
    tuple[str, ...],
    PlainValidator(_tags, json_schema_input_type=_DESCRIBED),
    Beyond("names the tasks that are handled together"),
]


def stored_tags(given: Mapping[str, Any], otherwise: str = "[]") -> str:
    """Returns the tags of a body that was found right, as a task's row has them; without any those of `otherwise`."""
    return json.dumps(_tags(given["tags"]), ensure_ascii=False) if "tags" in given else otherwise


def has_tag(stored: str, tag: str) -> bool:
    """Tells whether these stored tags have this one."""
    return tag in json.loads(stored)
