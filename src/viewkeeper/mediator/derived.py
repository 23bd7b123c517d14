"""Views over views: maintained from the changes of the views that they read, in the same states.

    state s of the group   =   a transaction of the views, with their changes in s as its rows

So a view over views is maintained as any other, by batched-sweep, over a source that answers at once: the views of its
own group as they stand. Every state of the group gives it a state, and both are committed together.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from graphlib import TopologicalSorter
from typing import Any, Protocol

from viewkeeper.algorithms.driver import Driver, Ticket
from viewkeeper.algorithms.registry import Transactions, prepare
from viewkeeper.algorithms.update_queue import MakeZSet
from viewkeeper.mediator.alignment import GroupChange
from viewkeeper.messages import Change, Query, Transaction, ViewDelta, position
from viewkeeper.sources.multi_relation import BATCH
from viewkeeper.sql.view import View

ALGORITHM = "batched-sweep"


class Follower(Protocol):
    """A view that is computed from the changes of other views of its group."""

    @property
    def name(self) -> str: ...

    @property
    def reads(self) -> Collection[str]:
        """The views that it follows."""
        ...

    @property
    def algorithm(self) -> str:
        """What maintains it."""
        ...

    @property
    def definition(self) -> View | None:
        """Its select-project-join form; None if it has none."""
        ...

    def follow(self, changes: Sequence[GroupChange]) -> list[GroupChange]:
        """New states of the group, with the changes of this view added to them."""
        ...


def in_topological_order(followers: Sequence[Follower]) -> dict[str, Follower]:
    """Views by their names, each after those that it reads."""
    named = {one.name: one for one in followers}
    reads = {name: [read for read in one.reads if read in named] for name, one in named.items()}
    return {name: named[name] for name in TopologicalSorter(reads).static_order()}


class DerivedView:
    """One view over views of its group. `read` gives a view as it is at the last commit."""

    def __init__(self, view: View, *, make_zset: MakeZSet, read: Callable[[str], Any]) -> None:
        self.view = view
        self._read = read
        self._make_zset = make_zset
        self._states = 0
        self._questions: list[tuple[Ticket, Query]] = []
        self._installed: list[ViewDelta] = []
        _, queue, process = prepare(ALGORITHM, view, Transactions.LOCAL, options={"batch": BATCH}, make_zset=make_zset)
        self._driver = Driver(
            process,
            queue,
            send=lambda ticket, query: self._questions.append((ticket, query)),
            install=self._installed.extend,
            read_view=lambda: None,
        )

    @property
    def name(self) -> str:
        return self.view.name

    @property
    def algorithm(self) -> str:
        return ALGORITHM

    @property
    def definition(self) -> View | None:
        return self.view

    @property
    def reads(self) -> Collection[str]:
        return self.view.relations

    def follow(self, changes: Sequence[GroupChange]) -> list[GroupChange]:
        first, self._states = self._states + 1, self._states + len(changes)
        self._driver.deliver(
            *(
                Transaction(self._source, position(number), self._rows(change))
                for number, change in enumerate(changes, start=first)
            )
        )
        while self._questions:
            ticket, query = self._questions.pop(0)
            self._driver.answer(ticket, self._answer(query, changes))
        deltas, self._installed[:] = list(self._installed), []
        return [
            change
            if delta.delta.is_empty()
            else replace(change, deltas={**change.deltas, self.view.name: (delta.delta,)})
            for change, delta in zip(changes, deltas, strict=True)
        ]

    @property
    def _source(self) -> str:
        return self.view.sources[0]

    def _rows(self, change: GroupChange) -> tuple[Change, ...]:
        return tuple(
            Change(name, row, weight)
            for name, relation in self.view.relations.items()
            for delta in change.deltas.get(name, ())
            for row, weight in delta.keep(relation.columns).weights()
        )

    def _answer(self, query: Query, changes: Sequence[GroupChange]) -> Any:
        """Over the views after all states that have been delivered: those of the last commit, and what is new."""
        if query.size() == 0:
            return query.over([self._make_zset(fetch.columns, []) for fetch in query.fetches()])
        contents = {}
        for operand in (operand for fetch in query.fetches() for operand in fetch.operands):
            name, columns = operand.relation.name, operand.relation.columns
            new = (delta.keep(columns) for change in changes for delta in change.deltas.get(name, ()))
            added = self._make_zset(columns, (entry for delta in new for entry in delta.weights()))
            contents[name] = self._read(name).keep(columns) + added
        return query.evaluate(contents)
