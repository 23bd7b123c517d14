"""The history of a run: what the sources did, and what the view showed.

    {"view": "SELECT ...",
     "relations": {"s1.r1": {"source": "s1", "columns": ["k", "a"], "types": ["BIGINT", "STRING"], "key": ["k"],
                             "rows": [[[1, "x"], 1]]}},
     "deliveries": [{"source": "s1", "position": "00000000000000000001", "global_id": null,
                     "changes": [["s1.r1", [2, "y"], 1], ["s1.r1", [1, "x"], -1]]}],
     "states": [{"rows": [[[1, "x"], 1]], "vector": {"s1": "00000000000000000000"}}]}

Rows come with their counts. `rows` of a relation are those before the first delivery; `deliveries` stand in the order
in which they reached the warehouse, each source's own in commit order; the first of `states` is the initial one, and a
state with negative counts is a wrong result, not a wrong file. A vector is what the run claims: the last transaction of
each source that the state reflects, where a missing source, or a position before the first one delivered, means none.
Without vectors a history can still be judged blindly.

Optional: `types` (else inferred from the values), `key`, `global_id` with `participants` (the sources of a global
transaction), `global_parts` instead where a delivery has parts of several, `merged` (it may be several transactions),
`vector`, `meta` (anything). Other keys are ignored. How values look in JSON is in `values.py`. Any system can write
this, so a history is checked when it is made (`validation.py`), and an error names the place.
"""

import json
import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import InitVar, dataclass, field, replace
from pathlib import Path
from typing import Any

from viewkeeper.algebra.memory import MemoryZSet
from viewkeeper.algebra.zset import Row
from viewkeeper.checker.json_input import Node
from viewkeeper.checker.validation import check_deliveries, check_relation, check_states
from viewkeeper.checker.values import decode_row, encode_row, infer_type, known_type
from viewkeeper.errors import HistoryError, ViewkeeperError
from viewkeeper.messages import Change, GlobalPart, Transaction, Vector
from viewkeeper.sql.parse import parse_view
from viewkeeper.sql.relation import Relation
from viewkeeper.sql.view import View


@dataclass(frozen=True)
class HistoryRelation:
    """A base relation and its rows before the first delivery."""

    relation: Relation
    rows: MemoryZSet


@dataclass(frozen=True)
class State:
    """One content of the view, and the vector that the run claims for it."""

    rows: MemoryZSet
    vector: Vector | None = None


@dataclass(frozen=True)
class History:
    """A run to be judged. `definition` is its parsed view; who has it already can hand it over as `parsed`."""

    view: str
    relations: Mapping[str, HistoryRelation]
    deliveries: tuple[Transaction, ...]
    states: tuple[State, ...]
    meta: Mapping[str, Any] = field(default_factory=dict)
    definition: View = field(init=False, compare=False, repr=False)
    parsed: InitVar[View | None] = None

    def __post_init__(self, parsed: View | None) -> None:
        for name, held in self.relations.items():
            check_relation(name, held.relation, held.rows)
        catalog = {name: held.relation for name, held in self.relations.items()}
        object.__setattr__(self, "definition", parsed or parse_view(self.view, catalog))
        check_deliveries(catalog, {name: held.rows for name, held in self.relations.items()}, self.deliveries)
        check_states(self.definition, [state.rows for state in self.states])

    @classmethod
    def of(
        cls,
        view: View,
        rows: Mapping[str, MemoryZSet],
        deliveries: Iterable[Transaction],
        states: Iterable[State],
        meta: Mapping[str, Any] | None = None,
    ) -> "History":
        """The history of a run in this process: a parsed view and the initial rows of its relations.

        What transactions did to other relations is left out; they themselves stay, for each has its source state.
        """
        relations = {
            name: HistoryRelation(relation, rows[name] if name in rows else MemoryZSet(relation.columns))
            for name, relation in view.relations.items()
        }
        seen = tuple(
            replace(one, changes=tuple(change for change in one.changes if change.relation in relations))
            for one in deliveries
        )
        return cls(view.sql, relations, seen, tuple(states), meta or {}, parsed=view)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "History":
        """From a file."""
        try:
            return cls.from_json(_parse(Path(path).read_text(encoding="utf-8-sig")))
        except OSError as error:
            raise HistoryError(f"cannot read {path}: {error.strerror}") from error
        except UnicodeDecodeError as error:
            raise HistoryError(f"{path} is not UTF-8 text", "a history is JSON in UTF-8") from error
        except HistoryError as error:
            raise HistoryError(f"{path}: {error.detail}", error.hint) from error
        except ViewkeeperError as error:
            raise HistoryError(f"{path}: view: {error.detail}", error.hint) from error

    @classmethod
    def from_json(cls, value: object) -> "History":
        """From what a JSON parser gives."""
        top = Node(value)
        view = top.member("view").text()
        relations = _read_relations(top)
        catalog = {name: held.relation for name, held in relations.items()}
        deliveries = tuple(_read_delivery(node, catalog) for node in top.member("deliveries").elements())
        parsed = parse_view(view, catalog)
        sources = {relation.source for relation in catalog.values()}
        states = tuple(_read_state(node, parsed, sources) for node in top.member("states").elements())
        meta = top.optional("meta")
        return cls(view, relations, deliveries, states, meta.members() if meta else {}, parsed=parsed)

    def to_json(self) -> dict[str, Any]:
        """The same history as plain JSON values; nothing is sorted."""
        members: dict[str, Any] = {
            "view": self.view,
            "relations": {name: _relation_json(held) for name, held in self.relations.items()},
            "deliveries": [_delivery_json(transaction) for transaction in self.deliveries],
            "states": [_state_json(state) for state in self.states],
        }
        return members | ({"meta": dict(self.meta)} if self.meta else {})

    def save(self, path: str | os.PathLike[str]) -> None:
        """Into a file, a line for each relation, delivery and state."""
        try:
            Path(path).write_text(_pretty(self.to_json()), encoding="utf-8")
        except OSError as error:
            raise HistoryError(f"cannot write {path}: {error.strerror}", "choose a folder that is there") from error


def _parse(text: str) -> Any:
    def refuse(constant: str) -> None:
        raise ValueError(f"{constant} is not a JSON value")

    try:
        return json.loads(text, parse_constant=refuse)
    except (ValueError, RecursionError) as error:
        raise HistoryError(f"not JSON: {error}") from error


# --- reading ---


def _read_relations(top: Node) -> dict[str, HistoryRelation]:
    changes = [
        change for delivery in top.member("deliveries").elements() for change in delivery.member("changes").elements()
    ]
    written: dict[str, list[Node]] = {}
    for name, row, _ in (change.parts("relation", "row", "count") for change in changes):
        written.setdefault(name.text(), []).append(row)
    return {name: _read_relation(name, node, written.get(name, [])) for name, node in top.member("relations").items()}


def _read_relation(name: str, node: Node, written: list[Node]) -> HistoryRelation:
    columns = node.member("columns").texts()
    rows = node.member("rows")
    types = node.optional("types")
    if types is not None:
        declared = tuple(known_type(type) for type in types.elements())
        if len(declared) != len(columns):
            raise types.problem(f"{name} has {len(columns)} columns, found {len(declared)} types")
    else:
        initial = [row.parts("row", "count")[0] for row in rows.elements()]
        declared = tuple(_inferred(node, column, index, initial + written) for index, column in enumerate(columns))
    key = node.optional("key")
    relation = Relation(name, node.member("source").text(), columns, declared, key.texts() if key else None)
    weights = [(row, count.whole_number(least=1)) for row, count in _read_rows(rows, declared, name)]
    held = HistoryRelation(relation, MemoryZSet(columns, weights))
    check_relation(name, relation, held.rows)
    return held


def _inferred(node: Node, column: str, index: int, rows: list[Node]) -> str:
    lists = (row.elements() for row in rows)
    type = infer_type(values[index].value for values in lists if index < len(values))
    if type is None:
        raise node.problem(f'the values of column "{column}" are not of one type', 'declare it in "types"')
    return type


def _read_rows(node: Node, types: tuple[str, ...], of: str) -> list[tuple[Row, Node]]:
    """Rows with the places of their counts, which are not 0."""
    rows = []
    for element in node.elements():
        row, count = element.parts("row", "count")
        rows.append((decode_row(row, types, of), count))
        if count.whole_number() == 0:
            raise count.error("a count other than 0")
    return rows


def _read_delivery(node: Node, catalog: Mapping[str, Relation]) -> Transaction:
    merged = node.optional("merged")
    return Transaction(
        node.member("source").text(),
        node.member("position").text(),
        tuple(_read_change(change, catalog) for change in node.member("changes").elements()),
        tuple(_read_parts(node)),
        bool(merged and merged.value),
    )


def _read_parts(node: Node) -> Iterator[GlobalPart]:
    """One as members of the delivery, several as a list."""
    several = node.optional("global_parts")
    for part in several.elements() if several else ():
        participants, count = part.optional("participants"), part.optional("count")
        yield GlobalPart(
            part.member("id").text(),
            participants.texts() if participants else (),
            count.whole_number(least=1) if count else 1,
        )
    global_id, participants = node.optional("global_id"), node.optional("participants")
    sources = participants.texts() if participants else ()
    if global_id is not None:
        yield GlobalPart(global_id.text(), sources)


def _read_change(node: Node, catalog: Mapping[str, Relation]) -> Change:
    name, row, count = node.parts("relation", "row", "count")
    relation = catalog.get(name.text())
    if relation is None:
        raise node.problem(f'relation {name.text()} is not in "relations"', f"it has {', '.join(catalog) or 'none'}")
    return Change(relation.name, decode_row(row, relation.types, relation.name), count.whole_number())


def _read_state(node: Node, view: View, sources: Collection[str]) -> State:
    types = tuple(column.expression.type for column in view.output)
    vector = node.optional("vector")
    for source, position in vector.items() if vector else ():
        if source not in sources:
            raise position.problem(f"{source} is none of the sources", f"they are {', '.join(sorted(sources))}")
    weights = [(row, count.whole_number()) for row, count in _read_rows(node.member("rows"), types, "the view")]
    return State(
        MemoryZSet(view.columns, weights),
        {source: position.text() for source, position in vector.items()} if vector else None,
    )


# --- writing ---


def _relation_json(held: HistoryRelation) -> dict[str, Any]:
    relation = held.relation
    return {
        "source": relation.source,
        "columns": list(relation.columns),
        "types": list(relation.types),
        "key": None if relation.key is None else list(relation.key),
        "rows": rows_json(held.rows.weights()),
    }


def _delivery_json(transaction: Transaction) -> dict[str, Any]:
    alone = transaction.parts[0] if len(transaction.parts) == 1 and transaction.parts[0].count == 1 else None
    members: dict[str, Any] = {
        "source": transaction.source,
        "position": transaction.position,
        "global_id": alone.id if alone else None,
        "changes": [[change.relation, encode_row(change.row), change.count] for change in transaction.changes],
    }
    if alone is not None and alone.participants:
        members["participants"] = list(alone.participants)
    elif transaction.parts and alone is None:
        members["global_parts"] = [
            {"id": part.id, "participants": list(part.participants), "count": part.count} for part in transaction.parts
        ]
    return members | ({"merged": True} if transaction.merged else {})


def _state_json(state: State) -> dict[str, Any]:
    return {"rows": rows_json(state.rows.weights()), "vector": None if state.vector is None else dict(state.vector)}


def rows_json(weights: Iterable[tuple[Row, int]]) -> list[Any]:
    """Rows with their counts, as a history has them."""
    return [[encode_row(row), count] for row, count in weights]


def _pretty(members: dict[str, Any]) -> str:
    def line(value: Any) -> str:
        return json.dumps(value, ensure_ascii=False, allow_nan=False)

    def block(value: Any) -> str:
        match value:
            case dict() if value:
                return "{\n" + ",\n".join(f"  {line(key)}: {line(inner)}" for key, inner in value.items()) + "\n }"
            case list() if value:
                return "[\n" + ",\n".join(f"  {line(inner)}" for inner in value) + "\n ]"
        return line(value)

    return "{\n" + ",\n".join(f" {line(key)}: {block(value)}" for key, value in members.items()) + "\n}\n"
