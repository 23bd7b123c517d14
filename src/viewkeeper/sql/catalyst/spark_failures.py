"""What Spark says of a query that it cannot read, as one of our errors."""

import re

from viewkeeper.errors import DefinitionError, SyntaxProblem, UnknownName, UnsupportedClause, did_you_mean, first_line
from viewkeeper.sql.outside_sql import FUNCTIONS

_PLACE = re.compile(r"\(?line (\d+),? pos (\d+)\)?")
_UNKNOWN = ("TABLE_OR_VIEW_NOT_FOUND", "UNRESOLVED_COLUMN", "UNRESOLVED_ROUTINE", "UNRESOLVED_FIELD", "FIELD_NOT_FOUND")
_NAMED = re.compile(r"`(?:[^`]|``)+`(?:\.`(?:[^`]|``)+`)*")


def definition_error(error: Exception, relations: tuple[str, ...]) -> DefinitionError:
    """One sentence of fact, with the line and position that Spark names, and one hint."""
    text = str(error)
    condition = re.match(r"\s*\[([A-Z0-9_.]+)\]", text)
    kind = condition[1] if condition else ""
    message = _sentence(text)
    place = _PLACE.search(text)
    where = f" (line {place[1]}, position {place[2]})" if place is not None else ""
    message += where
    if kind.startswith("UNRESOLVED_ROUTINE") and (called := _leaving_sql(text)) is not None:
        return UnsupportedClause(
            f"the function {called} is refused: it runs code"
            + (f" (line {place[1]}, position {place[2]})" if place else ""),
            "compute the value in your own program, or at the source",
        )
    if kind.startswith(_UNKNOWN):
        return UnknownName(message, _hint(kind, text, relations))
    if kind.startswith("PARSE") or type(error).__name__ == "ParseException":
        return SyntaxProblem(message, "a view is one SELECT in Spark's SQL")
    if not kind:
        return DefinitionError(f"Spark does not read the query: {first_line(error)}", "write it in Spark's SQL")
    if kind.startswith(("UNSUPPORTED", "NOT_SUPPORTED")):
        return UnsupportedClause(message, "write the query without it")
    return DefinitionError(message, "correct the query; Spark's documentation of errors has " + kind.partition(".")[0])


def _leaving_sql(text: str) -> str | None:
    named = _NAMED.search(text)
    name = named[0].replace("`", "").rpartition(".")[2].lower() if named else ""
    return name if name in FUNCTIONS else None


def _sentence(text: str) -> str:
    """The first sentence of a message, without its condition, its SQLSTATE and the plan that follows."""
    line = re.sub(r"^\s*\[[A-Z0-9_.]+\]\s*", "", text.strip()).splitlines()[0]
    line = re.split(r"\s*SQLSTATE:|; line \d+", line)[0]
    line = re.split(r"(?<=[.!?])\s+(?=[A-Z])", line)[0]
    return line.strip().rstrip(".")


def _hint(kind: str, text: str, relations: tuple[str, ...]) -> str:
    if kind.startswith("TABLE_OR_VIEW"):
        named = _NAMED.search(text)
        word = named[0].replace("`", "") if named else ""
        known = ", ".join(relations) or "none"
        return f"{did_you_mean(word, relations)}known tables and views: {known}"
    suggested = re.search(r"(?:one of the following|Did you mean)[^\[]*\[([^\]]*)\]", text)
    if suggested:
        return "did you mean " + suggested[1].replace("`", "") + "?"
    if kind.startswith("UNRESOLVED_ROUTINE"):
        return "views use the functions that are built into Spark"
    return "name a column of the relations in FROM"
