"""Golden files of the sockets and of the signer: one JSON value a line, so that a change reads well in a diff.

To renew them: `RENEW_GOLDENS=1 python -m pytest -k "signer or socket" tests/goldens`, in a commit of its own that says
what changed and why. `*_meanings.jsonl` and `signer_attacks.jsonl` hold what callers
see: they may not change with the form of a socket. `*_wire.jsonl` hold decoded requests and answers, and may.
"""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Iterable, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent


def plain(value: Any) -> Any:
    """Returns `value` as JSON takes it; a dataclass, msgspec.Struct or NamedTuple as an object of its fields."""
    kinds = ("__struct_fields__", "__dataclass_fields__", "_fields")
    if names := next(filter(None, (getattr(type(value), kind, None) for kind in kinds)), None):
        return {name: plain(getattr(value, name)) for name in names}
    if isinstance(value, Decimal):
        return f"Decimal {value}"
    if isinstance(value, bytes):
        return f"base64 {base64.b64encode(value).decode()}"
    if isinstance(value, Mapping):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    if isinstance(value, set | frozenset):
        return sorted(map(plain, value))
    assert value is None or isinstance(value, str | int | float), f"{type(value)} has no plain form"
    return value


def failed(error: BaseException) -> dict[str, Any]:
    """Returns an exception as a value: its class, its text, and the fields that callers read."""
    fields = {name: plain(value) for name, value in sorted(vars(error).items()) if not name.startswith("_")}
    return {"raises": type(error).__name__, "text": str(error), **({"fields": fields} if fields else {})}


def hold(name: str, rows: Iterable[Any]) -> None:
    """Fails unless `rows` are those of the golden file `name`, in their order."""
    path = HERE / name
    lines = [json.dumps(plain(row), sort_keys=True, ensure_ascii=False) for row in rows]
    assert lines
    if os.environ.get("RENEW_GOLDENS") == "1":
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        pytest.skip(f"{name} is renewed: read its diff, and commit it apart with the reason")
    held = path.read_text(encoding="utf-8").splitlines()
    changed = [(old, new) for old, new in zip(held, lines, strict=False) if old != new]
    assert not changed, (
        f"{len(changed)} lines of {name} changed; the first was and is:\n{changed[0][0]}\n{changed[0][1]}"
    )
    assert len(held) == len(lines), f"{name} has {len(held)} lines; there are now {len(lines)}"


def hold_all(*goldens: tuple[str, list[Any]]) -> None:
    """Holds each golden; when they are renewed, writes all of them before it skips."""
    renewed = None
    for name, rows in goldens:
        try:
            hold(name, rows)
        except pytest.skip.Exception as skipped:
            renewed = skipped
    if renewed is not None:
        raise renewed
