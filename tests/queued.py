"""The plugin of one of several pytests that take their files from a queue (tests/side_by_side.py).

A process reads in only what it runs, and tells of each test in numbers only: reading all of them in, in each of eight
processes, and passing on every report took a quarter of the whole time.
"""

from __future__ import annotations

import gc
import json
import os
import select
import signal
import threading
import time
from collections import Counter
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest

from core.process import end_with_parent
from tests.side_by_side import VARIABLE, WIDTH

_NAME, _END = 200, 360  # letters, each of up to seven bytes
_THREAD_S = 60.0


class Queue:
    """The groups of files that are left for all processes, and what this one says of those that it took."""

    def __init__(self) -> None:
        own, other, said, groups = os.environ.pop(VARIABLE).split(":", 3)
        self._queues, self._said = (int(own), int(other)), int(said)
        for end in (*self._queues, self._said):
            os.set_inheritable(end, False)
        self._groups: list[list[str]] = json.loads(Path(groups).read_text())

    def all(self) -> list[str]:
        """Returns the files of all groups."""
        return [path for group in self._groups for path in group]

    def take(self) -> list[str] | None:
        """Takes the next group, of the other queue when its own is empty; None when all are taken."""
        number = os.read(self._queues[0], WIDTH) or os.read(self._queues[1], WIDTH)
        if not number:
            return None
        group = self._groups[int.from_bytes(number)]
        self.say(begins=group[0], pid=os.getpid())
        return group

    def say(self, **words: Any) -> None:
        """Tells the parent in one line, which no other process's can come into (pipe(7): PIPE_BUF)."""
        line = json.dumps(words, ensure_ascii=False).encode() + b"\n"
        assert len(line) <= select.PIPE_BUF
        os.write(self._said, line)


class Queued:
    """The tests of this process."""

    def __init__(self, queue: Queue) -> None:
        self._queue = queue
        self._counts: Counter[str] = Counter()
        self._is_done = False  # what pytest asks then is for its own summary
        self._files: dict[Path, list[pytest.Collector | pytest.Item]] = {}

    def pytest_collection(self, session: pytest.Session) -> bool:
        """Finds all files without reading them in, so that their folders, with their fixtures, are there once.

        Raises UsageError for what is neither an option nor there.
        """
        if session.config.args_source is pytest.Config.ArgsSource.ARGS:
            raise pytest.UsageError(f"no such file or folder: {' '.join(session.config.args)}")
        option = session.config.option
        chosen = option.markexpr, option.keyword
        option.markexpr = option.keyword = ""  # a file has no marks, its tests do
        # For each file that is named pytest would look through its whole folder anew, in case it is named twice.
        look = session._collect_one_node
        session._collect_one_node = lambda node, handle_dupes=True: look(node)  # type: ignore[method-assign]
        for node in session.perform_collect(self._queue.all(), genitems=False):
            self._files.setdefault(node.path.resolve(), []).append(node)
        option.markexpr, option.keyword = chosen
        return True

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Runs group after group. The last test of one ends only what the first of the next has no use for."""
        items = self._items(session)
        item = next(items, None)
        while item is not None:
            following = next(items, None)
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            if session.shouldfail:
                raise session.Failed(session.shouldfail)
            if session.shouldstop:
                raise session.Interrupted(session.shouldstop)
            item = following
        self._tell()
        self._is_done = True
        self._queue.say(done=os.getpid())
        return True

    def _items(self, session: pytest.Session) -> Iterator[pytest.Item]:
        while group := self._queue.take():
            self._tell()
            gc.disable()
            paths = [Path(path.partition("::")[0]).resolve() for path in group]
            nodes = [node for path in paths for node in self._files[path]]
            items = [item for node in dict.fromkeys(nodes) for item in session.genitems(node)]
            session.config.hook.pytest_collection_modifyitems(session=session, config=session.config, items=items)
            session.testscollected += len(items)
            gc.freeze()  # as when all is read in at once (conftest.py)
            gc.enable()
            yield from items

    def _tell(self) -> None:
        self._queue.say(counts=self._counts)
        self._counts.clear()

    @pytest.hookimpl(wrapper=True)
    def pytest_report_teststatus(self, report: Any) -> Generator[None, Any, tuple[str, str, Any]]:
        """Counts what came of a test, and shows no dot for it."""
        category, _, word = yield
        if category and not self._is_done:
            self._counts[category] += 1
        if category in ("failed", "error") and not self._is_done:
            self._tell_bad(category.upper(), report)
        return category, "", word

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self._counts["error"] += 1
            self._tell_bad("ERROR", report)

    def _tell_bad(self, word: str, report: pytest.TestReport | pytest.CollectReport) -> None:
        """Tells the end of a report at once; the whole of it is said at the end, to which a run may not come."""
        told = f"{word} {report.nodeid[-_NAME:]}\n{report.longreprtext[-_END:]}"
        self._queue.say(bad=told.encode(errors="backslashreplace").decode())


def pytest_configure(config: pytest.Config) -> None:
    end_with_parent(by=signal.SIGINT)  # with all that its tests have started
    config.pluginmanager.register(Queued(Queue()), "queued")


@pytest.hookimpl(trylast=True)
def pytest_unconfigure() -> None:
    """Fails a run whose test left a thread: Python would wait for that thread without end."""
    threading.Thread(target=_give_up, daemon=True).start()  # Python's own end, if it comes, comes first


def _give_up() -> None:
    time.sleep(_THREAD_S)
    left = [each.name for each in threading.enumerate() if not each.daemon and each is not threading.main_thread()]
    print(f"a test left a thread running: {', '.join(left)}", flush=True)
    os._exit(pytest.ExitCode.TESTS_FAILED)
