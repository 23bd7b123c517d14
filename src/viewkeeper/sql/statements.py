"""A text of several statements, one by one.

Each statement is cut out at its first and last word, so that comments before and after it are gone, and padded in
front: its lines and columns are those of the whole text, and so are those in messages about it.
"""

from sqlglot import TokenType

from viewkeeper.sql.syntax import words


def statements(text: str) -> list[str]:
    """The statements between semicolons; SyntaxProblem if the text has no words to parse."""
    found: list[str] = []
    first: int | None = None
    last = 0
    for word in words(text):
        if word.token_type == TokenType.SEMICOLON:
            if first is not None:
                found.append(_cut(text, first, last))
            first = None
            continue
        first = word.start if first is None else first
        last = word.end
    if first is not None:
        found.append(_cut(text, first, last))
    return found


def first_line(statement: str) -> int:
    """The line at which a statement begins."""
    return len(statement) - len(statement.lstrip("\n")) + 1


def _cut(text: str, first: int, last: int) -> str:
    line_start = text.rfind("\n", 0, first) + 1
    return "\n" * text.count("\n", 0, first) + " " * (first - line_start) + text[first : last + 1]
