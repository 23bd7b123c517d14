"""The SQL of the lattice: of summary-deltas, of whole tables, of the changes that dimensions make.

    sd_v  =  γ ( sd_p ⋈ D_old )                                   an edge without a dimension that changed
    sd_v  =  γ ( sd_p ⋈ D_old  ⊎  p_new ⋈ ΔD )                    with one; telescoped if there are several:
             sd_p ⋈ D1_old ⋈ D2_old  ⊎  p_new ⋈ ΔD1 ⋈ D2_old  ⊎  p_new ⋈ D1_new ⋈ ΔD2

What `explain` shows is what Spark runs, under other names of tables. All summary-deltas are one statement.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from sqlglot import exp

from viewkeeper.sql.evaluation import flat_name
from viewkeeper.sql.expressions import Expression, qualified
from viewkeeper.sql.syntax import spark_sql
from viewkeeper.sql.type_families import MAX_PRECISION, Family, type_named
from viewkeeper.summary.derivation import ABOVE, ALSO, Derivation
from viewkeeper.summary.measures import Measure
from viewkeeper.summary.node import Node, rest_column
from viewkeeper.summary.roots import preaggregation
from viewkeeper.summary.spread import spread_table

WEIGHT = "_vk_weight"
LOST = "lost"
"""how many rows find none in a dimension"""


@dataclass(frozen=True)
class Names:
    """The tables of a statement. Each dimension by its path: as it was and, if it changed, as it is and its change."""

    deltas: Mapping[str, str]
    """the summary-delta of each node, and the changes of the fact"""
    now: Mapping[str, str] = field(default_factory=dict)
    """each node as it will be, and the fact as it is: needed above joins with dimensions that changed"""
    stored: Mapping[str, str] = field(default_factory=dict)
    """each such node as it is stored"""
    old: Mapping[str, str] = field(default_factory=dict)
    new: Mapping[str, str] = field(default_factory=dict)
    changed: Mapping[str, str] = field(default_factory=dict)
    preaggregated: frozenset[str] = frozenset()
    """nodes for which the changes are added up by the foreign keys before dimensions are joined (figure 7)"""


def summary_delta(edge: Derivation, names: Names) -> str:
    """The statement of one summary-delta."""
    paths = [dimension.path for dimension in edge.joins]
    above, joined = names.deltas[edge.above.name], edge
    if edge.below.name in names.preaggregated:
        first, joined = preaggregation(edge)
        above = f"(\n{indented(_term(first, above, []))}\n)"
    terms = [_term(joined, above, [(names.old[dimension.path], False) for dimension in joined.joins])]
    for place, path in enumerate(paths):
        if path in names.changed:
            dimensions = [
                *((names.new.get(earlier, names.old[earlier]), False) for earlier in paths[:place]),
                (names.changed[path], True),
                *((names.old[later], False) for later in paths[place + 1 :]),
            ]
            terms.append(_term(edge, names.now[edge.above.name], dimensions))
    return terms[0] if len(terms) == 1 else added_up(edge.below, "\nUNION ALL\n".join(terms))


def whole_table(edge: Derivation, above: str, dimensions: Mapping[str, str], beside: Sequence[str] = ()) -> str:
    """The statement of a whole table, from the whole of what is above it; `beside` are more aggregates of the same."""
    joined = [(dimensions[dimension.path], False) for dimension in edge.joins]
    # A table without groups has a row over no facts too: that is no group of another one, such as GROUP BY 'all'.
    some = (f"{ABOVE}.{quoted(edge.above.count)} > 0",) if edge.groups and not edge.above.groups else ()
    return _term(edge, above, joined, beside, some)


def added_up(node: Node, rows: str) -> str:
    """Rows of a node's columns, one for each group."""
    sums = [f"{_total(quoted(node.count))} AS {quoted(node.count)}"]
    sums += [f"{_sum(m, quoted(column))} AS {quoted(column)}" for m, column in node.measures.items()]
    groups = [quoted(column) for column in node.groups.values()]
    by = f"\nGROUP BY {', '.join(groups)}" if groups else ""
    return f"SELECT {', '.join([*groups, *sums])}\nFROM (\n{indented(rows)}\n){by}"


def rows_without(edge: Derivation, place: int, names: Names) -> str:
    """How many rows of the summary-delta above find none in a dimension that the edge joins."""
    text = f"SELECT COUNT(*) AS {LOST}\nFROM {names.deltas[edge.above.name]} AS {ABOVE}"
    for number, dimension in enumerate(edge.joins[: place + 1]):
        kind = "LEFT ANTI JOIN" if number == place else "JOIN"
        text += f"\n{kind} {names.old[dimension.path]} AS d{number} ON {_on(edge, number)}"
    return f"({text})"


def lattice_statement(
    edges: Sequence[Derivation], names: Names, beside: Sequence[tuple[str, Sequence[str]]] = ()
) -> str:
    """All summary-deltas in one statement: each row tells the number of its table. `beside` are more of the same."""
    parts = []
    for edge in edges:
        node = edge.below
        parts.append(f"{names.deltas[node.name]} AS (\n{indented(summary_delta(edge, names))}\n)")
        if node.name in names.stored:
            kept = [column for column in node.columns if not column.startswith(ALSO)]
            both = union_of([names.stored[node.name], names.deltas[node.name]], kept)
            parts.append(f"{names.now[node.name]} AS (\n{indented(both)}\n)")
    return (
        "WITH "
        + ",\n".join(parts)
        + "\n"
        + tagged([*((names.deltas[edge.below.name], edge.below.columns) for edge in edges), *beside])
    )


def union_of(tables: Sequence[str], columns: Sequence[str]) -> str:
    """The rows of several tables with these columns."""
    listed = ", ".join(map(quoted, columns))
    return "\nUNION ALL\n".join(f"SELECT {listed} FROM {table}" for table in tables)


def with_extremes(node: Node, linear: str, behind: Mapping[str, str], nodes: Mapping[str, Node]) -> str:
    """The statement of a whole table with MIN, MAX and COUNT(DISTINCT), from their nodes."""
    items = [f"t.{quoted(column)}" for column in node.columns]
    text = f"\nFROM {linear} AS t"
    for place, name in enumerate(dict.fromkeys(extreme.node for extreme in node.extremes)):
        other = nodes[name]
        keys = [other.groups[group] for group in node.groups]
        mine = [extreme for extreme in node.extremes if extreme.node == name and extreme.function != "spread"]
        values = [f"{aggregate(e.function, quoted(other.groups[e.value]))} AS {quoted(e.column)}" for e in mine]
        by = f" GROUP BY {', '.join(map(quoted, keys))}" if keys else ""
        grouped = f"SELECT {', '.join([*map(quoted, keys), *values])} FROM {behind[name]}{by}"
        if mine:
            text += f"\nJOIN ({grouped}) AS e{place} ON {_same(node, other, 't', f'e{place}')}"
            items += [f"e{place}.{quoted(extreme.column)}" for extreme in mine]
        of_values = {
            quoted(extreme.column): (quoted(other.groups[extreme.value]), quoted(other.count), extreme.value.type)
            for extreme in node.extremes
            if extreme.node == name and extreme.function == "spread"
        }
        if of_values:
            grouped = spread_table(behind[name], [quoted(key) for key in keys], of_values)
            text += f"\nJOIN ({grouped}) AS s{place} ON {_same(node, other, 't', f's{place}')}"
            items += [f"s{place}.{column}" for column in of_values]
    return f"SELECT {', '.join(items)}{text}"


def extremes_of_groups(node: Node, behind: Mapping[str, str], nodes: Mapping[str, Node], wanted: str) -> str:
    """The statement of MIN and MAX for some groups, from their whole nodes, given as statements."""
    tables = {
        name: "(\nSELECT x.* FROM (\n"
        + indented(behind[name])
        + f"\n) AS x LEFT SEMI JOIN {wanted} AS k ON {_same(node, nodes[name], 'k', 'x')}\n"
        + f"WHERE x.{quoted(nodes[name].count)} > 0\n)"
        for name in dict.fromkeys(extreme.node for extreme in node.extremes if extreme.recomputed)
    }
    mine = replace(node, extremes=tuple(extreme for extreme in node.extremes if extreme.recomputed), measures={})
    keys = ", ".join(f"{quoted(key)}" for key in node.keys)
    listed = f"(SELECT {keys}{', ' if keys else ''}1L AS {quoted(node.count)} FROM {wanted})"
    return with_extremes(mine, listed, tables, nodes)


def _same(node: Node, behind: Node, own: str, other: str) -> str:
    """The groups of a table, equal in a node that groups by more."""
    pairs = [(node.groups[group], behind.groups[group]) for group in node.groups]
    return " AND ".join(f"{own}.{quoted(a)} <=> {other}.{quoted(b)}" for a, b in pairs) or "TRUE"


def aggregate(function: str, value: str) -> str:
    """MIN, MAX, COUNT(DISTINCT) or Σ (e - mean)² as Spark has them, over rows that are there once."""
    if function == "spread":
        return f"VAR_POP({value}) * COUNT({value})"
    return f"COUNT(DISTINCT {value})" if function == "distinct" else f"{function.upper()}({value})"


def tagged(tables: Sequence[tuple[str, Sequence[str]]]) -> str:
    """The rows of several tables, given with their columns, as one: `node` has the number of the table."""
    selects = []
    for place, (table, _) in enumerate(tables):
        items = [f"{place} AS node"]
        for other, (_, columns) in enumerate(tables):
            items += [
                f"{quoted(column) if other == place else 'NULL'} AS {tagged_column(other, number)}"
                for number, column in enumerate(columns)
            ]
        selects.append(f"SELECT {', '.join(items)} FROM {table}")
    return "\nUNION ALL\n".join(selects)


def tagged_column(table: int, number: int) -> str:
    """A column of a table among the tagged ones."""
    return f"t{table}_{number}"


def _term(
    edge: Derivation,
    above: str,
    dimensions: Sequence[tuple[str, bool]],
    beside: Sequence[str] = (),
    conditions: Sequence[str] = (),
) -> str:
    """SELECT ... FROM above JOIN dimensions GROUP BY ...; a dimension that is a change has weights."""
    node = edge.below
    signs = [f"d{place}.{WEIGHT}" for place, (_, signed) in enumerate(dimensions) if signed]
    weight = " * ".join([f"{ABOVE}.{quoted(edge.above.count)}", *signs])
    items = [f"{sql_of(over)} AS {quoted(node.groups[group])}" for group, over in edge.groups.items()]
    items.append(f"{_total(weight)} AS {quoted(node.count)}")
    for measure, column in node.measures.items():
        if measure in edge.summed:
            value = f"{ABOVE}.{quoted(edge.summed[measure])}"
            summed = _sum(measure, times(value, sum_type(measure), " * ".join(signs)) if signs else value)
        elif measure.kind == "count":
            summed = _total(f"IF(({sql_of(edge.computed[measure])}) IS NULL, 0, {weight})")
        else:
            value = sql_of(edge.computed[measure])
            summed = _sum(measure, times(value, sum_type(measure), weight))
        items.append(f"{summed} AS {quoted(column)}")
    text = f"SELECT {', '.join([*items, *beside])}\nFROM {above} AS {ABOVE}"
    for place, (table, _) in enumerate(dimensions):
        text += f"\nJOIN {table} AS d{place} ON {_on(edge, place)}"
    if where := [*map(sql_of, edge.where), *conditions]:
        text += "\nWHERE " + " AND ".join(f"({condition})" for condition in where)
    if edge.groups:
        text += f"\nGROUP BY {', '.join(map(_grouped_by, edge.groups.values()))}"
    return text


def _on(edge: Derivation, place: int) -> str:
    """How a dimension is joined."""
    return " AND ".join(f"{sql_of(column)} = d{place}.{quoted(key)}" for column, key in edge.on[place])


def _grouped_by(group: Expression) -> str:
    # A number by itself would be the place of a column.
    return sql_of(group) if group.columns else f"CAST({sql_of(group)} AS {group.type})"


def sql_of(expression: Expression | str) -> str:
    """An expression, or a column by its flat name, with the columns as `alias.column`."""
    return spark_sql(qualified(expression) if isinstance(expression, str) else expression.node)


def spelled_out(expression: Expression, meaning: Mapping[str, str]) -> str:
    """An expression whose columns stand for something else, with the SQL of that in their places."""
    slots = {name: f"_vk_slot_{place}_" for place, name in enumerate(meaning)}
    text = spark_sql(
        expression.node.transform(
            lambda node: (
                exp.column(exp.to_identifier(slots[flat_name(node)], quoted=True))
                if isinstance(node, exp.Column)
                else node
            )
        )
    )
    for name, slot in slots.items():
        text = text.replace(quoted(slot), meaning[name])
    return text


def _sum(measure: Measure, value: str) -> str:
    return f"CAST(SUM({value}) AS {sum_type(measure)})" if measure.kind == "sum" else _total(value)


def _total(value: str) -> str:
    # Without groups there is a row even if there is nothing to add up.
    return f"CAST(COALESCE(SUM({value}), 0) AS BIGINT)"


def sum_type(measure: Measure) -> str:
    """The type that a measure is stored in: Spark's type of its sum."""
    if measure.kind == "count":
        return "BIGINT"
    known = type_named(measure.expression.type)
    if known.family is Family.DECIMAL:
        return f"DECIMAL({min(known.precision + 10, MAX_PRECISION)}, {known.scale})"
    return "BIGINT" if known.family is Family.INTEGER else "DOUBLE"


def stored_types(node: Node) -> dict[str, str]:
    """Spark's types of all columns of a node's table; empty where it is not known."""
    types = {column: group.type for group, column in node.groups.items()}
    types[node.count] = "BIGINT"
    for measure, column in node.measures.items():
        types[column] = sum_type(measure)
        if measure.floating:
            types[rest_column(column)] = "DOUBLE"
    for extreme in node.extremes:
        fixed = {"distinct": "BIGINT", "spread": "DOUBLE"}
        types[extreme.column] = fixed.get(extreme.function, extreme.value.type)
    return types


def times(value: str, type: str, weight: str) -> str:
    """value · weight, without losing a digit of a DECIMAL."""
    known = type_named(type)
    if known.family is not Family.DECIMAL:
        return f"CAST({value} AS {type}) * ({weight})"
    # Spark gives a product the digits of both, and drops some if they are more than 38. Most weights are 1 or -1.
    room = MAX_PRECISION - 1 - known.precision
    factor = f"CAST({weight} AS DECIMAL({room}, 0))" if room >= 1 else f"({weight})"
    value = f"CAST({value} AS {type})"
    return f"CASE ({weight}) WHEN 1 THEN {value} WHEN -1 THEN -{value} ELSE CAST({value} * {factor} AS {type}) END"


def quoted(name: str) -> str:
    """A name as Spark SQL takes it, whatever is in it."""
    return "`" + name.replace("`", "``") + "`"


def indented(text: str) -> str:
    """Two blanks further in."""
    return "\n".join(f"  {line}" for line in text.splitlines())
