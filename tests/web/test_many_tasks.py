"""A page with more tasks than a screen has room for, on an installation whose plan allows them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.e2e.installation import Installation, installation
from tests.web.visitor import Person, visiting

PLAN = """
[plans.beta]
name = "Beta"
max_tasks = 60
max_bids_per_task = 20
max_exposure = 2000000000
price_sats = 0
duration_days = 365
"""
CONFIG = {"bidMode": "fixed", "bidFixedLow": 50_000, "bidFixedHigh": 80_000, "hardcapSats": 200_000}


@pytest.fixture
def roomy(tmp_path: Path) -> Iterator[Installation]:
    config = tmp_path / "bidkeeper.toml"
    config.write_text(PLAN)
    with installation(BIDKEEPER_CONFIG=str(config)) as made:
        yield made


@pytest.mark.slow
def test_many_tasks_come_in_few_requests_and_are_drawn_as_they_come_into_view(
    browser: Browser, roomy: Installation
) -> None:
    many, person = 60, Person(roomy).sign_in()
    for number in range(many):
        person.task(**{"slug": f"herd-{number:02}", **CONFIG, "bidCount": 1 + number % 3})
    with visiting(browser, roomy) as visitor:
        visitor.give_token(person)
        page = visitor.open("#/bids?sort=name")
        expect(page.locator(".bids-cell .num").first).to_have_text("0 / 1")
        asked = [request.url.partition("/api/")[2] for request in visitor.requests if "/api/" in request.url]
        assert len(asked) <= 12, asked
        assert [path for path in asked if re.match(r"tasks/\d", path)] == []
        assert page.locator(".task-row").count() < many / 2
        assert page.evaluate("document.querySelectorAll('*').length") < 2_500
        assert page.evaluate("document.documentElement.scrollHeight - innerHeight") <= 0

        page.locator(".scrolls").evaluate("(box) => box.scrollTo(0, box.scrollHeight)")
        expect(page.locator(".task-row", has_text="herd-59")).to_be_visible()
        assert page.locator(".task-row", has_text="herd-00").count() == 0
        visitor.check()
