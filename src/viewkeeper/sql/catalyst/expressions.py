"""Expressions of a plan as Spark SQL over the columns of the tree.

Nothing is left to resolve: operators stand in parentheses, casts are written out, a literal has its type, and a
function is called by the name under which Spark's registry has its class.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from viewkeeper.sql.catalyst.functions import Dialect
from viewkeeper.sql.catalyst.literals import NotRendered, literal, text_literal
from viewkeeper.sql.catalyst.lost_fields import UNKNOWN
from viewkeeper.sql.catalyst.plan_json import Node, expr_id, is_nodes, nested
from viewkeeper.sql.catalyst.type_text import type_text
from viewkeeper.sql.tree import Order

BINARY = {
    "Add": "+",
    "Subtract": "-",
    "Multiply": "*",
    "Divide": "/",
    "Remainder": "%",
    "IntegralDivide": "div",
    "EqualTo": "=",
    "EqualNullSafe": "<=>",
    "LessThan": "<",
    "LessThanOrEqual": "<=",
    "GreaterThan": ">",
    "GreaterThanOrEqual": ">=",
    "And": "AND",
    "Or": "OR",
    "BitwiseAnd": "&",
    "BitwiseOr": "|",
    "BitwiseXor": "^",
    "RLike": "RLIKE",
    "TimestampAddInterval": "+",
    "TimeAdd": "+",
    "DateAddYMInterval": "+",
    "TimestampAddYMInterval": "+",
    "MultiplyYMInterval": "*",
    "MultiplyDTInterval": "*",
    "DivideYMInterval": "/",
    "DivideDTInterval": "/",
    "SubtractDates": "-",
    "SubtractTimestamps": "-",
}
UNARY = {
    "Not": "(NOT {0})",
    "IsNull": "({0} IS NULL)",
    "IsNotNull": "({0} IS NOT NULL)",
    "UnaryMinus": "(- {0})",
    "UnaryPositive": "(+ {0})",
    "BitwiseNot": "(~ {0})",
    "NullIfResult": "(CASE WHEN {0} THEN NULL ELSE {1} END)",
    "GetArrayItem": "{0}[{1}]",
    "GetMapValue": "{0}[{1}]",
    "AtTimeZone": "({0} AT TIME ZONE {1})",
}
TRIED = {
    "Add": "try_add",
    "Subtract": "try_subtract",
    "Multiply": "try_multiply",
    "Divide": "try_divide",
    "Remainder": "try_mod",
}
PASSED = ("KnownNullable", "KnownNotNull", "KnownFloatingPointNormalized", "NormalizeNaNAndZero", "TaggingExpression")
"""what Spark notes of an expression, without a meaning of its own"""


@dataclass
class Renderer:
    """Texts over these columns."""

    columns: Mapping[int, str]
    """the names of columns by Spark's numbers"""
    dialect: Dialect
    subquery: Callable[[Node], str] | None = None
    """the column that has the value of a scalar subquery"""
    aggregate: Callable[[Node], str] | None = None
    """the column that has the value of an aggregate function"""
    _defined: list[str] = field(default_factory=list)
    _lambdas: dict[int, str] = field(default_factory=dict)

    def text(self, node: Node) -> str:
        """The expression, in parentheses if it is an operator."""
        form = _FORMS.get(node.name)
        if form is not None:
            return form(self, node)
        mode = mode_of(node)
        if node.name in BINARY and mode == "TRY":
            return f"{TRIED[node.name]}({', '.join(self.texts(node.children))})"
        if node.name in BINARY:
            left, right = map(self.text, node.children)
            return f"({left} {BINARY[node.name]} {right})"
        if node.name in UNARY:
            return UNARY[node.name].format(*map(self.text, node.children))
        if node.name in PASSED:
            return self.text(node.children[0])
        if "replacement" in node.fields and isinstance(node.fields["replacement"], int):
            return self._replaced(node)
        return self._call(node, node.children)

    def texts(self, nodes: tuple[Node, ...]) -> tuple[str, ...]:
        """One text for each."""
        return tuple(map(self.text, nodes))

    def order(self, node: Node) -> Order:
        """One expression of an ORDER BY."""
        return Order(
            self.text(node.children[0]),
            _object(node.fields["direction"]) == "Descending",
            _object(node.fields["nullOrdering"]) == "NullsFirst",
        )

    def _call(self, node: Node, arguments: tuple[Node, ...]) -> str:
        name = self.dialect.functions.get(node.java_class)
        if name is None:
            raise NotRendered(f"the expression {node.name}")
        if mode_of(node) != "ANSI":
            raise NotRendered(f"the function {name} in the mode {mode_of(node)}")
        for name_of, value in node.fields.items():
            if not _is_said(name_of, value):
                raise NotRendered(f"the function {name} with {name_of}, which is no argument of it")
        return f"{name}({', '.join(self.texts(arguments))})"

    def _replaced(self, node: Node) -> str:
        try:
            return self.text(node.children[0])
        except NotRendered:
            pass
        # Rules change what is replaced and leave what was written: they are the same while they name the same columns.
        written = tuple(nested(value) for name, value in node.fields.items() if is_nodes(value))
        if not written:
            raise NotRendered(f"the expression {node.name}")
        if not _named(node.children[0]) <= {one for part in written for one in _named(part)}:
            raise NotRendered(f"the expression {node.name} after it was moved")
        return self._call(node, written)

    def _attribute_reference(self, node: Node) -> str:
        number = expr_id(node.fields["exprId"])
        if number not in self.columns:
            raise NotRendered(f"the column {node.fields['name']}, which is not among the input's")
        return self.columns[number]

    def _literal(self, node: Node) -> str:
        return literal(node.fields["value"], node.fields["dataType"], self.dialect.zone)

    def _alias(self, node: Node) -> str:
        return self.text(node.children[0])

    def _cast(self, node: Node) -> str:
        word = "TRY_CAST" if mode_of(node) == "TRY" else "CAST"
        return f"{word}({self.text(node.children[0])} AS {type_text(node.fields['dataType'])})"

    def _in(self, node: Node) -> str:
        value, *listed = self.texts(node.children)
        return f"({value} IN ({', '.join(listed)}))"

    def _like(self, node: Node) -> str:
        left, right = self.texts(node.children)
        escape = node.fields.get("escapeChar") or "\\"
        if escape == UNKNOWN:
            raise NotRendered("a LIKE with an ESCAPE that is not known")
        return f"({left} LIKE {right}{f' ESCAPE {text_literal(escape)}' if escape != chr(92) else ''})"

    def _i_like(self, node: Node) -> str:
        return self._like(node).replace(" LIKE ", " ILIKE ", 1)

    def _string_trim(self, node: Node) -> str:
        """The function takes these arguments the other way round."""
        side = {"StringTrimLeft": "LEADING", "StringTrimRight": "TRAILING"}.get(node.name, "BOTH")
        texts = self.texts(node.children)
        return f"trim({side} {texts[1] if len(texts) > 1 else ''} FROM {texts[0]})"

    def _case_when(self, node: Node) -> str:
        parts = self.texts(node.children)
        pairs = zip(parts[0::2], parts[1::2], strict=False)
        whens = " ".join(f"WHEN {condition} THEN {value}" for condition, value in pairs)
        last = f" ELSE {parts[-1]}" if len(parts) % 2 else ""
        return f"(CASE {whens}{last} END)"

    def _get_struct_field(self, node: Node) -> str:
        name = node.fields.get("name")
        if name is None:
            raise NotRendered("a field of a struct without its name")
        return f"{self.text(node.children[0])}.{'`' + name.replace('`', '``') + '`'}"

    def _current_date(self, node: Node) -> str:
        return "current_date()"

    def _current_timestamp(self, node: Node) -> str:
        return "current_timestamp()"

    def _now(self, node: Node) -> str:
        return "now()"

    def _local_timestamp(self, node: Node) -> str:
        return "localtimestamp()"

    def _date_add(self, node: Node) -> str:
        start, days = node.children
        if days.name == "ExtractANSIIntervalDays":
            return f"({self.text(start)} + {self.text(days.children[0])})"
        if days.name == "UnaryMinus" and days.children[0].name == "ExtractANSIIntervalDays":
            return f"({self.text(start)} - {self.text(days.children[0].children[0])})"
        return self._call(node, node.children)

    def _datetime_sub(self, node: Node) -> str:
        start, interval = (nested(node.fields[name]) for name in ("start", "interval"))
        return f"({self.text(start)} - {self.text(interval)})"

    def _with(self, node: Node) -> str:
        """An expression that another one uses more than once; Spark's JSON has no names for more than one of them."""
        body, *defined = node.children
        if len(defined) != 1 or any(one.name == "With" for one in body.walk()):
            raise NotRendered("several common expressions")
        self._defined.append(self.text(defined[0].children[0]))
        try:
            return self.text(body)
        finally:
            self._defined.pop()

    def _common_expression_ref(self, node: Node) -> str:
        return self._defined[-1]

    def _scalar_subquery(self, node: Node) -> str:
        if self.subquery is None:
            raise NotRendered("a scalar subquery here")
        return self.subquery(node)

    def _aggregate_expression(self, node: Node) -> str:
        if self.aggregate is None:
            raise NotRendered("an aggregate function here")
        return self.aggregate(node)

    def _lambda_function(self, node: Node) -> str:
        body, *arguments = node.children
        for argument in arguments:
            self._lambdas[expr_id(argument.fields["exprId"])] = f"v{len(self._lambdas) + 1}"
        names = ", ".join(map(self.text, arguments))
        return f"{names if len(arguments) == 1 else f'({names})'} -> {self.text(body)}"

    def _named_lambda_variable(self, node: Node) -> str:
        return self._lambdas[expr_id(node.fields["exprId"])]


_FORMS: dict[str, Callable[[Renderer, Node], str]] = {
    "AttributeReference": Renderer._attribute_reference,
    "Literal": Renderer._literal,
    "Alias": Renderer._alias,
    "Cast": Renderer._cast,
    "In": Renderer._in,
    "Like": Renderer._like,
    "ILike": Renderer._i_like,
    "StringTrim": Renderer._string_trim,
    "StringTrimLeft": Renderer._string_trim,
    "StringTrimRight": Renderer._string_trim,
    "CaseWhen": Renderer._case_when,
    "GetStructField": Renderer._get_struct_field,
    "CurrentDate": Renderer._current_date,
    "CurrentTimestamp": Renderer._current_timestamp,
    "Now": Renderer._now,
    "LocalTimestamp": Renderer._local_timestamp,
    "DateAdd": Renderer._date_add,
    "DatetimeSub": Renderer._datetime_sub,
    "With": Renderer._with,
    "CommonExpressionRef": Renderer._common_expression_ref,
    "ScalarSubquery": Renderer._scalar_subquery,
    "AggregateExpression": Renderer._aggregate_expression,
    "LambdaFunction": Renderer._lambda_function,
    "NamedLambdaVariable": Renderer._named_lambda_variable,
}
"""what has a form of its own in SQL"""


_TRUE = ("failOnError", "ansiEnabled", "followThreeValuedLogic")
"""fields that an ANSI session sets; a try_ function has them otherwise"""
_OF_SPARK = ("timeZoneId", "evalMode", "evalContext", "replacement")


def _is_said(field: str, value: object) -> bool:
    """Whether a call has a field of its expression: as an argument, or because Spark sets it again by itself."""
    if field in _OF_SPARK or is_nodes(value):
        return True
    if field in _TRUE:
        return value is True
    if field == "dataType":
        return value == "timestamp"
    if isinstance(value, bool):
        return not value
    if value is None:
        return field not in ("options", "schema", "escapeChar", "targetType")
    if isinstance(value, list):
        return all(isinstance(one, int) for one in value)
    return isinstance(value, int)


def order_text(order: Order) -> str:
    """One expression of an ORDER BY."""
    direction = "DESC" if order.descending else "ASC"
    return f"{order.sql} {direction} NULLS {'FIRST' if order.nulls_first else 'LAST'}"


def mode_of(node: Node) -> str:
    """ANSI, where an overflow is an error, or TRY, where it is NULL."""
    mode = node.fields.get("evalMode") or node.fields.get("evalContext") or "ANSI"
    if mode not in ("ANSI", "TRY"):
        raise NotRendered(f"the expression {node.name} in the mode {mode}")
    return str(mode)


def _object(value: object) -> str:
    """The name of a Scala object in Spark's JSON."""
    text = value["object"] if isinstance(value, dict) else str(value)
    return str(text).rstrip("$").rpartition(".")[2]


def _named(node: Node) -> set[int]:
    found = set()
    for one in node.walk():
        if one.name == "AttributeReference":
            found.add(expr_id(one.fields["exprId"]))
        for value in one.fields.values():
            if is_nodes(value):
                found |= _named(nested(value))
    return found
