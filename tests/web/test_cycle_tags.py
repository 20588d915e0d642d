"""The tags of a cycle, without a browser."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.web.javascript import Modules, modules


@pytest.fixture(scope="module")
def javascript() -> Iterator[Modules]:
    with modules() as made:
        made.value("texts/market.js", "none")  # which makes its texts known
        yield made


@pytest.mark.parametrize("detail", [{"rungs": [{"reason": "kept"}]}, {"planned": {"reason": "unchanged"}}])
def test_rows_that_were_left_out_are_one_tag_in_plain_words(javascript: Modules, detail: dict[str, object]) -> None:
    rows = {"asks": 2, "ownBids": 1, "more": 1}
    tag, _ = javascript.call("parts/said.js", "tagsOf", {"detail": detail | {"unreadRows": rows}})
    assert (tag["kind"], tag["words"]) == ("limit", "4 rows not understood")
    assert "rows in an unknown form: 2 of the asks, 1 of your bids, 1 of more." in tag["why"]
    for none in ({}, {"unreadRows": {}}):
        assert len(javascript.call("parts/said.js", "tagsOf", {"detail": detail | none})) == 1
