from __future__ import annotations

import io
import json
import logging
import subprocess
import sys
from pathlib import Path
from types import TracebackType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core import files, logs
from core.logs import FORMATTERS, _MaskingFormatter, as_text, mask

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    "secret",
    [
        "Authorization: Bearer dGhpc2lzYXRva2VuZm9ydGVzdHM",
        "x-api-key: 0123456789abcdef",
        '"passphrase": "correct-horse"',
        "postgresql://bot:hunter2@localhost/bk",
        "L3VFeEujGtevx9w18HD1fhRbCH67Az2dpCymeRE1SoPK6XQtaN2k",
        "xprv9s21ZrQH143K3GJpoapnV8SFfukcVBSfeCficPSGfubmSFDxo1kuHnLisriDvSnRRuL2Qrg5ggqHKNVpxR86QEC8w35uxmGoggxtQTPvfUu",
        "AkcwRAIgVt/AEHdBWBnFAZlhAcRDqdo8Ca5sA6YVtbKdPSRYGygCIFdGRNAOpwXBhRAc0lyCSqO5mkQyrHVGPfVTqJnCdjSCASECx",
        "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD3q6Qh6v7ZHk=",
        "cHNidP8BAHUCAAAAASaBcTce3/KF6Tet7qSze3gADAVmy7OtZGQXE8pCFxv2AAAAAAD+////",
    ],
)
def test_secrets_are_masked(secret: str) -> None:
    masked = mask(f"before {secret} after")
    assert masked.startswith("before ") and masked.endswith(" after")
    assert secret.split()[-1] not in masked


def test_what_is_no_secret_stays() -> None:
    line = "task 17 placed 75000 sats on goosinals, order 64 at bc1q6rhpng9evdsfnn833a4f4vej0asu6dk5srld6x"
    assert mask(line) == line


def test_input_cannot_forge_a_line() -> None:
    record = logging.LogRecord("x", logging.INFO, "f", 1, "slug %s", ("a\n2026 INFO forged\x1b[2J",), None)
    assert "\n" not in _MaskingFormatter("%(message)s").format(record)
    assert "\x1b" not in _MaskingFormatter("%(message)s").format(record)


@pytest.mark.parametrize(
    "secret",
    [
        "bearer aaaaaaaa",
        "APIKEY=aaaaaaaa",
        "pa\u017f\u017fphrase=aaaaaaaa",  # (?i) takes these letters for s and k, too
        "to\u212aen: aaaaaaaa",
        "AUD" + "a" * 20,
        "5" + "a" * 50,
        "xprv" + "a" * 50,
    ],
)
def test_the_shortest_secret_of_each_kind_is_masked(secret: str) -> None:
    assert "aaaaaaaa" not in mask(f"1 {secret} 2")


def test_arguments_lose_their_line_breaks_and_the_record_keeps_them() -> None:
    record = logging.LogRecord("x", logging.INFO, "f", 1, "a\nb %s", ("c\nd",), None)
    assert _MaskingFormatter("%(message)s").format(record) == "a\\nb c\\nd"
    assert record.getMessage() == "a\nb c\nd"


SECRET = "xprv" + "a" * 50
SHAPE = "%(asctime)s.%(msecs)03dZ %(levelname)s %(program)s %(name)s: %(message)s", "%Y-%m-%dT%H:%M:%S"


def failure(text: str) -> tuple[type[BaseException], BaseException, TracebackType | None]:
    try:
        raise ValueError(text)
    except ValueError as error:
        return ValueError, error, error.__traceback__


def written(form: str, program: str, record: logging.LogRecord) -> str:
    formatter = FORMATTERS[form](*SHAPE)
    formatter.program = program
    return formatter.format(record)


def event(message: object, *values: object, error: str | None = None) -> logging.LogRecord:
    exc_info = None if error is None else failure(error)
    record = logging.LogRecord("workers.x", logging.WARNING, "f", 1, message, values, exc_info)
    record.created, record.msecs = 1_700_000_000.9996, 999.6
    return record


def test_an_event_is_one_json_object() -> None:
    line = written("json", "manager", event("task %d: goes on, %s", 17, "é\x00\n{}", error=f"with {SECRET}"))
    assert line.count("\n") == 0 and line.isascii()
    told = json.loads(line)
    assert told.pop("exception").splitlines()[-1] == "ValueError: with [masked]"
    assert told == {
        "time": "2023-11-14T22:13:20.999Z",
        "level": "WARNING",
        "program": "manager",
        "task": 17,
        "logger": "workers.x",
        "message": "task 17: goes on, é?\\n{}",
    }


def test_a_workers_line_names_its_task() -> None:
    told = json.loads(written("json", "task-17", event("order %d: auto-list task %d", 3, 18)))
    assert (told["program"], told["task"]) == ("worker", 17)


@pytest.mark.parametrize(
    ("message", "values", "task"),
    [
        ("100%% of %s: task %d ends", ("task 5", 17), 17),
        ("%s", ("task 5 is what its owner named a slug",), None),
        ("task %s", ("5",), None),  # what a caller sent, which is no number of ours
        ("nothing", (), None),
        (ValueError("task %d"), (), None),
        ("task %(a)d", ({"a": 1},), None),
    ],
)
def test_the_task_is_taken_from_arguments_and_never_from_input(
    message: object, values: tuple[object, ...], task: int | None
) -> None:
    assert json.loads(written("json", "server", event(message, *values))).get("task") == task


@given(
    program=st.sampled_from(["server", "task-17"]),
    message=st.text(),
    values=st.lists(st.text() | st.just(SECRET), max_size=2),
    error=st.none() | st.text() | st.just(f"x {SECRET}"),
)
def test_json_is_shown_as_the_text_that_would_stand_there(
    program: str, message: str, values: list[str], error: str | None
) -> None:
    message = message.replace("%", "%%") if values else message
    shape = message + " %s" * len(values)
    text = written("text", program, event(shape, *values, error=error))
    shown = as_text(written("json", program, event(shape, *values, error=error)))
    assert shown == text and SECRET not in shown


@pytest.mark.parametrize("line", ["", "Fatal Python error", "{", '{"time": "cut', '{"time": 5}', '[{"time": "x"}]'])
def test_what_is_no_json_of_ours_is_shown_as_it_is(line: str) -> None:
    assert as_text(line) == line


@pytest.mark.slow
@pytest.mark.parametrize("form", ["text", "json"])
def test_errors_that_nobody_catches_and_warnings_are_in_the_log(form: str) -> None:
    program = (
        "import sys, threading, warnings; from core import logs; logs.set_up('server', form=sys.argv[1])\n"
        "def fail(): raise ValueError('token: abcdefghijk')\n"
        "warnings.warn('beware'); thread = threading.Thread(target=fail); thread.start(); thread.join(); fail()"
    )
    done = subprocess.run([sys.executable, "-c", program, form], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 1
    if form == "text":
        assert done.stderr.startswith("<string>:3: UserWarning") and done.stderr.count("Traceback") == 2
        return
    warned, of_thread, last = map(json.loads, done.stderr.splitlines())
    assert "beware" in warned["message"] and {warned["program"], last["program"]} == {"server"}
    for each in (of_thread, last):
        assert each["level"] == "CRITICAL" and each["exception"].endswith("ValueError: token [masked]")


@pytest.mark.parametrize("words", ["literal task %d", "100 %% of task %s", "bad task %s thing"])
def test_words_of_a_task_without_its_argument_are_still_a_line_of_json(words: str) -> None:
    record = logging.makeLogRecord({"msg": words, "name": "x", "levelname": "WARNING", "stack_info": "Stack: here"})
    formatter = FORMATTERS["json"]()
    formatter.program = "server"
    told = json.loads(formatter.format(record))
    assert (told["message"], told["stack"]) == (words, "Stack: here") and "task" not in told


def test_below_the_floor_one_line_says_so_and_lines_resume_afterwards(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = io.StringIO()
    handler = logs._Handler(written)
    handler.directory = tmp_path
    now_s = 100.0
    monkeypatch.setattr(logs.time, "monotonic", lambda: now_s)
    logger = logging.Logger("x")
    logger.addHandler(handler)
    for floor in (0, 1 << 60, 1 << 60, 0):
        now_s += 2
        monkeypatch.setattr(files, "FLOOR_BYTES", floor)
        for number in range(3):
            logger.info("line %d", number)
    lines = written.getvalue().splitlines()
    assert lines[:3] == lines[-3:] == ["line 0", "line 1", "line 2"]
    assert lines[3:-3] == [
        f"the disk of {tmp_path} is short of room: no lines are written until there is more",
        f"the disk of {tmp_path} has room again: 6 lines were left out",
    ]


def test_a_worker_and_a_program_under_supervisord_stop_their_lines() -> None:
    source = "import os, sys; from core import logs; logs.set_up('x'); from pathlib import Path\n"
    source += "from core import files; files.FLOOR_BYTES = 1 << 60; logs.stop_when_short(Path('.'))\n"
    source += "import logging; logging.getLogger('a').error('one'); logging.getLogger('a').error('two')"
    said = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, check=True, cwd=ROOT).stderr
    assert len(said.splitlines()) == 1 and "short of room" in said
