"""SQL that was read back from a warehouse: it is data, whoever wrote it, until it has passed the checks of a new view.

    stored text  ->  tree, checked node by node  ->  text written from the tree

What reaches Spark is the second text. So it has nothing that the checks have not seen, also where Spark would read the
first one in another way.
"""

import re
from functools import lru_cache

from sqlglot import exp

from viewkeeper.errors import SyntaxProblem, UnsupportedClause
from viewkeeper.sql.refusals import refuse_node
from viewkeeper.sql.syntax import not_too_deep, parse_statement, spark_sql

# Parentheses hold digits alone, and nothing opens a literal or a comment: there is no room for an expression.
_TYPE = re.compile(r"(?:[\w <>,:]|\( *\d+ *(?:, *-?\d+ *)?\))*")


@lru_cache(maxsize=8192)
def stored_expression(sql: str) -> str:
    """A scalar expression; DefinitionError if it has anything that the expressions of a view may not have."""
    with not_too_deep():
        tree = parse_statement(sql)
        if not isinstance(tree, exp.Condition):
            raise UnsupportedClause(f"{sql[:60]!r} is no expression", "")
        for node in tree.walk():
            refuse_node(node)
        return spark_sql(tree)


@lru_cache(maxsize=1024)
def stored_type(name: object) -> str:
    """The name of a type, which goes into statements as it is; SyntaxProblem if it is none."""
    if not isinstance(name, str) or not _TYPE.fullmatch(name):
        raise SyntaxProblem(f"{str(name)[:60]!r} is no type", "")
    return name
