"""From the SQL of a view to its select-project-join form.

    parse_view("SELECT o.id, c.name FROM shop.orders o JOIN crm.people c ON o.cust = c.id", catalog)

The text is parsed (`syntax.py`), everything outside select-project-join is refused (`refusals.py`), names are bound to
relations and columns (`names.py`), and what remains are operands, conditions and output columns.
"""

import difflib

from sqlglot import exp
from sqlglot.errors import OptimizeError
from sqlglot.optimizer.annotate_types import annotate_types
from sqlglot.optimizer.qualify import qualify
from sqlglot.schema import MappingSchema

from viewkeeper.errors import DefinitionError, SyntaxProblem, UnsupportedClause
from viewkeeper.sql.expressions import Expression
from viewkeeper.sql.names import bind_tables, check_columns, refuse_reserved, spelling
from viewkeeper.sql.refusals import refuse_unsupported
from viewkeeper.sql.relation import Catalog
from viewkeeper.sql.syntax import EXPECTED, ViewDialect, parse_statement, position, spark_sql
from viewkeeper.sql.type_families import parse_type
from viewkeeper.sql.view import Operand, OutputColumn, View

CONSISTENCY = ("auto", "convergent", "weak", "strong", "complete")
PROPERTIES = (
    "consistency",
    "algorithm",
    "storage",
    "refresh",
    "group",
    "minmax",
    "core",
    "retention",
    "nested_depth",
)

# Marks, in the tree, what the user wrote and the optimizer did not add.
_WRITTEN = "written"


def parse_view(sql: str, catalog: Catalog, *, name: str | None = None) -> View:
    """The view that a text defines: a CREATE MATERIALIZED VIEW, or a SELECT, which is then called `name`."""
    try:
        return _view(sql, catalog, name)
    except RecursionError as error:
        raise SyntaxProblem("the definition is nested too deeply", "write it with fewer nested operators") from error


def _view(sql: str, catalog: Catalog, name: str | None) -> View:
    statement = parse_statement(sql)
    properties: tuple[tuple[str, str], ...] = ()
    if isinstance(statement, exp.Create):
        name, properties, query = _definition(statement)
    else:
        query = statement
    select = refuse_unsupported(query)
    _refuse_unnamed(select)
    written = {item.alias.lower(): item.alias for item in select.expressions if isinstance(item, exp.Alias)}
    operands = bind_tables(select, catalog)
    check_columns(select, operands)
    crossings = tuple(
        (index, index + 1) for index, join in enumerate(select.args.get("joins") or ()) if join.kind == "CROSS"
    )
    select = _qualified(select, operands)
    view = View(
        name=name or "v",
        sql=sql.strip(),
        operands=operands,
        conditions=_conditions(select),
        output=_output(select, written),
        crossings=crossings,
        properties=properties,
    )
    _refuse_disconnected(view)
    return view


def _definition(create: exp.Create) -> tuple[str, tuple[tuple[str, str], ...], exp.Expr]:
    """Name, properties and query of a CREATE statement."""
    items = create.args["properties"].expressions if create.args.get("properties") else []
    materialized = any(isinstance(item, exp.MaterializedProperty) for item in items)
    if create.kind != "VIEW" or not materialized:
        kind = f"CREATE {create.kind}"
        raise UnsupportedClause(f"{kind} does not define a maintained view", EXPECTED)
    if isinstance(create.this, exp.Schema):
        raise UnsupportedClause(
            f"a column list after the name of a view is not supported{position(create.this)}",
            "name the columns in SELECT: ... AS name",
        )
    if create.args.get("replace") or create.args.get("exists"):
        clause = "OR REPLACE" if create.args.get("replace") else "IF NOT EXISTS"
        raise UnsupportedClause(f"{clause} is not supported for a view", "drop the view first, or choose another name")
    if create.expression is None:
        raise DefinitionError("the view has no query", EXPECTED)
    if len(create.this.parts) > 1:
        raise DefinitionError(
            f"the name of a view has one part, and {spark_sql(create.this)} has {len(create.this.parts)}",
            f"write CREATE MATERIALIZED VIEW {create.this.name}; names with a dot are tables of sources",
        )
    name = create.this.name.lower()
    refuse_reserved(name, "the view")
    return name, _properties(items), create.expression


def _properties(items: list[exp.Expr]) -> tuple[tuple[str, str], ...]:
    result: dict[str, str] = {}
    for item in items:
        if isinstance(item, exp.MaterializedProperty):
            continue
        if type(item) is not exp.Property:
            raise UnsupportedClause(
                f"{spark_sql(item)} is not supported for a view",
                f"a view has TBLPROPERTIES: {', '.join(PROPERTIES)}",
            )
        key = spark_sql(item.this) if isinstance(item.this, exp.Dot) else item.name.lower()
        if key not in PROPERTIES:
            matches = difflib.get_close_matches(key, PROPERTIES, n=1)
            hint = f"did you mean {matches[0]}?" if matches else f"the properties are {', '.join(PROPERTIES)}"
            raise DefinitionError(f"a view has no property {key}", hint, code="unknown-property")
        if key in result:
            raise DefinitionError(f"the property {key} is set twice", "keep one of the two", code="unknown-property")
        value = item.args["value"]
        result[key] = value.name if isinstance(value, exp.Literal) else spark_sql(value).lower()
        if key == "consistency" and result[key] not in CONSISTENCY:
            raise DefinitionError(
                f"there is no consistency {result[key]}",
                f"choose one of {', '.join(CONSISTENCY)}",
                code="unknown-property",
            )
    return tuple(result.items())


def _refuse_unnamed(select: exp.Select) -> None:
    if not select.expressions:
        raise SyntaxProblem("SELECT lists no columns", "name the columns of the view, or write SELECT *")
    for item in select.expressions:
        if not (isinstance(item.unnest(), (exp.Alias, exp.Column)) or item.is_star):
            raise DefinitionError(
                f"the output column {spark_sql(item)} has no name{position(item)}",
                f"add AS name: {spark_sql(item)} AS name",
            )


def _qualified(select: exp.Select, operands: tuple[Operand, ...]) -> exp.Select:
    """The tree with every column qualified, typed and spelled as its relation declares it, and without * and USING."""
    for node in select.find_all(exp.Coalesce):
        node.meta[_WRITTEN] = True
    schema = MappingSchema(
        {
            f"r{operand.index}": {
                column.lower(): parse_type(type) or exp.DataType.build("unknown")
                for column, type in zip(operand.relation.columns, operand.relation.types, strict=True)
            }
            for operand in operands
        },
        dialect=ViewDialect,
    )
    try:
        # Without the expansion of aliases WHERE means the columns of the tables, as in Spark.
        tree = qualify(select, schema=schema, dialect=ViewDialect, expand_alias_refs=False)
    except OptimizeError as error:
        raise DefinitionError(f"the names cannot be resolved: {error}", "qualify every column with an alias") from error
    # A column of USING has become COALESCE(left, right). In an inner join that is the left one.
    for node in list(tree.find_all(exp.Coalesce)):
        if _WRITTEN not in node.meta:
            node.replace(node.this)
    annotate_types(tree, schema=schema, dialect=ViewDialect)
    spelled = spelling(operands)
    for column in tree.find_all(exp.Column):
        column.set("this", exp.to_identifier(spelled[column.table, column.name], quoted=True))
    assert isinstance(tree, exp.Select)
    return tree


def _conditions(select: exp.Select) -> tuple[Expression, ...]:
    """The conjuncts of ON, USING and WHERE, each once."""
    clauses = [join.args.get("on") for join in select.args.get("joins") or ()]
    if where := select.args.get("where"):
        clauses.append(where.this)
    nodes = [node for clause in clauses if clause is not None for node in _conjuncts(clause)]
    conditions = []
    for node in nodes:
        condition = Expression.from_node(node)
        if condition.type not in ("BOOLEAN", ""):
            raise DefinitionError(
                f"the condition {spark_sql(node)} is {condition.type}, not BOOLEAN{position(node)}",
                "compare it with something, for example <> 0",
            )
        conditions.append(condition)
    return tuple(dict.fromkeys(conditions))


def _conjuncts(node: exp.Expr) -> list[exp.Expr]:
    node = node.unnest()
    if isinstance(node, exp.And):
        return [part for operand in node.flatten() for part in _conjuncts(operand)]
    return [] if isinstance(node, exp.Boolean) and node.this else [node]


def _output(select: exp.Select, written: dict[str, str]) -> tuple[OutputColumn, ...]:
    output: dict[str, OutputColumn] = {}
    for item in select.expressions:
        node = item.unalias()
        name = item.alias_or_name
        name = written.get(name) or (node.name if isinstance(node, exp.Column) else name)
        refuse_reserved(name, "the output column")
        if name.lower() in output:
            raise DefinitionError(
                f"two output columns are called {name}", f"add AS name to one of them: ... AS {name}2"
            )
        output[name.lower()] = OutputColumn(name, Expression.from_node(node))
    return tuple(output.values())


def _refuse_disconnected(view: View) -> None:
    """Every operand must be joined to the others by a condition, or by a CROSS JOIN that asks for all combinations."""
    edges = [view.mentions(condition) for condition in view.conditions] + [frozenset(pair) for pair in view.crossings]
    reached: frozenset[int] = frozenset({0})
    while grown := [edge for edge in edges if edge & reached and not edge <= reached]:
        reached = reached.union(*grown)
    for operand in view.operands:
        if operand.index not in reached:
            others = ", ".join(other.alias for other in view.operands if other.index in reached)
            raise UnsupportedClause(
                f"no condition joins {operand.alias} to {others}: the view would hold every combination of their rows",
                "add a condition between them, or write CROSS JOIN if that is what you mean",
            )
