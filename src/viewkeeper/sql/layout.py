"""SQL laid out for readers: a clause per line, and quotes only around names that need them."""

import re

import sqlglot
from sqlglot import exp

from viewkeeper.sql.syntax import ViewDialect

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_WORDS = frozenset(ViewDialect.tokenizer_class.KEYWORDS)


def laid_out(sql: str) -> str:
    """The same statement, over several lines."""
    tree = sqlglot.parse_one(sql, dialect=ViewDialect).transform(_without_parentheses)
    for identifier in tree.find_all(exp.Identifier):
        if _PLAIN.fullmatch(identifier.name) and identifier.name.upper() not in _WORDS:
            identifier.set("quoted", False)
    return tree.sql(ViewDialect, pretty=True, comments=False)


def _without_parentheses(node: exp.Expr) -> exp.Expr:
    """A column needs none."""
    return node.this if isinstance(node, exp.Paren) and isinstance(node.this, exp.Column) else node
