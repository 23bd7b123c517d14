"""Spark's grammar of expressions, where sqlglot's reads a text in another way.

    boolean    :  NOT boolean  |  value predicate?
    predicate  :  [NOT] BETWEEN value AND value  |  [NOT] IN (...)  |  [NOT] LIKE value  |  IS [NOT] NULL  |  ...
    value      :  unary   * / % DIV   + - ||   << >> >>>   &   ^   |   = <=> <> < <= > >=        tightest first

A comparison is a value, so it binds tighter than BETWEEN, IN, LIKE and IS, and there is one predicate at most. Where
other databases read the operators differently the tree gets parentheses: its text means the same in every dialect.

`3L`, `3S`, `3Y`, `3D`, `3F` and `3BD` are literals. sqlglot has casts for them; those are marked, because the digits of
a DECIMAL result depend on whether an operand is a literal.
"""

from collections.abc import Callable
from typing import ClassVar

from sqlglot import TokenType, exp
from sqlglot.generators.spark import SparkGenerator
from sqlglot.parsers.spark import SparkParser

SUFFIX = "suffix"
"""in the notes of a cast that stands for a literal: the letters behind its digits"""
_SUFFIXES = frozenset({"L", "S", "Y", "D", "F", "BD"})
_COMPARISONS: dict[TokenType, type[exp.Binary]] = {**SparkParser.EQUALITY, **SparkParser.COMPARISON}
_PREDICATES = frozenset(
    {TokenType.BETWEEN, TokenType.ILIKE, TokenType.IN, TokenType.IS, TokenType.LIKE, TokenType.RLIKE}
)
_SHIFTS = (
    ((TokenType.LT, TokenType.LT), exp.BitwiseLeftShift),
    ((TokenType.GT, TokenType.GT), exp.BitwiseRightShift),
)
_BITS = (
    exp.BitwiseAnd, exp.BitwiseOr, exp.BitwiseXor, exp.BitwiseLeftShift, exp.BitwiseRightShift,
)  # fmt: skip
_APART = (*_COMPARISONS.values(), exp.NullSafeNEQ, exp.Between, exp.In, exp.Is, exp.Like, exp.ILike, exp.RegexpLike)
_APART += (exp.Escape, exp.Not)


class SparkGrammar(SparkParser):
    """Reads expressions as Spark does."""

    UNARY_PARSERS: ClassVar = {
        kind: read for kind, read in SparkParser.UNARY_PARSERS.items() if kind is not TokenType.NOT
    }

    def _parse_equality(self, parse_is: bool = True) -> exp.Expr | None:
        if self._match(TokenType.NOT):
            return self.expression(exp.Not(this=self._parse_equality()))
        return self._parse_range()

    def _parse_comparison(self, this: exp.Expr | None = None) -> exp.Expr | None:
        return self._parse_bitwise()

    def _parse_range(self, this: exp.Expr | None = None, parse_is: bool = False) -> exp.Expr | None:
        """value predicate?"""
        this = this or self._parse_bitwise()
        negated = self._match(TokenType.NOT)
        if not self._match_set(_PREDICATES):
            if negated:
                self._retreat(self._index - 1)
            return this
        found = self.RANGE_PARSERS[self._prev.token_type](self, _apart(this))
        for part in ("low", "high", "expression"):
            if found is not None and isinstance(operand := found.args.get(part), exp.Expr):
                found.set(part, _apart(operand))
        return self._negate_range(found) if negated else found

    def _parse_bitwise(self) -> exp.Expr | None:
        """A value, as Spark's grammar calls it."""
        this = self._bits(TokenType.PIPE, lambda: self._bits(TokenType.CARET, self._conjunction_of_bits))
        while self._match_set(_COMPARISONS):
            kind, comments = _COMPARISONS[self._prev.token_type], self._prev_comments
            right = self._bits(TokenType.PIPE, lambda: self._bits(TokenType.CARET, self._conjunction_of_bits))
            this = self.expression(kind(this=_apart(this), expression=_apart(right)), comments=comments)
        return this

    def _conjunction_of_bits(self) -> exp.Expr | None:
        return self._bits(TokenType.AMP, self._shift)

    def _bits(self, operator: TokenType, operand: Callable[[], exp.Expr | None]) -> exp.Expr | None:
        this = operand()
        while self._match(operator):
            kind = self.BITWISE[operator]
            this = self.expression(kind(this=_bits_apart(this, kind), expression=_bits_apart(operand(), kind)))
        return this

    def _shift(self) -> exp.Expr | None:
        this = self._parse_term()
        while kind := next((kind for tokens, kind in _SHIFTS if self._match_pair(*tokens)), None):
            this = self.expression(kind(this=_bits_apart(this, kind), expression=self._parse_term()))
        return this

    def _parse_term(self, parse_mod: bool = True) -> exp.Expr | None:
        """+ and - and ||, from left to right."""
        this = super()._parse_term(parse_mod)
        while self._match(TokenType.DPIPE):
            left = exp.Paren(this=this) if isinstance(this, (exp.Add, exp.Sub)) else this
            right = self._parse_factor(parse_mod=parse_mod)
            this = self.expression(exp.DPipe(this=left, expression=right, safe=False))
            while self._match_set((TokenType.PLUS, TokenType.DASH)):
                operator = self.TERM[self._prev.token_type]
                left = exp.Paren(this=this) if isinstance(this, exp.DPipe) else this
                this = self.expression(operator(this=left, expression=self._parse_factor(parse_mod=parse_mod)))
        return this

    def build_cast(self, strict: bool, **kwargs: exp.Expr) -> exp.Expr:
        suffix = self._prev.text.upper()
        literal = kwargs.get("this")
        cast = super().build_cast(strict, **kwargs)
        if suffix in _SUFFIXES and isinstance(literal, exp.Literal) and not literal.is_string:
            cast.meta[SUFFIX] = suffix
        return cast


class SparkText(SparkGenerator):
    """Writes trees as Spark reads them."""

    TRANSFORMS: ClassVar = {
        **SparkGenerator.TRANSFORMS,
        exp.UnixDate: lambda self, node: self.func("UNIX_DATE", node.this),
    }

    def cast_sql(self, expression: exp.Cast, safe_prefix: str | None = None) -> str:
        if suffix := expression.meta.get(SUFFIX):
            return f"{expression.this.name}{suffix}"
        return super().cast_sql(expression, safe_prefix)


def suffixed(node: exp.Expr) -> bool:
    """Whether a cast is a literal with a suffix."""
    return isinstance(node, exp.Cast) and SUFFIX in node.meta


def _apart(node: exp.Expr | None) -> exp.Expr | None:
    """The operand of a predicate, or of a comparison."""
    return exp.Paren(this=node) if isinstance(node, _APART) else node


def _bits_apart(node: exp.Expr | None, kind: type[exp.Expr]) -> exp.Expr | None:
    return exp.Paren(this=node) if isinstance(node, _BITS) and type(node) is not kind else node
