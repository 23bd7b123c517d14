"""An operator tree as one text of Spark SQL, with a common table expression for each operator.

WITH step_1 AS (SELECT o_id AS c1 FROM orders), step_2 AS (SELECT c1 FROM step_1 WHERE (c1 > 3L)) SELECT c1 FROM step_2
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from viewkeeper.sql.catalyst.expressions import order_text
from viewkeeper.sql.catalyst.type_text import quoted
from viewkeeper.sql.tree import (
    Aggregate,
    AtMostOne,
    Filter,
    Generate,
    Join,
    Limit,
    Operator,
    Project,
    Recompute,
    Repeat,
    Scan,
    Union,
    Window,
    in_order,
    inputs,
)

TWO_ROWS = "a subquery that is used as a value returned more than one row"


def to_sql(root: Operator, names: Mapping[Operator, str]) -> str:
    """The query that computes `root`, its columns under the names of the tree.

    `names` has tables that are read instead of operators: the table of a Scan has the relation's own columns, any other
    one the columns of the operator under the tree's names. Any other Scan is read by the name of its relation.
    """
    prefix = _unused("step_", names.values())
    steps: dict[Operator, str] = {}
    texts: list[str] = []
    for operator in _reached(root, names):
        sources = [steps[one] for one in _read(operator, names)]
        text = (
            _instead(operator, names[operator]) if operator in names else _RENDERED[type(operator)](operator, sources)
        )
        steps[operator] = f"{prefix}{len(steps) + 1}"
        texts.append(f"{steps[operator]} AS (\n  {text}\n)")
    return f"WITH {', '.join(texts)}\nSELECT {_listed(root)} FROM {steps[root]}"


def table_columns(operator: Operator) -> list[str]:
    """What the columns of a table are called that is read instead of an operator."""
    return list(operator.fields) if isinstance(operator, Scan) else [one.name for one in operator.columns]


def _reached(root: Operator, names: Mapping[Operator, str]) -> Iterable[Operator]:
    """The operators that are computed or read, each after those that it reads."""
    if not names:
        yield from in_order(root)
        return
    seen: set[Operator] = set()

    def visit(one: Operator) -> Iterable[Operator]:
        if one not in seen:
            seen.add(one)
            for below in _read(one, names):
                yield from visit(below)
            yield one

    yield from visit(root)


def _read(operator: Operator, names: Mapping[Operator, str]) -> tuple[Operator, ...]:
    return () if operator in names else inputs(operator)


def _unused(prefix: str, names: Iterable[str]) -> str:
    """A beginning that no table has: a common table expression would hide it."""
    taken = [name.casefold() for name in names]
    while any(name.startswith(prefix) for name in taken):
        prefix = f"_{prefix}"
    return prefix


def _listed(operator: Operator) -> str:
    return ", ".join(column.name for column in operator.columns)


def _instead(operator: Operator, table: str) -> str:
    if isinstance(operator, Scan):
        return _scan(operator, [], quoted(table))
    return f"SELECT {_listed(operator)} FROM {quoted(table)}"


def _scan(scan: Scan, sources: list[str], table: str = "") -> str:
    read = (f"{quoted(field)} AS {column.name}" for field, column in zip(scan.fields, scan.columns, strict=True))
    name = table or ".".join(map(quoted, scan.relation.split(".")))
    return f"SELECT {', '.join(read)} FROM {name}"


def _project(project: Project, sources: list[str]) -> str:
    computed = ", ".join(_computed(one.sql, one.column.name) for one in project.expressions)
    return f"SELECT {computed} FROM {sources[0]}"


def _computed(sql: str, name: str) -> str:
    return name if sql == name else f"{sql} AS {name}"


def _filter(operator: Filter, sources: list[str]) -> str:
    return f"SELECT {_listed(operator)} FROM {sources[0]} WHERE {operator.condition}"


def _generate(generate: Generate, sources: list[str]) -> str:
    outer = "OUTER " if generate.outer else ""
    made = ", ".join(column.name for column in generate.made)
    return f"SELECT {_listed(generate)} FROM {sources[0]} LATERAL VIEW {outer}{generate.generator} made AS {made}"


def _repeat(repeat: Repeat, sources: list[str]) -> str:
    times = f"explode(array_repeat(1, CAST({repeat.times} AS INT)))"
    return f"SELECT {_listed(repeat)} FROM {sources[0]} LATERAL VIEW {times} repeated AS _time"


def _union(union: Union, sources: list[str]) -> str:
    names = [column.name for column in union.columns]
    branches = []
    for branch, source in zip(union.inputs, sources, strict=True):
        pairs = zip(branch.columns, names, strict=True)
        branches.append(f"SELECT {', '.join(_computed(column.name, name) for column, name in pairs)} FROM {source}")
    return " UNION ALL ".join(branches)


_JOINS = {
    "inner": "INNER JOIN",
    "left": "LEFT OUTER JOIN",
    "full": "FULL OUTER JOIN",
    "semi": "LEFT SEMI JOIN",
    "anti": "LEFT ANTI JOIN",
}


def join_text(join: Join) -> str:
    """What must be true for two rows to match."""
    parts = []
    for (left, right), safe in zip(join.keys, join.null_safe, strict=True):
        equal = f"({left} {'<=>' if safe else '='} {right})"
        parts.append(f"({equal} OR ({equal} IS NULL))" if join.null_aware else equal)
    if join.condition is not None:
        parts.append(join.condition)
    return " AND ".join(parts) or "true"


def _join(join: Join, sources: list[str]) -> str:
    left, right = sources
    if join.kind == "single":
        return _single(join, left, right)
    return f"SELECT {_listed(join)} FROM {left} {_JOINS[join.kind]} {right} ON {join_text(join)}"


def _single(join: Join, left: str, right: str) -> str:
    """A subquery with a value, of all columns at once: Spark itself refuses a second match."""
    fields = ", ".join(f"'{column.name}', {column.name}" for column in join.right.columns)
    value = f"(SELECT named_struct({fields}) FROM {right} WHERE {join_text(join)})"
    passed = _listed(join.left)
    found = ", ".join(f"_match.{column.name} AS {column.name}" for column in join.right.columns)
    return f"SELECT {passed}, {found} FROM (SELECT {passed}, {value} AS _match FROM {left})"


def _aggregate(aggregate: Aggregate, sources: list[str]) -> str:
    computed = [one for one in aggregate.keys if one.sql != one.column.name]
    source = sources[0]
    if computed:
        source = f"(SELECT *, {', '.join(f'{one.sql} AS {one.column.name}' for one in computed)} FROM {source})"
    keys = [one.column.name for one in aggregate.keys]
    calls = [f"{one.sql} AS {one.column.name}" for one in aggregate.calls]
    grouped = f" GROUP BY {', '.join(keys)}" if keys else ""
    return f"SELECT {', '.join([*keys, *calls])} FROM {source}{grouped}"


def _window(window: Window, sources: list[str]) -> str:
    functions = (f"{one.sql} AS {one.column.name}" for one in window.functions)
    return f"SELECT {', '.join([_listed(window.input), *functions])} FROM {sources[0]}"


def _limit(limit: Limit, sources: list[str]) -> str:
    order = [*map(order_text, limit.order)]
    order += [column.name for column in limit.columns if not _without_order(column.type)]
    count = f" LIMIT {limit.count}" if limit.count is not None else ""
    offset = f" OFFSET {limit.offset}" if limit.offset else ""
    ordered = f" ORDER BY {', '.join(order)}" if order else ""
    return f"SELECT {_listed(limit)} FROM {sources[0]}{ordered}{count}{offset}"


def _without_order(data_type: str) -> bool:
    return any(word in data_type for word in ("map<", "variant")) or data_type == "interval"


def _at_most_one(operator: AtMostOne, sources: list[str]) -> str:
    counted = f"SELECT {_listed(operator)}, count(1) OVER () AS _rows FROM {sources[0]}"
    checked = f"CASE WHEN _rows > 1 THEN CAST(raise_error('{TWO_ROWS}') AS BOOLEAN) ELSE true END"
    return f"SELECT {_listed(operator)} FROM ({counted}) WHERE {checked}"


def _recompute(recompute: Recompute, sources: list[str]) -> str:
    relations = []
    for scan, name, source in zip(recompute.inputs, recompute.names, sources, strict=True):
        pairs = zip(scan.columns, scan.fields, strict=True)
        fields = ", ".join(f"{column.name} AS {quoted(field)}" for column, field in pairs)
        relations.append(f"{name} AS (SELECT {fields} FROM {source})")
    # The text may end with a comment.
    query = f"(\n{recompute.sql}\n)"
    if relations:
        query = f"(WITH {', '.join(relations)} {query})"
    return f"SELECT {_listed(recompute)} FROM {query} AS computed({_listed(recompute)})"


_RENDERED: dict[type, Callable[[Any, list[str]], str]] = {
    Scan: _scan,
    Project: _project,
    Filter: _filter,
    Generate: _generate,
    Repeat: _repeat,
    Union: _union,
    Join: _join,
    Aggregate: _aggregate,
    Window: _window,
    Limit: _limit,
    AtMostOne: _at_most_one,
    Recompute: _recompute,
}
