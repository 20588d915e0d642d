"""A process without a network: tried in children, since what is given up never comes back."""

from __future__ import annotations

import os
import signal
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from core import process

has_filter = pytest.mark.skipif(os.uname().machine not in process.CALLS, reason="no filter for this machine")

CHILD = """
import ctypes, errno, os, signal, socket, sqlite3, subprocess, sys, tempfile, threading, time
from core.process import CALLS, give_up_network

calls = CALLS[os.uname().machine]
libc = ctypes.CDLL(None, use_errno=True)
def refused(call, *arguments):
    ctypes.set_errno(0)
    answer = libc.syscall(ctypes.c_long(call), *map(ctypes.c_long, arguments))
    if answer >= 0:
        os.close(answer)
    return answer == -1 and ctypes.get_errno() == errno.EPERM
def cannot_open(family, kind=socket.SOCK_STREAM):
    try:
        socket.socket(family, kind).close()
    except PermissionError:
        return True
    except OSError as error:
        return error
    return False
def in_thread(function):
    found = []
    thread = threading.Thread(target=lambda: found.append(function()))
    thread.start(); thread.join()
    return found[0]
"""


def run(body: str, before: str = "", ends: tuple[int, ...] = (0,)) -> None:
    """Runs `body` in a child that has given up its network; `before` before that."""
    program = f"{CHILD}\n{before}\nassert give_up_network() == ''\n{body}"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert done.returncode in ends, done.stderr


def forbids_tracing() -> bool:
    try:
        return int(Path("/proc/sys/kernel/yama/ptrace_scope").read_text()) > 1
    except FileNotFoundError:
        return False


@has_filter
@pytest.mark.slow
@pytest.mark.skipif(forbids_tracing(), reason="nobody may trace here")
def test_the_memory_of_another_process_of_its_user_stays_writable() -> None:
    """The way around that docs/custody.md tells of; this one is a child, which yama's scope 1 leaves open as well."""
    run(
        "address = int(other.stdout.readline())\n"
        "with open(f'/proc/{other.pid}/mem', 'r+b', buffering=0) as memory:\n"
        "    memory.seek(address)\n"
        "    assert memory.write(b'evil') == 4\n"
        "assert other.communicate(b'\\n')[0] == b'evil'\n",
        "child = 'import ctypes, sys; held = ctypes.create_string_buffer(4)\\n'\n"
        "child += 'print(ctypes.addressof(held), flush=True); sys.stdin.readline()\\n'\n"
        "child += 'sys.stdout.buffer.write(held.raw)'\n"
        "pipes = dict(stdin=subprocess.PIPE, stdout=subprocess.PIPE)\n"
        "other = subprocess.Popen([sys.executable, '-c', child], **pipes)",
    )


@has_filter
@pytest.mark.slow
def test_no_family_of_sockets_but_unix_can_be_opened() -> None:
    run(
        "for family in range(256):\n"
        "    if family != socket.AF_UNIX:\n"
        "        for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_RAW):\n"
        "            assert cannot_open(family, kind) is True, (family, kind)\n"
        "        assert refused(calls.sockets[0], family, socket.SOCK_STREAM, 0), family\n"
        "        assert refused(calls.sockets[1], family, socket.SOCK_STREAM, 0, 0), family\n"
        "assert refused(calls.sockets[0], (1 << 32) + socket.AF_INET, socket.SOCK_STREAM, 0)\n"
        "assert socket.AF_INET == 2 and {socket.AF_INET6, socket.AF_NETLINK, socket.AF_PACKET} < set(range(256))\n",
        # The test of the test: before, they could be.
        "assert cannot_open(socket.AF_INET) is False and cannot_open(socket.AF_NETLINK, socket.SOCK_RAW) is False",
    )


@has_filter
@pytest.mark.slow
def test_the_ways_around_are_closed() -> None:
    run(
        "for call in calls.others:\n"
        "    assert refused(call, 0, 0, 0, 0, 0, 0), call\n"
        # A program may ask as another machine's, whose calls have other numbers: all of these are refused.
        "for call in (calls.sockets[0], 39, 102, 359, 0x1FFFFFFF):\n"
        "    assert refused(0x40000000 | call, socket.AF_INET, socket.SOCK_STREAM, 0), call\n",
        "parameters = ctypes.create_string_buffer(120)\n"
        "ring = libc.syscall(ctypes.c_long(425), ctypes.c_long(1), parameters)\n"
        "assert ring >= 0 or ctypes.get_errno() in (errno.ENOSYS, errno.EPERM)\n",
    )


@pytest.mark.slow
@pytest.mark.skipif(os.uname().machine != "x86_64", reason="no calls of another machine here")
def test_calls_of_32_bits_get_no_socket_either() -> None:
    """By `int 0x80` the numbers are another machine's: 102 is socketcall, 359 socket, 20 getpid."""
    run(
        "import mmap\n"
        "def old(number, first=2, second=1, third=0):\n"
        "    code = b'\\x53\\xb8%s\\xbb%s\\xb9%s\\xba%s\\xcd\\x80\\x5b\\xc3' % tuple(\n"
        "        value.to_bytes(4, 'little') for value in (number, first, second, third))\n"
        "    page = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)\n"
        "    page.write(code)\n"
        "    return ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(page)))()\n"
        "for number in (20, 102, 359, 360):\n"
        "    assert old(number) == -errno.EPERM, (number, old(number))\n",
        ends=(0, -signal.SIGSEGV),  # a kernel without such calls ends who makes one
    )


@has_filter
@pytest.mark.slow
def test_all_else_works_as_before() -> None:
    run(
        "with tempfile.TemporaryDirectory() as folder:\n"
        "    path = folder + '/s'\n"
        "    with socket.socket(socket.AF_UNIX) as server, socket.socket(socket.AF_UNIX) as client:\n"
        "        server.bind(path); server.listen(); client.connect(path)\n"
        "        there, _ = server.accept()\n"
        "        client.sendall(b'x'); assert there.recv(1) == b'x'; there.close()\n"
        "    left, right = socket.socketpair(); left.send(b'y'); assert right.recv(1) == b'y'\n"
        "    database = sqlite3.connect(folder + '/d.db'); database.execute('PRAGMA journal_mode=WAL')\n"
        "    database.execute('CREATE TABLE t (a)'); database.commit(); database.close()\n"
        "    with open(folder + '/log', 'a') as log: log.write('x'); log.flush(); os.fsync(log.fileno())\n"
        "heard = []\n"
        "signal.signal(signal.SIGALRM, lambda *a: heard.append(a)); signal.setitimer(signal.ITIMER_REAL, 0.01)\n"
        "began = time.monotonic()\n"
        "while not heard: time.sleep(0.01)\n"
        "assert time.monotonic() > began and time.time() > 0 and os.urandom(1)\n"
        "import asyncio; asyncio.run(asyncio.sleep(0))\n"
        "pid = os.fork()\n"
        "if pid == 0: os._exit(0 if cannot_open(socket.AF_INET) is True else 1)\n"
        "assert os.waitpid(pid, 0)[1] == 0\n"
        "code = 'import socket; socket.socket()'\n"
        "after = subprocess.run([sys.executable, '-c', code], capture_output=True, text=True)\n"
        "assert 'PermissionError' in after.stderr\n"
    )


@has_filter
@pytest.mark.slow
def test_threads_that_run_already_have_lost_it_too() -> None:
    run(
        "go.set(); thread.join(); assert found == [True], found\n",
        "go, found = threading.Event(), []\n"
        "thread = threading.Thread(target=lambda: (go.wait(), found.append(cannot_open(socket.AF_INET))))\n"
        "thread.start()\n",
    )


@has_filter
@pytest.mark.slow
def test_it_may_be_given_up_twice() -> None:
    run("assert give_up_network() == '' and cannot_open(socket.AF_INET) is True\n")


def test_a_machine_without_a_filter_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "CALLS", {})
    assert process.give_up_network() == f"there is no filter for linux on {os.uname().machine}"


@has_filter
@pytest.mark.slow
def test_a_kernel_that_refuses_says_why() -> None:
    code = CHILD + "assert give_up_network() == ''\ncalls = None\n"
    code += (
        # A filter that refuses filters: the second one is not taken, which must be said.
        "from core import process\n"
        "first = process.CALLS[os.uname().machine]\n"
        "from msgspec.structs import replace\n"
        "process.CALLS = {os.uname().machine: replace(first, others=(first.seccomp,))}\n"
        "assert give_up_network() == ''\n"
        "said = give_up_network()\n"
        "assert said == 'seccomp: Operation not permitted', said\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("machine", process.CALLS)
@pytest.mark.parametrize("family", [1, 2, 10, 16, 17, 40])
def test_the_filters_of_all_machines_decide_alike(machine: str, family: int) -> None:
    """Where no such machine is at hand: its program, run by hand."""
    calls = process.CALLS[machine]

    def decided(number: int, argument: int, name: int = calls.machine) -> int:
        return interpreted(process.program(calls), struct.pack("<IIQ6Q", number, name, 0, argument, 0, 0, 0, 0, 0))

    allow, refuse = 0x7FFF0000, 0x00050001
    for number in calls.sockets:
        assert decided(number, family) == (allow if family == 1 else refuse)
        assert decided(number, family + (7 << 32)) == (allow if family == 1 else refuse)
        assert decided(number, 1, name=0x40000003) == refuse
    for number in (*calls.others, 0x40000000, 0xFFFFFFFF):
        assert decided(number, family) == refuse
    for number in set(range(600)) - {*calls.sockets, *calls.others}:
        assert decided(number, family) == allow


def interpreted(program: bytes, call: bytes) -> int:
    """Runs a program of the kernel's packet filter on the description of a call, and returns its answer."""
    at, value = 0, 0
    steps = list(struct.iter_unpack("<HBBI", program))
    while True:
        code, if_so, if_not, constant = steps[at]
        at += 1
        if code == 0x06:
            return int(constant)
        if code == 0x20:
            value = struct.unpack_from("<I", call, constant)[0]
        else:
            holds = {0x15: value == constant, 0x35: value >= constant}[code]
            at += if_so if holds else if_not
