"""Metrics as Prometheus reads them: its text format, version 0.0.4."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Literal

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric; each sample is its labels and its value. A counter's name ends in `_total`."""

    name: str
    kind: Literal["gauge", "counter"]
    help: str
    samples: tuple[tuple[Mapping[str, str], float], ...]


class Histogram:
    """A histogram of durations in seconds; `bounds` are the upper ends, ascending."""

    def __init__(self, name: str, help: str, bounds: Sequence[float]) -> None:
        self.name = name
        self.help = help
        self._bounds = tuple(bounds)
        self._counts = [0] * (len(self._bounds) + 1)
        self._sum_s = 0.0

    def observe(self, seconds: float) -> None:
        """Counts one more duration; one exactly at a bound belongs below it."""
        self._counts[bisect_left(self._bounds, seconds)] += 1
        self._sum_s += seconds

    def lines(self) -> Iterator[str]:
        """Yields the text format: each bucket counts those below it, too."""
        yield f"# HELP {self.name} {_escaped(self.help)}"
        yield f"# TYPE {self.name} histogram"
        for bound, count in zip((*map(str, self._bounds), "+Inf"), accumulate(self._counts), strict=True):
            yield f'{self.name}_bucket{{le="{bound}"}} {count}'
        yield f"{self.name}_sum {self._sum_s}"
        yield f"{self.name}_count {sum(self._counts)}"


def metric(name: str, kind: Literal["gauge", "counter"], help: str, value: float) -> Metric:
    """Makes a metric with one sample and no labels."""
    return Metric(name, kind, help, (({}, value),))


def render(metrics: Iterable[Metric | Histogram]) -> str:
    """Writes the text format. A metric without samples is left out."""
    lines: list[str] = []
    for each in metrics:
        if isinstance(each, Histogram):
            lines += each.lines()
            continue
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
