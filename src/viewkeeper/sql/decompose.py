"""A view decomposed into one local view per source and an assembly view over them.

    V  =  assembly( V_x, V_y, ... )          V_x = the operands of V at source x, joined there

Multi-relation wrapper (Ding, Zhang, Rundensteiner 1999), section 3.3. What the view does not connect at a source
would be a cross product there: such operands fall into several local views, one per connected component. A local view
carries what the assembly needs and, if asked for, the keys of its relations: their union is its own key.
"""

from collections.abc import Collection
from dataclasses import dataclass

from sqlglot import exp

from viewkeeper.sql.expressions import Expression
from viewkeeper.sql.relation import Relation
from viewkeeper.sql.render import select_of, table_of
from viewkeeper.sql.syntax import ViewDialect
from viewkeeper.sql.view import Operand, OutputColumn, View


@dataclass(frozen=True)
class Decomposition:
    """The local views, per source, and the view over them that the mediator maintains."""

    assembly: View
    local_views: dict[str, tuple[View, ...]]


def decompose(view: View, *, keys: bool = False) -> Decomposition:
    """Split a view along its sources; `keys` carries the key of every relation into the assembly."""
    locals_of: dict[str, tuple[View, ...]] = {}
    operands: list[Operand] = []
    renamed: dict[str, str] = {}
    inside: set[Expression] = set()
    owner: dict[int, int] = {}
    for source in view.sources:
        made = []
        for number, component in enumerate(_components(view, source), start=1):
            taken = [operand.alias for operand in operands]
            name = _free(f"v_{source}" if number == 1 else f"v_{source}_{number}", taken)
            local, names = _local_view(view, name, component, keys)
            made.append(local)
            inside.update(local.conditions)
            renamed.update({column: f"{name}.{short}" for column, short in names.items()})
            owner.update({operand.index: len(operands) for operand in component})
            operands.append(Operand(len(operands), name, _as_relation(source, local, component, names, keys)))
        locals_of[source] = tuple(made)
    assembly = View(
        name=view.name,
        sql=view.sql,
        operands=tuple(operands),
        conditions=tuple(c.renamed(renamed) for c in view.conditions if c not in inside),
        output=tuple(OutputColumn(column.name, column.expression.renamed(renamed)) for column in view.output),
        crossings=tuple((owner[a], owner[b]) for a, b in view.crossings if owner[a] != owner[b]),
    )
    return Decomposition(assembly, locals_of)


def _components(view: View, source: str) -> list[list[Operand]]:
    """The operands at a source, in groups that conditions or CROSS JOINs connect without leaving it."""
    here = {operand.index for operand in view.operands if operand.source == source}
    edges = [mentioned for c in view.conditions if (mentioned := view.mentions(c)) <= here]
    edges += [frozenset(pair) for pair in view.crossings if set(pair) <= here]
    groups = [{index} for index in sorted(here)]
    for edge in edges:
        touched = [group for group in groups if group & edge]
        groups = [group for group in groups if not group & edge] + ([set().union(*touched)] if touched else [])
    return [[view.operands[index] for index in sorted(group)] for group in sorted(groups, key=min)]


def _local_view(view: View, name: str, component: list[Operand], keys: bool) -> tuple[View, dict[str, str]]:
    """The local view of a component, and the short name of each column that it carries."""
    members = frozenset(operand.index for operand in component)
    conditions = tuple(c for c in view.conditions if view.mentions(c) and view.mentions(c) <= members)
    outside = [c for c in view.conditions if not (view.mentions(c) and view.mentions(c) <= members)]
    needed = frozenset[str]().union(
        *(column.expression.columns for column in view.output), *(condition.columns for condition in outside)
    )
    carried = [
        (operand, column)
        for operand in component
        for column in operand.relation.columns
        if f"{operand.alias}.{column}" in needed or (keys and column in (operand.relation.key or ()))
    ]
    names = _short_names(carried)
    indices = {operand.index: place for place, operand in enumerate(component)}
    local = View(
        name=name,
        sql="",
        operands=tuple(Operand(indices[o.index], o.alias, o.relation) for o in component),
        conditions=conditions,
        output=tuple(
            OutputColumn(short, Expression.column(flat, _type(component, flat))) for flat, short in names.items()
        ),
        crossings=tuple((indices[a], indices[b]) for a, b in view.crossings if {a, b} <= members),
    )
    return local, names


def _short_names(carried: list[tuple[Operand, str]]) -> dict[str, str]:
    """A column's own name where it is the only one of that name, else one that tells it apart."""
    plain = [column for _, column in carried]
    taken = {column for column in plain if plain.count(column) == 1}
    names: dict[str, str] = {}
    for operand, column in carried:
        short = column
        if column not in taken:
            short = _free(f"{operand.alias}_{column}", taken)
            taken.add(short)
        names[f"{operand.alias}.{column}"] = short
    return names


def _free(name: str, taken: Collection[str]) -> str:
    while name in taken:
        name += "_"
    return name


def _as_relation(source: str, local: View, component: list[Operand], names: dict[str, str], keys: bool) -> Relation:
    key = None
    if keys and all(operand.key for operand in component):
        key = tuple(names[column] for operand in component for column in operand.key or ())
    return Relation(
        name=f"{source}.{local.name}",
        source=source,
        columns=tuple(names.values()),
        types=tuple(_type(component, flat) for flat in names),
        key=key,
    )


def _type(component: list[Operand], flat: str) -> str:
    for operand in component:
        if flat in operand.columns:
            return operand.relation.types[operand.columns.index(flat)]
    raise KeyError(flat)


def maintenance_query(parts: Decomposition, target: str, given: tuple[str, ...]) -> str:
    """The SQL of a maintenance query as the wrapper localizes it (figure 9): the local view `target` spelled out,
    joined with the delta that has come from the `given` ones."""
    assembly = parts.assembly
    covered = {operand.index for operand in assembly.operands if operand.relation.name in (target, *given)}
    renamed = {
        column: f"delta_{column}"
        for operand in assembly.operands
        if operand.relation.name in given
        for column in operand.columns
    }
    aliases = {
        operand.index: f"delta_{operand.alias}" if operand.relation.name in given else operand.alias
        for operand in assembly.operands
    }
    query = View(
        name=assembly.name,
        sql="",
        operands=tuple(
            Operand(place, aliases[index], assembly.operands[index].relation)
            for place, index in enumerate(sorted(covered))
        ),
        conditions=tuple(c.renamed(renamed) for c in assembly.conditions if assembly.mentions(c) <= covered),
        output=tuple(
            OutputColumn(column.name, column.expression.renamed(renamed))
            for column in assembly.output
            if assembly.mentions(column.expression) <= covered
        ),
    )
    local = next(
        view for source, views in parts.local_views.items() for view in views if f"{source}.{view.name}" == target
    )
    tables: dict[str, exp.Expr] = {target: select_of(local).subquery()}
    tables |= {
        operand.relation.name: table_of(f"delta_{operand.alias}")
        for operand in assembly.operands
        if operand.relation.name in given
    }
    return select_of(query, tables).sql(ViewDialect)
