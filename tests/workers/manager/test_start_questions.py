"""What a start costs: few questions to the database, since each is a way to a server and back."""

from __future__ import annotations

import pytest

from models.database import base
from tests.databases import questions
from tests.worlds.manager import Installation, eventually, with_timing

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("back_end")]


@pytest.fixture
def at_rest(installation: Installation) -> Installation:
    """A manager that does nothing of its own accord."""
    return with_timing(installation.settings.data_dir, sweep_s=600, full_sweep_s=600, fill_look_s=600)


async def test_a_start_asks_few_questions_in_two_commits(at_rest: Installation) -> None:
    async with at_rest.running():
        task = at_rest.task()
        at_rest.want(task)
        with questions(base.database.obj) as asked:
            assert (await at_rest.settle(task)).observed == "running"
        assert len(asked) <= 16, "\n".join(asked)
        assert len([each for each in asked if each.startswith("UPDATE")]) == 3
        assert asked.commits == 2
        await eventually(at_rest.acts)
