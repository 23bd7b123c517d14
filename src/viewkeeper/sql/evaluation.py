"""Scalar expressions in memory: a tree becomes one Python function of a row.

The function is generated as source text, because it runs once per row and a call per node of the tree would cost more
than the work itself. Values never enter the text: literals are constants that it refers to by name.

Only what means the same as in Spark (ANSI mode) is evaluated: NULL is None, a truth value is True, False or None, NaN
equals itself and is the largest DOUBLE, an integer that leaves its type is an error. For everything else there is
ExpressionError, and the Spark engine.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from operator import itemgetter
from typing import Any, ClassVar

from sqlglot import exp

from viewkeeper.errors import ExpressionError
from viewkeeper.sql import type_families as types
from viewkeeper.sql.arithmetic import ARITHMETIC, Arithmetic, digits_of
from viewkeeper.sql.code_writer import NOT_CONSTANT, Code, refusal
from viewkeeper.sql.literals import cast_literal, like_pattern, number, suffixed_number
from viewkeeper.sql.result_types import result_type
from viewkeeper.sql.row_functions import FUNCTIONS
from viewkeeper.sql.spark_grammar import suffixed
from viewkeeper.sql.syntax import spark_sql
from viewkeeper.sql.type_families import Family, SqlType, sql_type, type_name


def compile_evaluator(
    node: exp.Expr, positions: Mapping[str, int], sql: str, compiler: "type[Compiler] | None" = None
) -> Callable[[tuple[Any, ...]], Any]:
    """The function that evaluates a tree on a row, whose columns are at `positions`; `sql` names it in errors."""
    writer = (compiler or Compiler)(positions)
    try:
        code = writer.code(node)
    except RecursionError as error:
        raise _too_deep(sql) from error
    if isinstance(node.unnest(), exp.Column):
        return itemgetter(positions[flat_name(node.unnest())])

    def failure(error: Exception) -> ExpressionError:
        return ExpressionError(
            f"{sql}: {error}", "correct the row at its source, or guard the expression with CASE WHEN"
        )

    source = (
        "def evaluate(r):\n"
        "    try:\n"
        f"        return {code.text}\n"
        "    except (TypeError, ValueError, ArithmeticError) as error:\n"
        "        raise failure(error) from error\n"
    )
    namespace = {**FUNCTIONS, **writer.constants, "failure": failure}
    try:
        exec(source, namespace)
    except (SyntaxError, RecursionError, MemoryError) as error:
        raise _too_deep(sql) from error
    evaluate: Callable[[tuple[Any, ...]], Any] = namespace["evaluate"]
    return evaluate


def _too_deep(sql: str) -> ExpressionError:
    return ExpressionError(f"{sql[:60]}... is nested too deeply", "write it with fewer nested operators")


def flat_name(column: exp.Expr) -> str:
    """`alias.column`, the name of a column in a row of the join."""
    return f"{column.text('table')}.{column.name}"


def computed_type(node: exp.Expr) -> SqlType:
    """The type of what a tree computes in memory; ExpressionError if only Spark can evaluate it."""
    positions = {flat_name(column): 0 for column in node.find_all(exp.Column)}
    return Compiler(positions).code(node).type


def type_of(node: exp.Expr) -> str:
    """The Spark type of a tree, '' if it is unknown: then only Spark can tell."""
    try:
        return computed_type(node).name
    except ExpressionError:
        known = result_type(node, type_of)
    except RecursionError:
        known = ""  # to look at the parts again would take for ever
    return known or (type_name(node.type) if _annotation_is_right(node.unnest()) else "")


def _annotation_is_right(node: exp.Expr) -> bool:
    """Whether sqlglot's type is Spark's: not near decimals, not for integer functions, not for dates in arithmetic."""
    if any(_is_decimal(part) for part in node.walk()):
        return False
    family = sql_type(node.type).family
    return (
        isinstance(node, (exp.Cast, exp.Dot, exp.Bracket))
        or family is Family.BOOLEAN
        or (isinstance(node, exp.Div) and family is Family.FLOATING)
        or (isinstance(node, exp.Func) and family in (Family.STRING, Family.DATE, Family.TIMESTAMP))
    )


def _is_decimal(node: exp.Expr) -> bool:
    if isinstance(node, exp.Literal):
        return not node.is_string and not node.is_int
    return node.type is not None and node.type.this is exp.DType.DECIMAL


class Compiler(Arithmetic):
    """Writes the Python of a tree, node by node."""

    handlers: ClassVar[Mapping[type[exp.Expr], Callable[[Any, exp.Expr], Code]]]

    def __init__(self, positions: Mapping[str, int]) -> None:
        super().__init__()
        self.positions = positions

    def code(self, node: exp.Expr) -> Code:
        handler = self.handlers.get(type(node))
        if handler is None:
            raise refusal(f"{node.sql_name()} in {spark_sql(node)}" if isinstance(node, exp.Func) else spark_sql(node))
        return handler(self, node)

    def boolean(self, node: exp.Expr) -> Code:
        code = self.code(node)
        if code.type.family not in (Family.BOOLEAN, Family.NULL, Family.UNKNOWN):
            raise ExpressionError(
                f"{spark_sql(node)} is {code.type.name}, and a condition is BOOLEAN",
                "compare it with something, for example <> 0",
            )
        return code

    def column(self, node: exp.Expr) -> Code:
        name = flat_name(node)
        if name not in self.positions:
            raise ExpressionError(f"the row has no column {name}", f"it has {', '.join(self.positions) or 'none'}")
        return Code(f"r[{self.positions[name]}]", sql_type(node.type), atom=True)

    def literal(self, node: exp.Expr) -> Code:
        if isinstance(node, exp.RawString) or node.args.get("is_string"):
            return self.constant(node.name, types.STRING)
        return self.constant(*number(node.name))

    def truth(self, node: exp.Expr) -> Code:
        return self.constant(bool(node.this), types.BOOLEAN)

    def null(self, node: exp.Expr) -> Code:
        return Code("None", types.NULL, atom=True)

    def paren(self, node: exp.Expr) -> Code:
        return self.code(node.this)

    def connector(self, node: exp.Expr) -> Code:
        """AND and OR: the deciding value ends the evaluation, and NULL only counts if nothing decides."""
        codes = [self.boolean(operand) for operand in node.flatten()]
        decisive = isinstance(node, exp.Or)
        if not any(code.nullable for code in codes):
            text = f" {'or' if decisive else 'and'} ".join(code.text for code in codes)
            return Code(f"({text})", types.BOOLEAN, nullable=False)
        pairs = [self.once(code) for code in codes]
        decided = " or ".join(f"{first.text} is {decisive}" for first, _ in pairs)
        undecided = " or ".join(f"{later.text} is None" for _, later in pairs if later.nullable)
        return Code(f"({decisive} if {decided} else None if {undecided} else {not decisive})", types.BOOLEAN)

    def negation(self, node: exp.Expr) -> Code:
        return self.strict([self.boolean(node.this)], types.BOOLEAN, "(not {0})".format)

    def compare(self, node: exp.Expr) -> Code:
        left, right = self.code(node.this), self.code(node.expression)
        return self.compared(_SYMBOLS[type(node)], left, right, node)

    def null_safe(self, node: exp.Expr) -> Code:
        left, right = self.code(node.this), self.code(node.expression)
        left, right, body = self.comparison("==", left, right, node)
        (first, a), (second, b) = self.once(left), self.once(right)
        same = f"({first.text} is None) is ({second.text} is None) and ({a.text} is None or {body(a.text, b.text)})"
        negated = "not " if isinstance(node, exp.NullSafeNEQ) else ""
        return Code(f"({negated}({same}))", types.BOOLEAN, nullable=False)

    def is_(self, node: exp.Expr) -> Code:
        right = node.expression
        if isinstance(right, exp.Null):
            text = f"{self.code(node.this).text} is {'not ' if node.args.get('negate') else ''}None"
        elif isinstance(right, exp.Boolean):
            text = f"{self.boolean(node.this).text} is {'not ' if node.args.get('negate') else ''}{bool(right.this)}"
        else:
            raise refusal(f"IS {spark_sql(right)}")
        return Code(f"({text})", types.BOOLEAN, nullable=False)

    def between(self, node: exp.Expr) -> Code:
        if node.args.get("symmetric"):
            raise refusal("BETWEEN SYMMETRIC", "write two BETWEEN joined by OR")
        first, later = self.once(self.code(node.this))
        low = self.compared(">=", first, self.code(node.args["low"]), node)
        high = self.compared("<=", later, self.code(node.args["high"]), node)
        (low, low_again), (high, high_again) = self.once(low), self.once(high)
        nulls = f"{low_again.text} is None or {high_again.text} is None"
        return Code(
            f"(False if {low.text} is False or {high.text} is False else None if {nulls} else True)", types.BOOLEAN
        )

    def in_(self, node: exp.Expr) -> Code:
        if not node.expressions:
            raise refusal(spark_sql(node), "write the values out: IN (1, 2, 3)")
        operand, *values = self.unified((self.code(part) for part in (node.this, *node.expressions)), node)
        constants = [value.constant for value in values if value.is_constant]
        nulls = sum(isinstance(part.unnest(), exp.Null) for part in node.expressions)
        if operand.type.family in _HASHABLE and len(constants) + nulls == len(values):
            members = self.constant(frozenset(constants), types.UNKNOWN)
            body = f"(True if {{0}} in {members.text} else {'None' if nulls else 'False'})"
            code = self.strict([operand], types.BOOLEAN, body.format)
            return replace(code, nullable=operand.nullable or nulls > 0)
        first, later = self.once(operand)
        equal = [self.compared("==", later if index else first, value, node) for index, value in enumerate(values)]
        pairs = [self.once(code) for code in equal]
        found = " or ".join(f"{first.text} is True" for first, _ in pairs)
        undecided = " or ".join(f"{later.text} is None" for _, later in pairs)
        return Code(f"(True if {found} else None if {undecided} else False)", types.BOOLEAN)

    def like(self, node: exp.Expr, escape: str = "\\") -> Code:
        pattern = node.expression.unnest()
        if not (isinstance(pattern, exp.Literal) and pattern.is_string):
            raise refusal(f"LIKE with the pattern {spark_sql(pattern)}", "write the pattern as a literal")
        matches = self.constant(like_pattern(pattern.name, escape).fullmatch, types.UNKNOWN)
        test = "is None" if node.args.get("negate") else "is not None"
        [operand] = self.strings([node.this], node)
        return self.strict([operand], types.BOOLEAN, f"({matches.text}({{0}}) {test})".format)

    def escape(self, node: exp.Expr) -> Code:
        if not isinstance(node.this, exp.Like) or len(node.expression.name) != 1:
            raise refusal(spark_sql(node), "write the escape character as a literal of one character")
        return self.like(node.this, node.expression.name)

    def case(self, node: exp.Expr) -> Code:
        whens = [(when.this, when.args["true"]) for when in node.args["ifs"]]
        subject = node.args.get("this")
        if subject is None:
            conditions = [self.boolean(condition) for condition, _ in whens]
        else:
            first, later = self.once(self.code(subject))
            conditions = [
                self.compared("==", later if index else first, self.code(value), node)
                for index, (value, _) in enumerate(whens)
            ]
        return self.choice(conditions, [value for _, value in whens], node.args.get("default"), node)

    def if_(self, node: exp.Expr) -> Code:
        return self.choice([self.boolean(node.this)], [node.args["true"]], node.args.get("false"), node)

    def choice(self, conditions: list[Code], results: list[exp.Expr], default: exp.Expr | None, node: exp.Expr) -> Code:
        nodes = [*results, default if default is not None else exp.Null()]
        *values, last = codes = self.unified((self.code(value) for value in nodes), node)
        branches = "".join(
            f"{value.text} if {condition.text} is True else "
            for condition, value in zip(conditions, values, strict=True)
        )
        return Code(f"({branches}{last.text})", _result_type(codes), nullable=any(code.nullable for code in codes))

    def coalesce(self, node: exp.Expr) -> Code:
        arguments = [node.this, *node.expressions]
        *codes, last = everything = self.unified((self.code(part) for part in arguments), node)
        pairs = [self.once(code) for code in codes]
        branches = "".join(f"{later.text} if {first.text} is not None else " for first, later in pairs)
        nullable = all(code.nullable for code in everything)
        return Code(f"({branches}{last.text})", _result_type(everything), nullable=nullable)

    def nullif(self, node: exp.Expr) -> Code:
        first, later = self.once(self.code(node.this))
        equal = self.compared("==", first, self.code(node.expression), node)
        return Code(f"(None if {equal.text} is True else {later.text})", first.type)

    def concat(self, node: exp.Expr) -> Code:
        parts = list(node.flatten()) if isinstance(node, exp.DPipe) else node.expressions
        if node.args.get("coalesce") or not parts:
            raise refusal(spark_sql(node))
        return self.strict(self.strings(parts, node), types.STRING, lambda *names: f"''.join(({', '.join(names)},))")

    def strings(self, nodes: Iterable[exp.Expr], parent: exp.Expr) -> list[Code]:
        codes = [self.code(node) for node in nodes]
        for code in codes:
            if code.type.family not in (Family.STRING, Family.NULL, Family.UNKNOWN):
                raise ExpressionError(
                    f"{spark_sql(parent)} needs STRING and has {code.type.name}", "add CAST(... AS STRING)"
                )
        return codes

    def cast(self, node: exp.Expr) -> Code:
        target = sql_type(node.args["to"])
        if suffixed(node):
            return self.constant(*suffixed_number(node.this.name, target))
        if node.args.get("safe") or node.args.get("format") or node.args.get("action"):
            raise refusal(spark_sql(node), "it needs the Spark engine; or write CAST(... AS ...)")
        if isinstance(source := node.this.unnest(), exp.Literal) and source.is_string and target != types.STRING:
            return self.constant(cast_literal(source.name, target, spark_sql(node)), target)
        code = self.code(node.this)
        if code.type.family is Family.NULL:
            return replace(code, type=target)
        if target.family is Family.INTEGER and code.type.family is Family.INTEGER:
            if target.precision >= code.type.precision:
                return replace(code, type=target, constant=NOT_CONSTANT)
            return self.strict([code], target, lambda a: self.bounded(a, target))
        if target == types.DOUBLE and code.type.numeric:
            return self.coerced(code, target)
        if target.family is Family.DECIMAL and code.type.family in (Family.INTEGER, Family.DECIMAL):
            digits = digits_of(code)
            if target.precision - target.scale >= digits.precision - digits.scale and target.scale >= digits.scale:
                return self.coerced(code, target)
        if target == types.STRING and code.type.family is Family.INTEGER:
            return self.strict([code], target, "str({0})".format)
        if target == code.type:
            return code
        raise refusal(spark_sql(node), "it needs the Spark engine; or give the column that type at its source")


def _result_type(codes: Sequence[Code]) -> SqlType:
    return codes[0].type if len({code.type for code in codes}) == 1 else types.UNKNOWN


_SYMBOLS: dict[type[exp.Expr], str] = {
    exp.EQ: "==",
    exp.NEQ: "!=",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
}

# Families in which `in` a frozenset of constants is what IN means. Not timestamps: a time zone makes a difference.
_HASHABLE = frozenset(
    {
        Family.BOOLEAN,
        Family.INTEGER,
        Family.DECIMAL,
        Family.FLOATING,
        Family.STRING,
        Family.BINARY,
        Family.DATE,
    }
)

Compiler.handlers = {
    exp.Column: Compiler.column,
    exp.Literal: Compiler.literal,
    exp.RawString: Compiler.literal,
    exp.Boolean: Compiler.truth,
    exp.Null: Compiler.null,
    exp.Paren: Compiler.paren,
    exp.And: Compiler.connector,
    exp.Or: Compiler.connector,
    exp.Not: Compiler.negation,
    **dict.fromkeys(_SYMBOLS, Compiler.compare),
    exp.NullSafeEQ: Compiler.null_safe,
    exp.NullSafeNEQ: Compiler.null_safe,
    exp.Is: Compiler.is_,
    exp.Between: Compiler.between,
    exp.In: Compiler.in_,
    exp.Like: Compiler.like,
    exp.Escape: Compiler.escape,
    exp.Case: Compiler.case,
    exp.If: Compiler.if_,
    exp.Coalesce: Compiler.coalesce,
    exp.Nullif: Compiler.nullif,
    **dict.fromkeys(ARITHMETIC, Compiler.arithmetic),
    exp.Div: Compiler.division,
    exp.Mod: Compiler.remainder,
    exp.Neg: Compiler.sign,
    exp.Abs: Compiler.sign,
    exp.DPipe: Compiler.concat,
    exp.Concat: Compiler.concat,
    exp.Cast: Compiler.cast,
    exp.TryCast: Compiler.cast,
}
