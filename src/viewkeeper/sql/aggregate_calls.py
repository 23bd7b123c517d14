"""Aggregate calls: what counts as one, in which few forms they are kept, and what type they have.

    agg(e) FILTER (WHERE c)  =  agg(CASE WHEN c THEN e END)          COUNT(1)  =  COUNT(*)
    COUNT(*) FILTER (WHERE c), COUNT_IF(c)  =  COUNT(CASE WHEN c THEN 1 END)          MIN(DISTINCT e)  =  MIN(e)

The types are those of Spark in ANSI mode.
"""

from sqlglot import exp

from viewkeeper.errors import DefinitionError
from viewkeeper.sql.bound_select import as_condition
from viewkeeper.sql.expressions import Expression
from viewkeeper.sql.summary_view import Aggregate, Function, readable
from viewkeeper.sql.syntax import position, spark_sql
from viewkeeper.sql.type_families import MAX_PRECISION, Family, parse_type, sql_type

FUNCTIONS: dict[type[exp.Expr], Function] = {
    exp.Count: Function.COUNT,
    exp.Sum: Function.SUM,
    exp.Min: Function.MIN,
    exp.Max: Function.MAX,
    exp.Avg: Function.AVG,
    exp.Variance: Function.VAR_SAMP,
    exp.VariancePop: Function.VAR_POP,
    exp.Stddev: Function.STDDEV_SAMP,
    exp.StddevSamp: Function.STDDEV_SAMP,
    exp.StddevPop: Function.STDDEV_POP,
}
# Spark's aggregates that sqlglot passes through without knowing them; a class is what the name is another name for.
UNKNOWN_TO_SQLGLOT: dict[str, type[exp.Func] | None] = {
    "mean": exp.Avg,
    "std": exp.Stddev,
    **dict.fromkeys(
        (
            "bitmap_and_agg",
            "count_min_sketch",
            "every",
            "histogram_numeric",
            "hll_sketch_agg",
            "hll_union_agg",
            "some",
            "try_avg",
            "try_sum",
        )
    ),
}
GROUPING = (exp.Grouping, exp.GroupingId)
_NUMBERS = frozenset(FUNCTIONS.values()) - {Function.COUNT, Function.MIN, Function.MAX}


def is_call(node: exp.Expr) -> bool:
    """Whether a node makes one value of many rows. GROUPING does not: it only says how a row was made."""
    if isinstance(node, exp.Anonymous):
        return node.name.lower() in UNKNOWN_TO_SQLGLOT
    if isinstance(node, exp.Any):
        # `x = ANY (...)` and `x LIKE ANY (...)` compare; ANY(x) alone is another name for BOOL_OR.
        return not isinstance(node.parent, exp.Binary)
    return isinstance(node, exp.AggFunc) and not isinstance(node, GROUPING)


def call_name(node: exp.Expr) -> str:
    """The function of a call, as Spark names it."""
    if isinstance(node, (exp.Min, exp.Max)):
        return node.sql_name()  # with two arguments sqlglot would write GREATEST
    return spark_sql(node).partition("(")[0].strip().upper()


def has_call(node: exp.Expr) -> bool:
    return any(is_call(part) for part in node.walk())


def rewrite_calls(select: exp.Select) -> None:
    """Bring every call into one of the forms that `aggregate_of` reads; those that have none are refused before."""
    for named in list(select.find_all(exp.Anonymous)):
        if (known := UNKNOWN_TO_SQLGLOT.get(named.name.lower())) is not None:
            named.replace(known(this=named.expressions[0]))
    for count_if in list(select.find_all(exp.CountIf)):
        count_if.replace(exp.Count(this=_if(count_if.this, exp.Literal.number(1))))
    for count in list(select.find_all(exp.Count)):
        if isinstance(count.this, (exp.Literal, exp.Boolean)):
            count.set("this", exp.Star())
    for extreme in list(select.find_all(exp.Min, exp.Max)):
        if isinstance(extreme.this, exp.Distinct):
            extreme.set("this", extreme.this.expressions[0])
    for filtered in list(select.find_all(exp.Filter)):
        _rewrite_filter(filtered)


def _rewrite_filter(node: exp.Filter) -> None:
    call, condition = node.this, node.expression.this
    if isinstance(call.this, exp.Distinct):
        call.this.set("expressions", [_if(condition, call.this.expressions[0])])
    elif isinstance(call.this, exp.Star):
        call.set("this", _if(condition, exp.Literal.number(1)))
    else:
        call.set("this", _if(condition, call.this))
    node.replace(call)


def _if(condition: exp.Expr, value: exp.Expr) -> exp.Case:
    return exp.Case(ifs=[exp.If(this=condition.copy(), true=value.copy())])


def aggregate_of(node: exp.Expr) -> Aggregate:
    """The aggregate of a call whose columns are qualified and typed."""
    function = FUNCTIONS[type(node)]
    argument = node.this
    if isinstance(argument, exp.Star):
        return Aggregate(Function.COUNT_ALL, None, "BIGINT")
    if isinstance(argument, exp.Distinct):
        function, argument = Function.COUNT_DISTINCT, argument.expressions[0]
    argument = argument.unnest()
    if isinstance(argument, exp.Case) and argument.this is None:
        for when in argument.args["ifs"]:
            as_condition(when.this)  # that of a FILTER is here now
    expression = Expression.from_node(argument)
    _refuse_type(function, expression, node)
    return Aggregate(function, expression, _result_type(function, expression.type))


def _refuse_type(function: Function, argument: Expression, node: exp.Expr) -> None:
    call, where = Aggregate(function, argument, "").name, position(node)
    type = sql_type(parse_type(argument.type))
    if isinstance(argument.node, exp.Null):
        raise DefinitionError(f"{call} is always the same{where}", f"write {call.replace('NULL', 'column')}")
    what = readable(argument)
    if function is not Function.COUNT and type.family is Family.UNKNOWN:
        raise DefinitionError(
            f"the type of {what} in {call} is not known{where}",
            f"CAST it: {call.replace(what, f'CAST({what} AS ...)')}",
        )
    if function in _NUMBERS and not type.numeric:
        target = "INT" if type.family is Family.BOOLEAN else "DOUBLE"
        raise DefinitionError(
            f"{call} needs a number, and {what} is {argument.type}{where}",
            f"CAST it: {call.replace(what, f'CAST({what} AS {target})')}",
        )
    if function is not Function.COUNT and not comparable(argument.type):
        raise DefinitionError(
            f"{call} compares values, and {argument.type} has no order and no equality{where}",
            "aggregate a part of it, such as column['key']",
        )


def comparable(type: str) -> bool:
    """Whether values of a type can be grouped and ordered."""
    parsed = parse_type(type)
    return parsed is not None and not any(
        part.this in (exp.DType.MAP, exp.DType.VARIANT, exp.DType.OBJECT) for part in parsed.find_all(exp.DataType)
    )


def _result_type(function: Function, argument: str) -> str:
    type = sql_type(parse_type(argument))
    match function, type.family:
        case ((Function.COUNT | Function.COUNT_DISTINCT), _):
            return "BIGINT"
        case ((Function.MIN | Function.MAX), _):
            return argument
        case Function.SUM, Family.DECIMAL:
            return f"DECIMAL({min(MAX_PRECISION, type.precision + 10)}, {type.scale})"
        case Function.AVG, Family.DECIMAL:
            return f"DECIMAL({min(MAX_PRECISION, type.precision + 4)}, {min(MAX_PRECISION, type.scale + 4)})"
        case ((Function.SUM | Function.AVG), Family.UNKNOWN):
            return ""
        case Function.SUM, Family.INTEGER:
            return "BIGINT"
    return "DOUBLE"
