"""The tags of a cycle, without a browser."""

from __future__ import annotations

import pytest

from tests.web.javascript import Modules


@pytest.fixture(scope="module", autouse=True)
def known_texts(javascript: Modules) -> None:
    """Makes the texts of this module known to the others."""
    javascript.value("texts/market.js", "none")


@pytest.mark.parametrize("detail", [{"rungs": [{"reason": "kept"}]}, {"planned": {"reason": "unchanged"}}])
def test_rows_that_were_left_out_are_one_tag_in_plain_words(javascript: Modules, detail: dict[str, object]) -> None:
    rows = {"asks": 2, "ownBids": 1, "more": 1}
    tag, _ = javascript.call("parts/said.js", "tagsOf", {"detail": detail | {"unreadRows": rows}})
    assert (tag["kind"], tag["words"]) == ("limit", "4 rows not understood")
    assert "rows in an unknown form: 2 of the asks, 1 of your bids, 1 of more." in tag["why"]
    for none in ({}, {"unreadRows": {}}):
        assert len(javascript.call("parts/said.js", "tagsOf", {"detail": detail | none})) == 1
