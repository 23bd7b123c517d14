"""What a CREATE says about a view of that name that is there already.

    CREATE MATERIALIZED VIEW v                     refuse
    CREATE OR REPLACE MATERIALIZED VIEW v          replace
    CREATE MATERIALIZED VIEW IF NOT EXISTS v       keep

The clause is about the moment and not about the view, so the definition that is kept is the text without it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from sqlglot.errors import TokenError

from viewkeeper.errors import DefinitionError
from viewkeeper.sql.syntax import ViewDialect


class IfThere(StrEnum):
    """What becomes of a view that is there already."""

    REFUSE = "refuse"
    REPLACE = "replace"
    KEEP = "keep"


@dataclass(frozen=True)
class CreateClause:
    """A definition without its clause, and what the clause says."""

    sql: str
    if_there: IfThere = IfThere.REFUSE
    creates: bool = True
    """whether it is a CREATE at all, and not only a SELECT"""


_CLAUSES = {
    ("CREATE", "OR", "REPLACE"): ((1, 2), IfThere.REPLACE),
    ("CREATE", "MATERIALIZED", "VIEW", "IF", "NOT", "EXISTS"): ((3, 5), IfThere.KEEP),
}


def with_name(sql: str, known: Mapping[str, str]) -> str:
    """A CREATE with the name of a view spelled as it is known; `known` has the spellings by folded case."""
    try:
        tokens = ViewDialect().tokenize(sql)
    except TokenError:
        return sql
    words = [token.text.upper() for token in tokens[:9]]
    if words[:1] != ["CREATE"] or "VIEW" not in words:
        return sql
    place = words.index("VIEW") + 1
    place += 3 if words[place : place + 3] == ["IF", "NOT", "EXISTS"] else 0
    if place >= len(tokens):
        return sql
    name = tokens[place]
    spelled = known.get(name.text.casefold(), name.text)
    if spelled == name.text:
        return sql
    return f"{sql[: name.start]}`{spelled.replace('`', '``')}`{sql[name.end + 1 :]}"


def read_create(sql: str) -> CreateClause:
    """Take the clause out of a text. Whatever is not understood is left as it is, to whoever reads the definition."""
    try:
        tokens = ViewDialect().tokenize(sql)
    except TokenError:
        return CreateClause(sql)
    words = tuple(token.text.upper() for token in tokens[:9])
    if words[:3] == ("CREATE", "OR", "REPLACE") and words[3:8] == ("MATERIALIZED", "VIEW", "IF", "NOT", "EXISTS"):
        raise DefinitionError("OR REPLACE and IF NOT EXISTS contradict each other", "keep one of the two")
    for clause, ((first, last), meaning) in _CLAUSES.items():
        if words[: len(clause)] == clause:
            # What stands between the words stays: a comment may be there.
            return CreateClause(sql[: tokens[first].start] + sql[tokens[last].end + 1 :].lstrip(), meaning)
    return CreateClause(sql, creates=words[:1] == ("CREATE",))
