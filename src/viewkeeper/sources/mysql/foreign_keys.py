"""Foreign keys by which the server changes the rows of a table itself, as the definition of that table states them.

    CREATE TABLE child (..., CONSTRAINT name FOREIGN KEY (...) REFERENCES parent (...) ON DELETE CASCADE)

InnoDB carries these actions out below the binary log. The rows that change are always the child's, at every level of a
chain and whatever schema the parent is in, so the child's own definition decides. SHOW CREATE TABLE shows it to whoever
has any privilege on the table; information_schema.referential_constraints is empty for a user who has SELECT only.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from viewkeeper.sources.mysql.connections import quoted, run

HARMLESS = ("RESTRICT", "NO ACTION")

_TOKEN = re.compile(r"`(?:[^`]|``)*`|'(?:[^'\\]|''|\\.)*'|\w+|[^\w\s]", re.DOTALL)


@dataclass(frozen=True)
class Acting:
    """A foreign key, the event at its parent (DELETE, UPDATE) and what the server then does to the child."""

    constraint: str
    event: str
    action: str


def acting_keys(connection: Any, database: str, table: str) -> list[Acting]:
    """The foreign keys that change a table; an error of the driver if the user may not read its definition."""
    # Names in quotes, whatever the server's default is: an unquoted one could be taken for a word of the statement.
    run(connection, "SET SESSION sql_quote_show_create = 1")
    ((_, definition, *_rest),) = run(connection, f"SHOW CREATE TABLE {quoted(database)}.{quoted(table)}")
    return list(acting_in(definition.decode() if isinstance(definition, bytes) else definition))


def acting_in(definition: str) -> Iterator[Acting]:
    """The foreign keys in the text of a CREATE TABLE that do more than refuse."""
    tokens = _TOKEN.findall(definition)
    for start, token in enumerate(tokens):
        if tokens[start : start + 2] != ["FOREIGN", "KEY"]:
            continue
        constraint = tokens[start - 1].strip("`").replace("``", "`")
        depth, place = 0, start
        while place < len(tokens) and depth >= 0 and not (depth == 0 and tokens[place] == ","):
            token = tokens[place]
            depth += (token == "(") - (token == ")")
            if token == "ON":
                event, action = tokens[place + 1], " ".join(tokens[place + 2 : place + 4])
                action = action if action in ("SET NULL", "SET DEFAULT", "NO ACTION") else tokens[place + 2]
                if action not in HARMLESS:
                    yield Acting(constraint, event, action)
            place += 1
