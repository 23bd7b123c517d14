"""What every history must satisfy before it can be judged.

    relations     the columns have names and types, the key is among them, rows fit and have counts of at least 1
    deliveries    a source changes its own relations, its positions increase, no row is deleted that is not there
    states        there is an initial one, and rows fit the view (their counts may be anything: that is to be judged)

A violation of these is a broken file (HistoryError); a violation of a level is a finding.
"""

from collections.abc import Iterable, Mapping, Sequence

from viewkeeper.algebra.memory import MemoryZSet
from viewkeeper.algebra.zset import Row
from viewkeeper.checker.values import encode_row
from viewkeeper.errors import HistoryError
from viewkeeper.messages import Change, Transaction
from viewkeeper.sql.relation import Catalog, Relation
from viewkeeper.sql.view import View


def check_relation(name: str, relation: Relation, rows: MemoryZSet) -> None:
    """Names, columns, types, key and initial rows of one relation."""
    place = f'relations["{name}"]'
    if relation.name != name:
        raise HistoryError(f"{place}: expected the relation {name}, found {relation.name}")
    if not relation.columns or len(set(relation.columns)) != len(relation.columns):
        raise HistoryError(f"{place}.columns: expected one or more different names, found {list(relation.columns)}")
    if len(relation.types) != len(relation.columns):
        raise HistoryError(
            f"{place}.types: {name} has {len(relation.columns)} columns, found {len(relation.types)} types"
        )
    for column in relation.key or ():
        if column not in relation.columns:
            raise HistoryError(f"{place}.key: expected columns of {name}, found {column}")
    _check_rows(f"{place}.rows", rows, len(relation.columns), name)
    for row, count in rows.weights():
        if count < 1:
            raise HistoryError(f"{place}.rows: expected {encode_row(row)} at least once, found {count} times")


def check_deliveries(catalog: Catalog, rows: Mapping[str, MemoryZSet], deliveries: Iterable[Transaction]) -> None:
    """The order of positions, who changes what, and that counts stay above zero."""
    sources = {relation.source for relation in catalog.values()}
    counts = {name: dict(initial.weights()) for name, initial in rows.items()}
    latest: dict[str, str] = {}
    for index, transaction in enumerate(deliveries):
        place, source = f"deliveries[{index}]", transaction.source
        if source not in sources:
            raise HistoryError(
                f'{place}.source: {source} has no relation in "relations"',
                f"the sources are {', '.join(sorted(sources))}",
            )
        _check_position(place, transaction, latest.get(source))
        latest[source] = transaction.position
        for number, change in enumerate(transaction.changes):
            _apply(f"{place}.changes[{number}]", source, change, catalog, counts)


def check_states(view: View, states: Sequence[MemoryZSet]) -> None:
    """At least the initial state, and rows of the view."""
    if not states:
        raise HistoryError("states: expected at least the initial state, found none")
    for index, rows in enumerate(states):
        _check_rows(f"states[{index}].rows", rows, len(view.columns), "the view")


def _check_position(place: str, transaction: Transaction, latest: str | None) -> None:
    source, position = transaction.source, transaction.position
    if position == latest:
        raise HistoryError(f"{place}.position: {source} already has a transaction at {position}")
    if latest is not None and position < latest:
        raise HistoryError(
            f"{place}.position: expected a position of {source} after {latest}, found {position}",
            "the transactions of a source stand in commit order, and positions sort as text: pad them with zeros",
        )


def _apply(place: str, source: str, change: Change, catalog: Catalog, counts: dict[str, dict[Row, int]]) -> None:
    relation = catalog.get(change.relation)
    if relation is None:
        raise HistoryError(f'{place}: relation {change.relation} is not in "relations"', f"it has {', '.join(catalog)}")
    if relation.source != source:
        raise HistoryError(
            f"{place}: {relation.name} is a relation of {relation.source}, and {source} cannot change it"
        )
    if len(change.row) != len(relation.columns):
        raise HistoryError(
            f"{place}: a row of {relation.name} has {len(relation.columns)} values, found {len(change.row)}"
        )
    if not change.count:
        raise HistoryError(f"{place}: expected a count other than 0")
    held = counts[relation.name]
    left = held[change.row] = held.get(change.row, 0) + change.count
    if left < 0:
        raise HistoryError(
            f"{place}: {encode_row(change.row)} is deleted from {relation.name} {-change.count} times, "
            f"and was there {left - change.count} times"
        )


def _check_rows(place: str, rows: MemoryZSet, arity: int, of: str) -> None:
    for index, (row, _) in enumerate(rows.weights()):
        if len(row) != arity:
            raise HistoryError(f"{place}[{index}]: a row of {of} has {arity} values, found {len(row)}")
