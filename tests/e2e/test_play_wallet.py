"""A newcomer at a demo: the page's address is told first, and the play wallet shows the demo user's tasks."""

from __future__ import annotations

from typing import Any

import pytest
import requests

from tests.e2e.installation import PATIENCE, Installation, until

pytestmark = [pytest.mark.slow, pytest.mark.thorough]  # web/test_sign_in.py has the click, soak the tasks


def ask(made: Installation, method: str, path: str, body: Any = None, token: str = "") -> Any:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    answer = requests.request(method, made.url + path, json=body, headers=headers, timeout=PATIENCE)
    assert answer.status_code == 200, answer.text
    return answer.json()


def sign_in(made: Installation) -> dict[str, Any]:
    """Signs in as the page does, over the service alone."""
    address = ask(made, "GET", "/api/auth/play")["address"]
    challenge_id = ask(made, "POST", "/api/auth/challenge", {"address": address})["challengeId"]
    proof = ask(made, "POST", "/api/auth/play", {"challengeId": challenge_id})
    return dict(ask(made, "POST", "/api/auth/verify", {"challengeId": challenge_id, **proof}))


def slugs(made: Installation, token: str) -> set[str]:
    return {task["slug"] for task in ask(made, "GET", "/api/tasks", token=token)}


def test_one_click_shows_the_demo_users_tasks_and_a_restart_keeps_the_user() -> None:
    made = Installation()
    page = f"Bidkeeper's page: {made.url}/  (click Play wallet to sign in)"
    try:
        made.up("demo")
        until(lambda: "export TOKEN=" in made.output(), "the demo user's sign-in")
        first = sign_in(made)
        until(lambda: len(slugs(made, first["token"])) == 3, "the demo user's tasks")
        output = made.output()
        made.down()
        made.up("demo")
        again = sign_in(made)

        assert output.startswith(page)
        assert page in output.partition(f"ready {made.url}")[2]
        assert f"signed in as {first['user']['address']};" in output
        assert again["user"] == first["user"]
        assert len(slugs(made, again["token"])) == 3
        assert not (made.data_dir / "demo-wallet.json").exists()
    finally:
        made.destroy()
