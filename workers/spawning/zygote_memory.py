"""The zygote's preparation of its memory before it forks, so that a worker shares most of it and keeps doing so.

A fork shares every page until one side writes to it. A worker's allocations would go into the gaps that imports and
warm-up have left all over the heap, and each touched page is copied. So the gaps are filled, and a worker's allocations
lie side by side in pages of their own: nearly two MiB less for each worker, of ten.
"""

from __future__ import annotations

import ctypes
import gc
import logging
import os
import sys

log = logging.getLogger(__name__)

_BYTES_HEAD = sys.getsizeof(b"")
_SMALLEST_BYTES = 48  # the smallest size class of Python's allocator that an object of `bytes` goes into
_HEAP_CHUNKS = [1 << power for power in range(16, 5, -1)] + [48, 32]
_HEAP_HEAD = 8  # the C library's overhead for a chunk
_MOST_CHUNKS = 100_000

_fillers: list[object] = []  # for ever


def settle() -> None:
    """Fills the gaps, and keeps the garbage collector from ever writing to present objects."""
    gc.collect()
    try:
        _fill_pools()
        _fill_heap()
    except (OSError, AttributeError, ValueError) as error:
        # Another interpreter or C library: workers are just larger.
        log.info("gaps in memory are left as they are: %s", error)
    gc.freeze()


def _fill_pools() -> None:
    """Fills the gaps of Python's own allocator, which has pools of blocks for each size up to 512 bytes."""
    for size, count in _free_blocks().items():
        if size >= _SMALLEST_BYTES:
            _fillers.append([bytes(size - _BYTES_HEAD) for _ in range(count)])
        elif size == sys.getsizeof(0.5) + 8:
            _fillers.append([float(number) for number in range(count)])


def _free_blocks() -> dict[int, int]:
    """Returns the number of free blocks by size in partly used pools; the allocator prints it to stderr only."""
    stderr = os.dup(2)
    told = os.memfd_create("allocator")
    try:
        os.dup2(told, 2)
        try:
            sys._debugmallocstats()
        finally:
            os.dup2(stderr, 2)
        text = os.pread(told, 1 << 20, 0).decode()
    finally:
        os.close(stderr)
        os.close(told)
    rows = (line.split() for line in text.splitlines())
    return {int(row[1]): int(row[4]) for row in rows if len(row) == 5 and all(map(str.isdigit, row))}


class _HeapFacts(ctypes.Structure):
    """The result of mallinfo2(3): ten numbers, the last of which counts the free bytes at the heap's end (keepcost)."""

    _fields_ = tuple((name, ctypes.c_size_t) for name in (*"abcdefghi", "at_end"))


def _fill_heap() -> None:
    """Fills the gaps of the C library's allocator: chunks from large to small, until each comes from the heap's end."""
    libc = ctypes.CDLL(None)
    facts, allocate, free = libc.mallinfo2, libc.malloc, libc.free
    facts.restype, facts.argtypes = _HeapFacts, []
    allocate.restype, allocate.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
    free.restype, free.argtypes = None, [ctypes.c_void_p]
    libc.malloc_trim(0)
    for size in _HEAP_CHUNKS:
        for _ in range(_MOST_CHUNKS):
            end = facts().at_end
            chunk = allocate(size - _HEAP_HEAD)
            if facts().at_end != end:
                free(chunk)
                break
