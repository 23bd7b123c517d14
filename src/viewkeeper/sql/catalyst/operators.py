"""A plan of Spark as an operator tree.

    convert(node, needed)  =  an operator with the needed columns, and their names by Spark's numbers

Names c1, c2, ... are given from the leaves up, left before right, so the same text gives the same tree. A rename is
none: the column keeps its name. Columns that nothing above needs are not read.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from viewkeeper.sql import tree
from viewkeeper.sql.catalyst.aggregate_calls import AggregateCalls, aggregates_of
from viewkeeper.sql.catalyst.analysis import Analysis, elements
from viewkeeper.sql.catalyst.expressions import Renderer
from viewkeeper.sql.catalyst.functions import dialect_of
from viewkeeper.sql.catalyst.join_conditions import join_condition
from viewkeeper.sql.catalyst.literals import NotRendered
from viewkeeper.sql.catalyst.lost_fields import LOSSY, complete
from viewkeeper.sql.catalyst.plan_columns import existence, expressions_of, join_kind, number, outputs, references
from viewkeeper.sql.catalyst.plan_json import Node, fields_of, nested
from viewkeeper.sql.catalyst.rules import rewritten
from viewkeeper.sql.catalyst.type_text import type_text
from viewkeeper.sql.catalyst.window_text import window_text
from viewkeeper.sql.relation import Relation
from viewkeeper.sql.tree import Column, Computed, Operator

_SKIPPED = ("GlobalLimit", "Sort", "RepartitionByExpression", "Repartition", "RebalancePartitions", "ReturnAnswer")
"""what changes no bag of rows"""


@dataclass(frozen=True)
class Part:
    """An operator, and the names of its columns by Spark's numbers."""

    operator: Operator
    names: dict[int, str]

    def columns(self) -> dict[str, Column]:
        return {one.name: one for one in self.operator.columns}


class Conversion:
    """One plan on its way."""

    def __init__(self, analysis: Analysis, sql: str, relations: Mapping[str, Relation]) -> None:
        self._analysis = analysis
        self._relations = relations
        self._dialect = dialect_of(analysis)
        self._lossy = bool(LOSSY.search(sql))
        self._named = 0

    def query(self, plan: Any) -> tree.Query:
        """The tree of a plan, its columns in the order of the query."""
        plan = rewritten(self._analysis, plan)
        node = self._parsed(plan)
        shown = outputs(node)
        schema = _schema(plan)
        ordered, order_of = _root_order(node)
        part = self.convert(plan, node, set(shown) | references(*order_of))
        names = [part.names[one] for one in shown]
        root = self._in_place(part, names)
        order: tuple[tree.Order, ...] = ()
        visible = {number: name for number, name in part.names.items() if name in names}
        if ordered and references(*order_of) <= set(visible):
            renderer = Renderer(visible, self._dialect)
            order = tuple(map(renderer.order, order_of))
        return tree.Query(root, tuple(one["name"] for one in schema), order, self._analysis.version)

    def convert(self, plan: Any, node: Node, needed: set[int]) -> Part:
        """The operator of a node, with at least these columns."""
        if node.name in _SKIPPED:
            return self.convert(_below(plan)[0], node.children[0], needed)
        method = _OPERATORS.get(node.name)
        if method is None:
            raise NotRendered(f"the operator {node.name}")
        return method(self, plan, node, needed)

    def _scan(self, plan: Any, node: Node, needed: set[int]) -> Part:
        key = node.fields["tableMeta"]["identifier"]["table"]
        listed = node.expressions("dataCols")
        read = [one for one in listed if number(one) in needed]
        if not read:  # COUNT(*): any column does, one of the key if there is one
            first = (self._relations[key].key or (listed[0].fields["name"],))[0]
            read = [one for one in listed if one.fields["name"] == first]
        columns = tuple(self._column(one.fields["dataType"], one.fields["nullable"]) for one in read)
        scan = tree.Scan(key, tuple(one.fields["name"] for one in read), columns)
        return Part(scan, {number(one): column.name for one, column in zip(read, columns, strict=True)})

    def _project(self, plan: Any, node: Node, needed: set[int]) -> Part:
        listed = node.expressions("projectList")
        kept = {number(one): (place, one) for place, one in enumerate(listed) if number(one) in needed}
        expressions = [one for _, one in kept.values()]
        part = self.convert(_below(plan)[0], node.children[0], references(*expressions))
        part, renderer = self._with_subqueries(plan, node, part)
        schema = _schema(plan) if any(_source(one) is None for one in expressions) else []
        names: dict[int, str] = {}
        computed = {}
        for one, (place, expression) in kept.items():
            source = _source(expression)
            if source is not None and source in part.names:
                names[one] = part.names[source]
            else:
                column = self._field(schema[place])
                computed[one] = Computed(column, renderer.text(expression))
                names[one] = column.name
        if not computed:
            return Part(part.operator, names)
        return Part(_project(part, list(names.values()), {one.column.name: one for one in computed.values()}), names)

    def _filter(self, plan: Any, node: Node, needed: set[int]) -> Part:
        condition = node.expression("condition")
        part = self.convert(_below(plan)[0], node.children[0], needed | references(condition))
        part, renderer = self._with_subqueries(plan, node, part)
        return Part(tree.Filter(part.operator, renderer.text(condition)), part.names)

    def _join(self, plan: Any, node: Node, needed: set[int]) -> Part:
        kind = join_kind(node)
        condition = node.optional("condition")
        needed = needed | (references(condition) if condition is not None else set())
        plans, nodes = _below(plan), node.children
        if kind == "right":
            kind, plans, nodes = "left", plans[::-1], nodes[::-1]
        left = self.convert(plans[0], nodes[0], needed & set(outputs(nodes[0])))
        right = self.convert(plans[1], nodes[1], needed & set(outputs(nodes[1])))
        left, renderer = self._with_subqueries(plan, node, left)
        renderer = Renderer({**left.names, **right.names}, self._dialect, renderer.subquery)
        keys, null_safe, rest, null_aware = join_condition(condition, set(left.names), set(right.names), renderer, kind)
        if kind != "inner":
            left, right = self._narrow(left, needed), self._narrow(right, needed)
        if kind == "existence":
            return self._existence(node, left, right, (keys, null_safe, rest))
        join = tree.Join(kind, left.operator, right.operator, keys, null_safe, rest, null_aware=null_aware)
        names = left.names if kind in ("semi", "anti") else {**left.names, **right.names}
        return Part(join, names)

    def _existence(self, node: Node, left: Part, right: Part, on: tuple[Any, Any, Any]) -> Part:
        """L with a column that says whether R has a match:  (L ⋉ R) × true  ∪  (L ▷ R) × false."""
        keys, null_safe, rest = on
        branches = []
        for kind, value in (("semi", "true"), ("anti", "false")):
            join = tree.Join(kind, left.operator, right.operator, keys, null_safe, rest)
            flag = Computed(self._column("boolean", nullable=False), value)
            passed = tuple(Computed(one, one.name) for one in join.columns)
            branches.append(tree.Project(join, (*passed, flag)))
        columns = tuple(self._named_as(one) for one in branches[0].columns)
        renamed = {old.name: new.name for old, new in zip(branches[0].columns, columns, strict=True)}
        names = {one: renamed[name] for one, name in left.names.items()}
        return Part(tree.Union(tuple(branches), columns), {**names, existence(node): columns[-1].name})

    def _aggregate(self, plan: Any, node: Node, needed: set[int]) -> Part:
        grouping = node.expressions("groupingExpressions")
        schema = _schema(plan)
        listed = node.expressions("aggregateExpressions")
        kept = {number(one): (place, one) for place, one in enumerate(listed) if number(one) in needed}
        if not kept and not grouping:
            kept = {number(listed[0]): (0, listed[0])}
        expressions = [one for _, one in kept.values()]
        part = self.convert(_below(plan)[0], node.children[0], references(*grouping, *expressions))
        part, renderer = self._with_subqueries(plan, node, part, within="AggregateExpression")
        keys: dict[str, Computed] = {}
        for key in grouping:
            if key.name == "AttributeReference":
                column = part.columns()[part.names[number(key)]]
                keys[column.name] = Computed(column, column.name)
            elif references(key):
                raise NotRendered("a key of GROUP BY that is computed in it")
        if grouping and not keys:  # GROUP BY a constant: a group if there is a row
            keys["1"] = Computed(self._column("integer", nullable=False), "1")
        calls = AggregateCalls(renderer, self._dialect, self._column)
        above = _AboveCalls(plan, calls)
        # The calls first: what is computed of them comes after the subqueries that are joined to them.
        for place, expression in kept.values():
            above.add(place, expression)
        if not calls.calls and not keys:
            calls.count()
        aggregate = tree.Aggregate(part.operator, tuple(keys.values()), calls.calls)
        grouped = Part(aggregate, {one: name for one, name in part.names.items() if name in keys})
        grouped, renderer = self._with_subqueries(plan, node, grouped, outside="AggregateExpression")
        renderer.aggregate = above.next
        available = grouped.columns()
        names: dict[int, str] = {}
        computed: dict[str, Computed] = {}
        for one, (place, expression) in kept.items():
            text = renderer.text(expression)
            if text in available:
                names[one] = text
            else:
                column = self._field(schema[place])
                computed[column.name] = Computed(column, text)
                names[one] = column.name
        if not computed:
            return Part(grouped.operator, names)
        return Part(_project(grouped, list(names.values()), computed), names)

    def _window(self, plan: Any, node: Node, needed: set[int]) -> Part:
        listed = node.expressions("windowExpressions")
        below = len(outputs(node.children[0]))
        kept = [(place, one) for place, one in enumerate(listed) if number(one) in needed]
        made = {number(one) for one in listed}
        used = references(*(one for _, one in kept))
        part = self.convert(_below(plan)[0], node.children[0], (needed - made) | used)
        if not kept:
            return part
        part, renderer = self._with_subqueries(plan, node, part)
        part = self._narrow(part, set(part.names))
        schema = _schema(plan)
        functions = {}
        for place, one in kept:
            text = window_text(one.children[0], renderer, self._dialect)
            functions[number(one)] = Computed(self._field(schema[below + place]), text)
        partition = renderer.texts(node.expressions("partitionSpec"))
        window = tree.Window(part.operator, partition, tuple(functions.values()))
        return Part(window, {**part.names, **{one: text.column.name for one, text in functions.items()}})

    def _union(self, plan: Any, node: Node, needed: set[int]) -> Part:
        shown = outputs(node)
        first = {one: place for place, one in reversed(list(enumerate(shown)))}
        places = sorted(first[one] for one in set(shown) & needed) or [0]
        schema = _schema(plan)
        branches = []
        for below, child in zip(_below(plan), node.children, strict=True):
            listed = outputs(child)
            part = self.convert(below, child, {listed[place] for place in places})
            branches.append(self._in_place(part, [part.names[listed[place]] for place in places]))
        columns = tuple(self._field(schema[place]) for place in places)
        names = {shown[place]: column.name for place, column in zip(places, columns, strict=True)}
        return Part(tree.Union(tuple(branches), columns), names)

    def _expand(self, plan: Any, node: Node, needed: set[int]) -> Part:
        """GROUPING SETS: the input once for each set."""
        shown = outputs(node)
        places = [place for place, one in enumerate(shown) if one in needed] or [0]
        # Not from the plan's JSON, which has no lists of lists that Scala has not computed yet.
        rows = [[nested(json.loads(one.toJSON())) for one in elements(row)] for row in elements(plan.projections())]
        used = [row[place] for row in rows for place in places]
        part = self.convert(_below(plan)[0], node.children[0], references(*used))
        renderer = Renderer(part.names, self._dialect)
        schema = _schema(plan)
        branches = []
        for row in rows:
            made = [Computed(self._field(schema[place]), renderer.text(row[place])) for place in places]
            branches.append(tree.Project(part.operator, tuple(made)))
        columns = tuple(self._field(schema[place]) for place in places)
        names = {shown[place]: column.name for place, column in zip(places, columns, strict=True)}
        return Part(tree.Union(tuple(branches), columns), names)

    def _generate(self, plan: Any, node: Node, needed: set[int]) -> Part:
        generator = node.expression("generator")
        made = node.expressions("generatorOutput")
        if generator.name == "ReplicateRows":
            return self._repeat(plan, node, generator, needed)
        numbers = {number(one) for one in made}
        part = self.convert(_below(plan)[0], node.children[0], (needed - numbers) | references(generator))
        part, renderer = self._with_subqueries(plan, node, part)
        outer = bool(node.fields["outer"])
        columns = tuple(self._column(one.fields["dataType"], one.fields["nullable"] or outer) for one in made)
        generate = tree.Generate(part.operator, renderer.text(generator), outer, columns)
        names = {number(one): column.name for one, column in zip(made, columns, strict=True)}
        return Part(generate, {**part.names, **names})

    def _repeat(self, plan: Any, node: Node, generator: Node, needed: set[int]) -> Part:
        times, *passed = generator.children
        part = self.convert(_below(plan)[0], node.children[0], references(generator))
        renderer = Renderer(part.names, self._dialect)
        made = map(number, node.expressions("generatorOutput"))
        names = {one: renderer.text(source) for one, source in zip(made, passed, strict=True)}
        return Part(tree.Repeat(part.operator, renderer.text(times)), names)

    def _local_limit(self, plan: Any, node: Node, needed: set[int]) -> Part:
        return self._limit(plan, node, needed, _count(node, "limitExpr"))

    def _offset(self, plan: Any, node: Node, needed: set[int]) -> Part:
        return self._limit(plan, node, needed, None)

    def _limit(self, plan: Any, node: Node, needed: set[int], count: int | None) -> Part:
        """LIMIT, OFFSET and the ORDER BY under them, if there is nothing but projections between."""
        offset = 0
        if node.name == "LocalLimit":
            plan, node = _below(plan)[0], node.children[0]
        if node.name == "Offset":
            offset = _count(node, "offsetExpr")
            plan, node = _below(plan)[0], node.children[0]
        projects = []
        while node.name == "Project" and _reaches_sort(node):
            projects.append((plan, node))
            plan, node = _below(plan)[0], node.children[0]
        order = node.expressions("order") if node.name == "Sort" else ()
        if node.name == "Sort":
            plan, node = _below(plan)[0], node.children[0]
        below = needed
        for _, project in projects:
            below = references(*(one for one in project.expressions("projectList") if number(one) in below))
        part = self._narrow(self.convert(plan, node, below | references(*order)), below | references(*order))
        renderer = Renderer(part.names, self._dialect)
        limit = tree.Limit(part.operator, tuple(map(renderer.order, order)), count, offset)
        part = Part(limit, part.names)
        for above, project in reversed(projects):
            part = self._projected(above, project, part)
        return part

    def _projected(self, plan: Any, node: Node, part: Part) -> Part:
        """A projection over an operator that is there already: all that it can show of it."""
        schema = _schema(plan)
        renderer = Renderer(part.names, self._dialect)
        names: dict[int, str] = {}
        computed = {}
        for place, expression in enumerate(node.expressions("projectList")):
            source = _source(expression)
            if source is not None and source in part.names:
                names[number(expression)] = part.names[source]
            elif references(expression) <= set(part.names):
                column = self._field(schema[place])
                computed[column.name] = Computed(column, renderer.text(expression))
                names[number(expression)] = column.name
        if not computed:
            return Part(part.operator, names)
        return Part(_project(part, list(dict.fromkeys(names.values())), computed), names)

    def _with_subqueries(
        self, plan: Any, node: Node, part: Part, within: str = "", outside: str = ""
    ) -> tuple[Part, Renderer]:
        """The input, with a column for each scalar subquery in the expressions of a node: a left join without keys.

        Of an Aggregate, those `within` its calls belong to its input, those `outside` to its result."""
        found = [one for each in expressions_of(node) for one in each.walk() if one.name == "ScalarSubquery"]
        plans = elements(plan.subqueries()) if found else []
        calls = within or outside
        inside = {
            number(one)
            for each in expressions_of(node)
            for call in (_outermost(each, calls) if calls else ())
            for one in call.walk()
            if one.name == "ScalarSubquery"
        }
        wanted = [(number(one) in inside) == bool(within) if calls else True for one in found]
        values: dict[int, str] = {}
        for one, inner, here in zip(found, plans, wanted, strict=True):
            if not here:
                continue
            if one.fields["outerAttrs"]:
                raise NotRendered("a correlated subquery")
            inner = rewritten(self._analysis, inner)
            below = self._parsed(inner)
            shown = outputs(below)[0]
            right = self._narrow(self.convert(inner, below, {shown}), {shown})
            operator = right.operator
            most = inner.maxRows()
            if not (most.isDefined() and most.get() <= 1):
                operator = tree.AtMostOne(operator)
            part = Part(tree.Join("left", part.operator, operator), part.names)
            values[number(one)] = right.names[shown]
        return part, Renderer(part.names, self._dialect, lambda one: values[number(one)])

    def _parsed(self, plan: Any) -> Node:
        nodes = json.loads(plan.toJSON())
        if self._lossy:
            complete(plan, nodes)
        return nested(nodes)

    def _narrow(self, part: Part, needed: set[int]) -> Part:
        """Only these columns, where others would be stored with them."""
        wanted = [
            one.name for one in part.operator.columns if one.name in {part.names[n] for n in part.names if n in needed}
        ]
        names = {number: name for number, name in part.names.items() if name in wanted}
        if len(wanted) == len(part.operator.columns) or not wanted:
            return part
        return Part(_project(part, wanted, {}), names)

    def _in_place(self, part: Part, names: list[str]) -> Operator:
        """The operator with exactly these columns in this order; one that stands there twice gets a name of its own."""
        if [one.name for one in part.operator.columns] == names:
            return part.operator
        columns = part.columns()
        made: dict[str, Computed] = {}
        for name in names:
            column = columns[name] if name not in made else self._named_as(columns[name])
            made[column.name] = Computed(column, name)
        return tree.Project(part.operator, tuple(made.values()))

    def _column(self, data_type: Any, nullable: bool) -> Column:
        self._named += 1
        return Column(f"c{self._named}", type_text(data_type), nullable)

    def _field(self, field: dict[str, Any]) -> Column:
        return self._column(field["type"], field["nullable"])

    def _named_as(self, column: Column) -> Column:
        self._named += 1
        return Column(f"c{self._named}", column.type, column.nullable)


_OPERATORS: dict[str, Callable[[Conversion, Any, Node, set[int]], Part]] = {
    "HiveTableRelation": Conversion._scan,
    "Project": Conversion._project,
    "Filter": Conversion._filter,
    "Join": Conversion._join,
    "Aggregate": Conversion._aggregate,
    "Window": Conversion._window,
    "Union": Conversion._union,
    "Expand": Conversion._expand,
    "Generate": Conversion._generate,
    "LocalLimit": Conversion._local_limit,
    "Offset": Conversion._offset,
}


class _AboveCalls:
    """The calls in the expressions of an Aggregate, in the order in which they stand there."""

    def __init__(self, plan: Any, calls: AggregateCalls) -> None:
        self._plan = plan
        self._calls = calls
        self._columns: list[str] = []

    def add(self, place: int, expression: Node) -> None:
        """The calls in what stands at a place of the node; their types are known to the JVM alone."""
        found = list(_outermost(expression, "AggregateExpression"))
        if not found:
            return
        known = aggregates_of(self._plan.aggregateExpressions().apply(place))
        for call, typed in zip(found, known, strict=True):
            name = self._calls.add(call, json.loads(typed.dataType().json()), typed.nullable())
            self._columns.append(name)

    def next(self, expression: Node) -> str:
        """The column of the next one of them."""
        return self._columns.pop(0)


def _outermost(expression: Node, name: str) -> Iterator[Node]:
    if expression.name == name:
        yield expression
        return
    for child in expression.children:
        yield from _outermost(child, name)


def _project(part: Part, names: list[str], computed: dict[str, Computed]) -> tree.Project:
    columns = part.columns()
    return tree.Project(
        part.operator, tuple(computed.get(name) or Computed(columns[name], name) for name in dict.fromkeys(names))
    )


def _schema(plan: Any) -> list[dict[str, Any]]:
    return fields_of(plan.schema().json())


def _below(plan: Any) -> list[Any]:
    return elements(plan.children())


def _source(expression: Node) -> int | None:
    """The column that an entry of a projection is, under this name or another."""
    inner = expression.children[0] if expression.name == "Alias" else expression
    return number(inner) if inner.name == "AttributeReference" else None


def _count(node: Node, field: str) -> int:
    expression = node.expression(field)
    if expression.name != "Literal":
        raise NotRendered("a LIMIT or OFFSET that is no number")
    return int(expression.fields["value"])


def _reaches_sort(node: Node) -> bool:
    while node.name == "Project":
        node = node.children[0]
    return node.name == "Sort"


def _root_order(node: Node) -> tuple[bool, tuple[Node, ...]]:
    """The ORDER BY of the whole query, if nothing but a projection that shows its columns stands over it."""
    while node.name in ("Project", "GlobalLimit", "LocalLimit", "Offset"):
        node = node.children[0]
    return (True, node.expressions("order")) if node.name == "Sort" and node.fields["global"] else (False, ())
