"""Commands for tests, as an operator gives them: each returns the exit code and both outputs."""

from __future__ import annotations

import ctypes
import io
import json
import os
import struct
import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import redirect_stderr, redirect_stdout

import pytest

from cli.main import main
from models.database import base
from tests.e2e.installation import PATIENCE

Way = Callable[..., tuple[int, str, str]]
_CAPABILITY_VERSION = 0x20080522  # of capset(2), three times two words of nothing


def as_program(environment: Mapping[str, str], *words: str, given: str = "") -> tuple[int, str, str]:
    """Runs the command as a program of its own."""
    done = subprocess.run(
        [sys.executable, "-m", "cli.main", *words],
        env=environment,
        input=given,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


def in_this_process(environment: Mapping[str, str], *words: str, given: str = "") -> tuple[int, str, str]:
    """Runs the same without a Python of its own, which is most of what a command costs."""
    said, complained = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(said), redirect_stderr(complained):
        for name in os.environ.keys() - environment.keys():
            patch.delenv(name)
        for name, value in environment.items():
            patch.setenv(name, value)
        patch.setattr(sys, "stdin", io.StringIO(given))
        umask = os.umask(0o077)  # `up` sets its own
        os.umask(umask)
        try:
            code = main(list(words))
        finally:
            os.umask(umask)
            base.close()
    return code, said.getvalue(), complained.getvalue()


def without_privileges(environment: Mapping[str, str], *words: str) -> tuple[int, str, str]:
    """Runs the command as `in_this_process` in a child in which root opens no other user's files either."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            header, nothing = struct.pack("=Ii", _CAPABILITY_VERSION, 0), bytes(24)
            if ctypes.CDLL(None).capset(header, nothing) == 0:
                os.write(writing, json.dumps(in_this_process(environment, *words)).encode())
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        told = pipe.read()
    os.waitpid(child, 0)
    code, said, complained = json.loads(told)
    return code, said, complained
