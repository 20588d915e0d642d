"""Metrics as Prometheus reads them: its text format, version 0.0.4."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric; each sample is its labels and its value. A counter's name ends in `_total`."""

    name: str
    kind: Literal["gauge", "counter"]
    help: str
    samples: tuple[tuple[Mapping[str, str], float], ...]


def metric(name: str, kind: Literal["gauge", "counter"], help: str, value: float) -> Metric:
    """A metric with one sample and no labels."""
    return Metric(name, kind, help, (({}, value),))


def render(metrics: Iterable[Metric]) -> str:
    """The text format. A metric without samples is left out."""
    lines = []
    for each in metrics:
        if each.samples:
            lines.append(f"# HELP {each.name} {_escaped(each.help)}")
            lines.append(f"# TYPE {each.name} {each.kind}")
        lines += [f"{each.name}{_labels(labels)} {value}" for labels, value in each.samples]
    return "".join(f"{line}\n" for line in lines)


def _labels(labels: Mapping[str, str]) -> str:
    if not labels:
        return ""
    return "{" + ",".join(f'{name}="{_quoted(value)}"' for name, value in labels.items()) + "}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n")


def _quoted(text: str) -> str:
    return _escaped(text).replace('"', '\\"')
