"""Golden files of the sockets and of the signer: one JSON value a line, so that a change reads well in a diff.

`*_meanings.jsonl`, `signer_attack*.jsonl` and `signer_audit*.jsonl` hold what callers and operators see: they may not
change with the form of a socket. `*_wire.jsonl` hold decoded requests and answers, `socket_frames_*.jsonl` and
`signer_fields.jsonl` answers to malformed ones: they may, for a reason. tests/goldens/__init__.py says how to renew
them: `RENEW_GOLDENS=1 .venv/bin/python -m pytest tests/goldens`.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any

from tests import goldens


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
    """Fails unless the golden `name` has exactly these rows, each a line of JSON."""
    lines = [json.dumps(plain(row), sort_keys=True, ensure_ascii=False) for row in rows]
    assert lines
    goldens.hold(name, lines)
