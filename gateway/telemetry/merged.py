"""The metrics of several processes as those of one gateway: texts of /metrics in, one out.

    ====================  ==========================================================================================
    a sample of           becomes
    ====================  ==========================================================================================
    a counter, histogram  the sum, those of processes that have ended included: it never goes down
    a gauge               the sum, the largest or the smallest value of the processes that run, or one sample for each
                          process, with a label ``process``: ``Metric.combined``
    an exemplar           the newest of those of one bucket
    ====================  ==========================================================================================

Of a process that has ended the values read last count. Those of a policy, entry or worker that no process has any more
are removed, as a process removes its own.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

from msgspec import Struct

from gateway.telemetry.events import Combination, Metric
from gateway.telemetry.table import PREFIX

_SAMPLE: Final = re.compile(r'([a-zA-Z_:][\w:]*)(\{(?:[^"\\}]|"(?:[^"\\]|\\.)*")*\})? (\S+)(.*)')
_CONFIGURED: Final = re.compile(r'[{,]((?:policy|entry|worker)="(?:[^"\\]|\\.)*")')
_PROCESS: Final = "process"

_COMBINE: Final[Mapping[Combination, Callable[[Iterable[float]], float]]] = {
    Combination.SUM: sum,
    Combination.MAX: max,
    Combination.MIN: min,
}

_Key = tuple[str, str]
"""The name of a sample, and its labels as they are written."""


class ProcessFamily(Struct, eq=False):
    """The samples of one metric. ``head`` are its comments; ``exemplars`` follow the values of some samples."""

    kind: str
    head: list[str]
    samples: dict[_Key, float]
    exemplars: dict[_Key, str]

    @property
    def is_gauge(self) -> bool:
        """Whether its values may go down."""
        return self.kind not in {"counter", "histogram", "summary"}


Families = dict[str, ProcessFamily]
"""By name, without ``_total``: the formats differ in whether the comments have it."""


def parsed(text: str) -> Families:
    """The families of an exposition, in the text format or in OpenMetrics."""
    families: Families = {}
    name, head = "", list[str]()
    for line in text.splitlines():
        if line.startswith("# "):
            word, _, rest = line[2:].partition(" ")
            if word == "EOF":
                break
            described = rest.split(" ")[0].removesuffix("_total")
            if described != name:
                name, head = described, []
            head.append(line)
            if word == "TYPE":
                families[name] = ProcessFamily(rest.split(" ")[1], head, {}, {})
        elif found := _SAMPLE.fullmatch(line):
            family = families.setdefault(name, ProcessFamily("untyped", head, {}, {}))
            key = (found[1], found[2] or "")
            family.samples[key] = float(found[3])
            if found[4]:
                family.exemplars[key] = found[4]
    return families


def with_ended(retired: Families, ended: Families) -> Families:
    """The counts of processes that have ended, with those of one more."""
    result = dict(retired)
    for name, family in ended.items():
        if not family.is_gauge:
            before = retired[name].samples if name in retired else {}
            counts = {key: before.get(key, 0.0) + value for key, value in family.samples.items()}
            result[name] = ProcessFamily(family.kind, family.head, before | counts, {})
    return result


def still_configured(retired: Families, live: Iterable[Families]) -> Families:
    """The same without what no process of ``live`` has configured any more. All of it if there is none."""
    known = {each for families in live for family in families.values() for each in _configured(family.samples)}
    if not known:
        return retired
    return {
        name: ProcessFamily(
            family.kind,
            family.head,
            {key: value for key, value in family.samples.items() if known.issuperset(_configured([key]))},
            {},
        )
        for name, family in retired.items()
    }


def merged(processes: Mapping[int, Families], retired: Families, table: Iterable[Metric]) -> Iterator[str]:
    """The lines of the merged exposition.

    Args:
        processes: what each that runs exposes, by number.
        retired: the counts of those that have ended.
        table: says how gauges are combined; the sum where it says nothing.
    """
    rules = {f"{prefix}{metric.name}": metric.combined for metric in table for prefix in ("", PREFIX)}
    every = [*processes.values(), retired]
    for name in dict.fromkeys(name for families in every for name in families):
        family = next(families[name] for families in every if name in families)
        rule = rules.get(name, Combination.SUM) if family.is_gauge else Combination.SUM
        yield from (f"{line}\n" for line in family.head)
        if rule is Combination.EACH:
            yield from _each(name, processes)
        else:
            yield from _combined(name, every, _COMBINE[rule])


def _combined(name: str, every: Iterable[Families], combine: Callable[[Iterable[float]], float]) -> Iterator[str]:
    values: dict[_Key, list[float]] = {}
    exemplars: dict[_Key, str] = {}
    for families in every:
        family = families.get(name)
        if family is not None:
            for key, value in family.samples.items():
                values.setdefault(key, []).append(value)
            for key, exemplar in family.exemplars.items():
                exemplars[key] = max(exemplar, exemplars.get(key, exemplar), key=_observed)
    for key, found in values.items():
        yield f"{key[0]}{key[1]} {float(combine(found))!r}{exemplars.get(key, '')}\n"


def _observed(exemplar: str) -> float:
    """When: the timestamp at its end, in seconds."""
    return float(exemplar.rpartition(" ")[2])


def _each(name: str, processes: Mapping[int, Families]) -> Iterator[str]:
    for number, families in processes.items():
        family = families.get(name)
        for (sample, labels), value in family.samples.items() if family is not None else ():
            inside = labels[1:-1]
            yield f'{sample}{{{inside}{"," if inside else ""}{_PROCESS}="{number}"}} {value!r}\n'


def _configured(samples: Iterable[_Key]) -> Iterator[str]:
    for _, labels in samples:
        yield from _CONFIGURED.findall(labels)
