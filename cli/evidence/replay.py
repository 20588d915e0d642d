"""A venue made of recorded answers: the adapters ask it as they ask the real one, and nothing connects."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

from cli.doctor.questions import Exchange, Question, VenueAnswer, answer_of
from cli.evidence.questions import Recorded
from markets.base import Unavailable
from markets.http import Http
from markets.replies import Reply

ORIGIN = "https://replayed.invalid"  # a name that never leads anywhere (RFC 2606)
_LEFT_OUT = "its answer was left out of the file, because the file would be too large"


class Replay:
    """`hook` each Http before it is used; `put` asks a question."""

    def __init__(self) -> None:
        self._left: list[Recorded] = []
        self._heard: list[Exchange] = []

    def hook(self, http: Http) -> None:
        """Answers all requests of `http` from now on; its connections are closed and it opens none."""
        http._session.close()
        http._session = _NoSession()  # type: ignore[assignment]
        http._exchange = self._exchange  # type: ignore[method-assign, assignment]

    def put(self, question: Question, records: Sequence[Recorded]) -> VenueAnswer:
        """Asks one question, which is answered from `records`. Never raises."""
        self._left, self._heard = list(records), []
        return answer_of(question, self._heard)

    def _exchange(self, how: Any, method: str, path: str, **request: Any) -> Reply:
        made = next((each for each in self._left if (each.method, each.path) == (method, path)), None)
        if made is None:
            recorded = ", ".join(f"{each.method} {each.path}" for each in self._left) or "no further request"
            raise Unavailable(f"this version asks {method} {path}, and the file has {recorded}")
        self._left.remove(made)
        reply = None
        if made.status is not None and (made.is_json or made.text is not None):
            headers = {name.title(): value for name, value in made.headers.items()}
            reply = Reply(made.status, headers, made.reply_body())
        self._heard.append(Exchange(method, path, made.params, made.body, 0, 0, reply))
        if reply is None:
            raise Unavailable("the venue gave no answer" if made.status is None else _LEFT_OUT)
        return reply


class _NoSession:
    """In place of a session that connects: a request that comes here is a fault."""

    def request(self, *_: Any, **__: Any) -> NoReturn:
        raise AssertionError("a replay must not connect")

    def close(self) -> None:
        """Has nothing to close."""
