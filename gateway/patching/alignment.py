"""Which element of one array became which element of another.

JSON arrays have no keys, so the alignment is a heuristic. A wrong one has consequences: a sidecar inserted in front of
two containers would read as "everything was rewritten", and the image's change would be attributed to the wrong policy.
The alignment keeps the order and has the least cost: an unchanged element costs 0, a removed one 1, an added one 1 plus
its width, and a changed one 1 plus the number of its members that differ, but never more than removing it and adding
the other. So an array to which elements were only added, or from which elements were only removed, reads as exactly
that.

Finding the least cost needs a table of both lengths: fine for the arrays of Kubernetes, too expensive for those of an
attacker. So, from cheap to expensive:

1. *Kin* are paired: two elements with a trait in common that no third element has (a member that is shared, or has the
   same name and value). Of these pairs the longest run that keeps the order is used. Between them:
2. Elements get numbers (see ``value_interner``), and equal ones at both ends are paired.
3. A small stretch is aligned by the table.
4. In a large one, equal elements that each side has only once are paired like kin (a patience diff), and each stretch
   between them begins again at 2.
5. If there are none, the table is used after all.
6. What is left, and all for which there are too few steps (see ``steps``), is paired by position.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Any, TypeAlias, TypeVar

from gateway.patching.equality import Value
from gateway.patching.steps import OutOfStepsError, Steps
from gateway.patching.value_interner import ValueInterner

Pair: TypeAlias = tuple[int | None, int | None]
"""Index before and index after; None on one side: removed, or added."""

T = TypeVar("T")

_ELEMENT = 4
"""Steps of an element that is aligned other than by position, besides one for each of its members. 10,000 narrow
elements on both sides take half of all steps. More are an attack, or a list that no policy edits element by element."""

_SMALL = 1_024
"""Cells of a table that is computed without further division: 32 elements on each side, more than any list in most Pods
has. A cell is a step and a half."""

_MEMBERS = 16
"""Comparing elements as wide as this takes about twice as long as comparing narrow ones: so the price grows."""

_ROUNDS = 4
"""How often a stretch is divided at equal elements: each round is linear, and the second one rarely finds any."""

_SEVERAL = -1


class Aligner:
    """Aligns the arrays of one difference, whose two documents must outlive it. ``steps`` bound the work."""

    __slots__ = ("_steps", "interner")

    def __init__(self, steps: Steps | None = None) -> None:
        self._steps = steps or Steps()
        self.interner = ValueInterner(self._steps)

    def align(self, before: Sequence[Value], after: Sequence[Value]) -> list[Pair]:
        """Pairs in order: each index of ``before`` once, each of ``after`` once, both rising."""
        # The other half is for what differs in the pairs.
        floor = self._steps.begin(2)
        try:
            self._steps.take(_ELEMENT * (len(before) + len(after)))
            self._steps.take(_widths(before) + _widths(after))
            return _around(_similar(before, after), before, after, self._unequal)
        except OutOfStepsError:
            return _by_position(before, after)
        finally:
            self._steps.end(floor)

    def _unequal(self, before: Sequence[Value], after: Sequence[Value]) -> list[Pair]:
        """Align elements that have no kin."""
        if len(before) * len(after) <= 1:
            return _by_position(before, after)
        number = self.interner.number
        return self._numbered([number(value) for value in before], [number(value) for value in after], _ROUNDS)

    def _numbered(self, rows: Sequence[int], columns: Sequence[int], rounds: int) -> list[Pair]:
        shorter = min(len(rows), len(columns))
        start = 0
        while start < shorter and rows[start] == columns[start]:
            start += 1
        end = 0
        while end < shorter - start and rows[-1 - end] == columns[-1 - end]:
            end += 1
        last_row, last_column = len(rows) - end, len(columns) - end
        pairs: list[Pair] = [(index, index) for index in range(start)]
        pairs += _moved(self._middle(rows[start:last_row], columns[start:last_column], rounds), start, start)
        pairs += [(last_row + index, last_column + index) for index in range(end)]
        return pairs

    def _middle(self, rows: Sequence[int], columns: Sequence[int], rounds: int) -> list[Pair]:
        cells = len(rows) * len(columns)
        if cells and cells <= _SMALL and self._affordable(rows, columns):
            return self._by_table(rows, columns)
        if cells and rounds and (anchors := _unique(rows, columns)):
            return _around(anchors, rows, columns, lambda some, others: self._numbered(some, others, rounds - 1))
        if cells and self._affordable(rows, columns):
            return self._by_table(rows, columns)
        return _by_position(rows, columns)

    def _affordable(self, rows: Sequence[int], columns: Sequence[int]) -> bool:
        """Take the price of a table from the steps that are left, if there are enough."""
        widest = min(max(map(self.interner.width, rows)), max(map(self.interner.width, columns)))
        try:
            self._steps.take(len(rows) * len(columns) * (1 + widest // _MEMBERS) * 3 // 2)
        except OutOfStepsError:
            return False
        return True

    def _by_table(self, rows: Sequence[int], columns: Sequence[int]) -> list[Pair]:
        """The cheapest alignment. ``table[i][j]`` is what the rows from i on cost with the columns from j on."""
        additions = [1 + self.interner.width(number) for number in columns]
        below = [0, *accumulate(reversed(additions))]
        below.reverse()
        table = [below]
        for number in reversed(rows):
            line = [below[-1] + 1] * len(below)
            for j in reversed(range(len(columns))):
                paired = below[j + 1] + self._change(number, columns[j])
                line[j] = min(paired, below[j] + 1, line[j + 1] + additions[j])
            table.append(line)
            below = line
        table.reverse()
        pairs: list[Pair] = []
        i = j = 0
        while i < len(rows) and j < len(columns):
            if table[i][j] == table[i + 1][j + 1] + self._change(rows[i], columns[j]):
                pairs.append((i, j))
                i, j = i + 1, j + 1
            elif table[i][j] == table[i + 1][j] + 1:
                pairs.append((i, None))
                i += 1
            else:
                pairs.append((None, j))
                j += 1
        return pairs + _moved(_by_position(rows[i:], columns[j:]), i, j)

    def _change(self, old: int, new: int) -> int:
        """The cost of changing one element into another."""
        if old == new:
            return 0
        anew = 2 + self.interner.width(new)
        changed = self.interner.changed(old, new)
        return anew if changed is None else min(anew, 1 + changed)


def _around(
    anchors: list[tuple[int, int]],
    before: Sequence[T],
    after: Sequence[T],
    align: Callable[[Sequence[T], Sequence[T]], list[Pair]],
) -> list[Pair]:
    """The anchors, and between them what ``align`` makes of each stretch."""
    pairs: list[Pair] = []
    row = column = 0
    for anchor_row, anchor_column in anchors:
        pairs += _moved(align(before[row:anchor_row], after[column:anchor_column]), row, column)
        pairs.append((anchor_row, anchor_column))
        row, column = anchor_row + 1, anchor_column + 1
    return pairs + _moved(align(before[row:], after[column:]), row, column)


def _moved(pairs: list[Pair], rows: int, columns: int) -> list[Pair]:
    """Pairs of a stretch as pairs of the whole."""
    return [
        (None if row is None else row + rows, None if column is None else column + columns) for row, column in pairs
    ]


def _by_position(before: Sequence[T], after: Sequence[T]) -> list[Pair]:
    """The first with the first and so on; what one side has more was removed or added at the end."""
    common = min(len(before), len(after))
    pairs: list[Pair] = [(index, index) for index in range(common)]
    pairs += [(row, None) for row in range(common, len(before))]
    pairs += [(None, column) for column in range(common, len(after))]
    return pairs


def _widths(values: Sequence[Value]) -> int:
    """How many members and elements these values have together."""
    return sum([len(value) for value in values if type(value) is dict or type(value) is list])


def _similar(before: Sequence[Value], after: Sequence[Value]) -> list[tuple[int, int]]:
    """Pairs of elements with a trait in common that no third one has, as many as keep the order.

    If elements were only added or only removed, no pair is wrong: each element that stayed still has all its traits, so
    a trait that another element has as well is on three elements and pairs none.
    """
    owners: dict[Any, int] = {}
    for row, value in enumerate(before):
        for trait in _traits(value):
            owners[trait] = row if owners.get(trait, row) == row else _SEVERAL
    claims = []
    for column, value in enumerate(after):
        rows = {owners.get(trait, _SEVERAL) for trait in _traits(value)} - {_SEVERAL}
        if len(rows) == 1:
            claims.append((rows.pop(), column))
    claimed = Counter([row for row, _ in claims])
    return _longest_rise(sorted([(row, column) for row, column in claims if claimed[row] == 1]))


def _traits(value: Value) -> list[Any]:
    """What a container may have in common with another: those in it, and its simple members by name and value."""
    kind = type(value)
    if kind is dict:
        return [id(value)] + [
            id(child) if type(child) is dict or type(child) is list else (name, child) for name, child in value.items()
        ]
    if kind is list:
        return [id(value)] + [id(child) for child in value if type(child) is dict or type(child) is list]
    return []


def _unique(rows: Sequence[int], columns: Sequence[int]) -> list[tuple[int, int]]:
    """Pairs of equal elements that each side has only once, as many as keep the order."""
    before, after = Counter(rows), Counter(columns)
    place = {number: column for column, number in enumerate(columns)}
    return _longest_rise(
        [(row, place[number]) for row, number in enumerate(rows) if before[number] == 1 and after[number] == 1]
    )


def _longest_rise(pairs: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Of pairs whose first members rise, the longest run whose second members rise too; for n pairs in n log n."""
    ends: list[int] = []  # ends[k] is the smallest second member that a run of k + 1 pairs ends with,
    last: list[int] = []  # and last[k] the index of that pair.
    previous: list[int] = []
    for index, (_, column) in enumerate(pairs):
        length = bisect_left(ends, column)
        previous.append(last[length - 1] if length else -1)
        if length == len(ends):
            ends.append(column)
            last.append(index)
        else:
            ends[length], last[length] = column, index
    run: list[tuple[int, int]] = []
    index = last[-1] if last else -1
    while index >= 0:
        run.append(pairs[index])
        index = previous[index]
    run.reverse()
    return run
