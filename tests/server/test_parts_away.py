"""Parts of the installation that are away, and disks without room: every operation answers in words."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from peewee import DatabaseError, IntegrityError, InterfaceError, OperationalError

from core.errors import PeerUnavailable
from markets.base import GatewayAway, Item, Unavailable
from models import outbox
from models.database import damage
from models.database.base import database, transaction
from models.database.damage import CommitUnknown, Damaged
from models.outbox import TASK
from models.tasks.tasks import RUNNING, Task
from server.http import blocking
from tests import postgresql
from tests.disks import full_database
from tests.server.driver import DOCUMENT, OPERATIONS, check
from tests.server.ledger_rows import started
from tests.server.matrix import INSCRIPTION, MATRIX, asked, call, row_of
from tests.server.test_events import happen, stream
from tests.worlds.service import ADMIN, Service, new_user, token_of, with_settings
from wallet.signer_client import SignerError

CLOSED = "server closed the connection unexpectedly"
MALFORMED = "database disk image is malformed"
IS_SERVER = postgresql.is_wanted()
AWAY = (
    [OperationalError(CLOSED), InterfaceError("connection already closed")]
    if IS_SERVER
    else [OperationalError(words) for words in ("database is locked", "unable to open database file", "disk I/O error")]
)
STATIC = {"isAlive", "getDescription", "readReference"}
WITHOUT_ROWS = {"/api/openapi.json", "/api/auth/challenge", "/api/auth/play"}


@contextmanager
def database_away(error: Exception) -> Iterator[None]:
    """Has every statement, also of the short way for reads, fail as it does without a server."""

    def fail(*_: object, **__: object) -> Any:
        raise error

    with pytest.MonkeyPatch.context() as away:
        for name in ("execute_sql", "rows", "begin", "mark"):
            away.setattr(database.obj, name, fail)
        yield


@with_settings(admins=frozenset({ADMIN}), play_wallet=True)
@pytest.mark.parametrize("operation", MATRIX, ids=lambda operation: " ".join(operation))
async def test_every_operation_names_a_database_that_is_away(service: Service, operation: tuple[str, str]) -> None:
    admin = token_of(new_user(ADMIN))
    row_id = await row_of(service, operation[1])
    request = operation[0], *asked(operation, row_id)
    token = admin if "admin" in operation[1] else service.token
    for error in AWAY:
        with database_away(error):
            answer = await service.api(*request, token=token)
        assert answer.status != 500, answer.text
        if answer.status == 503 and operation[1] != "/readyz":
            assert answer.json["error"] in ("The database cannot be asked", "Not in force"), answer.text
        if operation[1].startswith("/api/") and operation[1] not in WITHOUT_ROWS:
            assert answer.status in (400, 503), answer.text


@with_settings(market="satflow")
async def test_readiness_names_a_database_that_is_away(service: Service) -> None:
    with database_away(AWAY[0]):
        answer = await service.api("GET", "/readyz")
    assert (answer.status, "database" in answer.json["missing"]) == (503, True)
    assert f"database: {AWAY[0]}" in answer.details


@pytest.mark.parametrize(
    ("error", "status", "text"),
    [
        *((error, 503, "The database cannot be asked") for error in AWAY),
        (Damaged("the database is damaged: bidkeeper.db-wal was removed"), 503, "The database is damaged"),
        (CommitUnknown(CLOSED), 503, "The database cannot be asked"),
        (GatewayAway("no such file"), 503, "The gateway cannot be asked"),
        (SignerError("no such file"), 503, "The signer cannot be asked"),
        (PeerUnavailable("manager", "no such file"), 503, "The manager cannot be asked"),
        (PeerUnavailable("hooks", "no such file"), 503, "The hooks cannot be asked"),
        (OperationalError("database or disk is full"), 507, "The disk is full"),
    ],
)
def test_an_error_of_a_part_is_answered_with_its_name(error: Exception, status: int, text: str) -> None:
    answer = blocking.answer_to_any(error)
    assert answer is not None
    assert (answer.status_code, answer.error, bool(answer.message)) == (status, text, True)


@pytest.mark.parametrize(
    "error",
    [
        *(
            OperationalError(words)
            for words in (
                "no such column: x",
                "table t has 2 columns but 3 values were supplied",
                "cannot start a transaction within a transaction",
                "integer overflow",
            )
            if not IS_SERVER
        ),
        ValueError("x"),
        ValueError(MALFORMED),
        None,
    ],
)
def test_a_fault_of_the_server_is_nothing_of_a_part(error: Exception | None) -> None:
    assert blocking.answer_to_any(error) is None


@postgresql.left_out("its files are its server's")
async def test_a_damaged_database_is_named_by_answer_readiness_and_task_until_it_is_checked(service: Service) -> None:
    task_id = await service.new_task()
    running(task_id, service.clock())
    before = await service.ask("GET", "/api/tasks")
    with database_away(DatabaseError("database disk image is malformed")):
        answer = await service.ask("GET", f"/api/tasks/{task_id}")
    assert (answer.status, answer.json["error"]) == (503, "The database is damaged")

    ready = await service.api("GET", "/readyz")
    assert (ready.status, ready.json["error"]) == (503, "Database damaged")
    assert "database: damaged: database disk image is malformed" in ready.details
    [listed] = (await service.ask("GET", "/api/tasks")).json
    one = await service.ask("GET", f"/api/tasks/{task_id}")
    assert (before.json[0]["lastError"], listed["lastErrorCode"], one.json) == (None, "database_damaged", listed)
    assert "database disk image is malformed" in listed["lastError"]
    damage.remove_note(database.obj.file)
    assert "database" not in (await service.api("GET", "/readyz")).json.get("missing", [])
    [listed] = (await service.ask("GET", "/api/tasks")).json
    assert listed["lastError"] is None


async def test_a_stream_ends_cleanly_while_the_database_is_away_and_resumes_afterwards(
    service: Service, caplog: pytest.LogCaptureFixture
) -> None:
    async with stream(service) as mine:
        with database_away(AWAY[0]):
            assert await mine.next() == ("over", None)
            again = await service.api(
                "GET", "/api/events", token=service.token, headers={"Accept": "text/event-stream"}
            )
    assert (again.status, again.json["error"]) == (503, "The database cannot be asked")
    assert [record for record in caplog.records if record.exc_info] == [], "one line each, without a traceback"
    async with stream(service) as resumed:
        happen(service.user_id, "recovered")
        assert (await resumed.next())[0] == "recovered"


def test_every_operation_that_asks_a_part_declares_503() -> None:
    without = {name for name, (_, _, operation) in OPERATIONS.items() if "503" not in operation["responses"]}
    assert without == STATIC


@with_settings(admins=frozenset({ADMIN}))
@postgresql.left_out("its files are its server's")
@pytest.mark.parametrize("operation", MATRIX, ids=lambda operation: " ".join(operation))
async def test_words_in_a_request_are_not_taken_for_damage(service: Service, operation: tuple[str, str]) -> None:
    row_id = await row_of(service, operation[1])
    url, body = asked(operation, row_id)
    fields = {**(body if isinstance(body, dict) else {}), MALFORMED: 1}
    bodies = [fields, *({**fields, name: MALFORMED} for name in fields)] if operation[0] != "GET" else [None]
    for each in bodies:
        for token in ("", service.token):
            await service.api(operation[0], url, each, token=token)
            assert damage.known(database.obj.file) is None, each
    await service.api(operation[0], f"{url.partition('?')[0]}?a=file%20is%20not%20a%20database", token=service.token)
    assert damage.known(database.obj.file) is None


@pytest.mark.parametrize("words", [MALFORMED, "file is not a database", f"satflow says: 500 {MALFORMED}"])
def test_words_of_others_are_not_taken_for_damage(words: str) -> None:
    told = ValueError(words)
    told.__cause__ = Unavailable(words)
    for error in (Unavailable(words), told, IntegrityError(f"CHECK constraint failed: {words}")):
        assert damage.words_of(error) == "", error
    hidden = Unavailable("away")
    hidden.__context__, hidden.__suppress_context__ = DatabaseError(MALFORMED), True
    assert damage.words_of(hidden) == ""
    told.__cause__ = DatabaseError(MALFORMED)
    assert damage.words_of(told) == MALFORMED


@postgresql.left_out("its files are its server's")
async def test_nothing_is_changed_or_restarted_while_a_file_is_lost_and_a_stop_still_works(service: Service) -> None:
    runs, idle = await started(service, hardcapSats=80_000), await service.new_task(slug="frogs")
    Path(f"{database.obj.file}-wal").unlink()
    settled_before = list(service.manager.settled)
    for answer in (
        await service.ask("PUT", f"/api/tasks/{runs}", {"hardcapSats": 50_000}),
        await service.ask("POST", f"/api/tasks/{idle}/start"),
    ):
        assert (answer.status, answer.json["error"]) == (503, "The database is damaged"), answer.text
        assert "-wal was removed" in answer.json["message"]
        assert "nothing was changed" in answer.json["message"]
    assert service.manager.settled == settled_before
    task = (await service.ask("GET", f"/api/tasks/{runs}")).json
    assert (task["isRunning"], task["config"]["hardcapSats"]) == (True, 80_000)
    assert (await service.ask("GET", f"/api/tasks/{idle}")).json["isRunning"] is False
    assert (await service.ask("POST", f"/api/tasks/{runs}/stop")).status == 200


@postgresql.left_out("its files are its server's")
async def test_a_task_without_a_worker_is_not_shown_as_running_over_a_damaged_database(service: Service) -> None:
    task_id = await started(service)
    Task.update(observed="backoff").where(Task.id == task_id).execute()
    assert (await service.ask("GET", f"/api/tasks/{task_id}")).json["isRunning"] is True
    damage.write_note(database.obj.file, damage.Damage("page 9"))
    [listed] = (await service.ask("GET", "/api/tasks")).json
    assert listed == (await service.ask("GET", f"/api/tasks/{task_id}")).json
    assert (listed["isRunning"], listed["lastErrorCode"]) == (False, "database_damaged")
    assert "its bids are cancelled" in listed["lastError"]


MINUTE_MS = 60_000


async def test_what_cannot_be_stored_is_507_with_words(service: Service) -> None:
    task_id = await service.new_task()
    config = {"slug": "frogs", "hardcapSats": 100_000}
    writes: list[tuple[str, str, Any]] = [
        ("POST", "/api/tasks", config),
        ("PUT", f"/api/tasks/{task_id}", {"hardcapSats": 90_000}),
        ("POST", "/api/presets", {"name": "one", "config": {"hardcapSats": 100_000}}),
        ("PUT", "/api/ceilings", {"maxExposure": 5}),
        ("DELETE", "/api/sessions", None),
    ]
    with full_database():
        for method, path, body in writes:
            answer = await service.ask(method, path, body)
            assert answer.status == 507, (method, path, answer.text)
            assert answer.json["error"] == "The disk is full"
            assert "Make room" in answer.json["message"]
        assert (await service.ask("GET", "/api/tasks")).status == 200
    answer = await service.ask("PUT", f"/api/tasks/{task_id}", {"hardcapSats": 90_000})
    assert answer.status == 200


@with_settings(admins=frozenset({ADMIN}), play_wallet=True)
@pytest.mark.parametrize("operation", MATRIX, ids=lambda operation: " ".join(operation))
async def test_no_operation_is_500_on_a_full_disk(service: Service, operation: tuple[str, str]) -> None:
    admin = token_of(new_user(ADMIN))
    service.gateway.answers["item"] = Item(INSCRIPTION, listed=False)
    row_id = await row_of(service, operation[1])
    with full_database():
        answer = await call(service, operation, row_id, admin if "admin" in operation[1] else service.token)
    assert answer.status != 500, answer.text
    assert operation[0] != "GET" or answer.status != 507, "a read needs no room"


async def test_a_wrong_statement_is_500(service: Service) -> None:
    with full_database("no such column: x"):
        answer = await service.ask("POST", "/api/tasks", {"slug": "frogs", "hardcapSats": 100_000})
    assert (answer.status, answer.json) == (500, {"error": "Internal Server Error"})


def test_every_write_declares_it() -> None:
    for path, methods in DOCUMENT["paths"].items():
        for method, operation in methods.items():
            assert ("507" in operation["responses"]) == (method != "get"), (method, path)


def running(task_id: int, last_cycle_ms: int) -> None:
    Task.update(desired=RUNNING, observed=RUNNING, last_cycle_ms=last_cycle_ms, last_cycle_action="x").where(
        Task.id == task_id
    ).execute()


async def test_a_running_task_without_a_cycle_for_three_loops_says_so(service: Service) -> None:
    task_id, began_ms = await service.new_task(loopSeconds=60), service.clock()
    running(task_id, began_ms)
    for minutes, code in ((3, None), (4, None), (5, "no_cycle"), (90, "no_cycle")):
        service.clock.now_ms = began_ms + minutes * MINUTE_MS
        one = await service.ask("GET", f"/api/tasks/{task_id}")
        [listed] = (await service.ask("GET", "/api/tasks")).json
        assert listed == one.json
        assert one.json["lastErrorCode"] == code, minutes
    assert one.json["lastError"].startswith("no cycle was recorded for 90 min")
    assert one.json["lastErrorParams"] == {"silentSeconds": 90 * 60}
    check("getTask", one)


async def test_a_task_that_was_started_a_moment_ago_is_not_silent(service: Service) -> None:
    task_id = await service.new_task(loopSeconds=60)
    running(task_id, service.clock() - 600 * MINUTE_MS)
    with transaction():
        outbox.tell(TASK, service.user_id, task_id, service.clock(), {"observed": RUNNING})
    assert (await service.ask("GET", f"/api/tasks/{task_id}")).json["lastError"] is None
    service.clock.now_ms += 5 * MINUTE_MS
    assert (await service.ask("GET", f"/api/tasks/{task_id}")).json["lastErrorCode"] == "no_cycle"


async def test_a_stopped_task_is_not_silent_and_a_slow_one_has_its_time(service: Service) -> None:
    stopped, slow = (
        await service.new_task(),
        await service.new_task(slug="frogs", loopSeconds=3_600, bidExpiryMinutes=180),
    )
    Task.update(last_cycle_ms=service.clock() - 600 * MINUTE_MS).where(Task.id == stopped).execute()
    running(slow, service.clock() - 170 * MINUTE_MS)
    listed = (await service.ask("GET", "/api/tasks")).json
    assert [task["lastError"] for task in listed] == [None, None]
