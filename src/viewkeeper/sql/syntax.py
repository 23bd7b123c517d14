"""From text to one parsed statement, and from the parser's complaints to messages with a line and a column."""

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise

import sqlglot
from sqlglot import Token, TokenType, exp
from sqlglot.dialects.spark import Spark

from viewkeeper.errors import SyntaxProblem, UnsupportedClause, did_you_mean
from viewkeeper.sql.spark_grammar import SparkGrammar, SparkText

EXPECTED = "write CREATE MATERIALIZED VIEW name AS SELECT ... FROM source.table ..."
_TEXT = "text"
"""in the notes of a statement: what it was parsed from"""
_QUANTIFIERS = (TokenType.ALL, TokenType.DISTINCT)
_AFTER_LISTS = (TokenType.COMMA, TokenType.FROM, TokenType.WHERE, TokenType.GROUP_BY, TokenType.HAVING)


class ViewDialect(Spark):
    """Spark SQL in ANSI mode: a failing CAST and a division by zero are errors, where sqlglot's Spark gives NULL.

    It also keeps a comma in FROM apart from CROSS JOIN: only the second asks for every combination of rows.
    """

    SAFE_DIVISION = False

    class Parser(SparkGrammar):
        ADD_JOIN_ON_TRUE = False
        JOINS_HAVE_EQUAL_PRECEDENCE = False
        STRICT_CAST = True

    Generator = SparkText


def parse_statement(sql: str) -> exp.Expr:
    """The one statement of a text."""
    _refuse_empty_items(sql)
    try:
        with _quiet():
            statements = [statement for statement in sqlglot.parse(sql, dialect=ViewDialect) if statement is not None]
    except sqlglot.ParseError as error:
        raise _parse_problem(error) from error
    statements = [statement for statement in statements if not isinstance(statement, exp.Semicolon)]
    if not statements:
        raise SyntaxProblem("there is no statement in the text", EXPECTED)
    if len(statements) > 1:
        raise SyntaxProblem(
            f"the text has {len(statements)} statements, and a view is one", "define the views one at a time"
        )
    [statement] = statements
    if isinstance(statement, exp.Command):
        _refuse_beginning(sql)
        _refuse_query(sql)
        start = " ".join(sql.split())[:60]
        raise SyntaxProblem(
            f"{_line_and_column(sql, words(sql)[0].start)}: the definition is not understood: {start}", EXPECTED
        )
    statement.meta[_TEXT] = sql
    return statement


def _refuse_empty_items(sql: str) -> None:
    """sqlglot passes over a comma that nothing is listed before or after: `SELECT ALL, x`, `SELECT x, FROM t`."""
    before: tuple[TokenType | None, TokenType | None] = None, None
    for word in words(sql):
        kind = word.token_type
        opened = before[1] is TokenType.SELECT or (before[0] is TokenType.SELECT and before[1] in _QUANTIFIERS)
        if (kind is TokenType.COMMA and opened) or (kind in _AFTER_LISTS and before[1] is TokenType.COMMA):
            raise SyntaxProblem(
                f"{_line_and_column(sql, word.start)}: nothing is listed before {word.text!r}",
                "remove the comma; a column that is called like a keyword stands in backticks",
            )
        before = before[1], kind


def spark_sql(node: exp.Expr) -> str:
    """A tree as Spark SQL."""
    try:
        return node.sql(ViewDialect, comments=False, unsupported_level=sqlglot.ErrorLevel.RAISE)
    except sqlglot.UnsupportedError as error:
        raise UnsupportedClause(f"Spark SQL cannot express this: {error}", "write it in another way") from error


def position(node: exp.Expr) -> str:
    """Where a node is in the text, ready to be appended to a message; empty if the parser did not record it."""
    for identifier in node.find_all(exp.Identifier):
        if {"line", "col", "start", "end"} <= identifier.meta.keys():
            meta = identifier.meta
            return f" (line {meta['line']}, column {meta['col'] - (meta['end'] - meta['start'])})"
    text = str(node.root().meta.get(_TEXT, ""))
    found = next((word for word in words(text) if word.text.upper() in _first_words(node)), None) if text else None
    return f" ({_line_and_column(text, found.start)})" if found is not None else ""


def _first_words(node: exp.Expr) -> set[str]:
    """What may stand in the text where a node without any name in it begins."""
    if isinstance(node, exp.Anonymous):
        return {node.name.upper()}
    if isinstance(node, exp.Func):
        return set(type(node).sql_names())
    return {type(node).__name__.upper()}


def refusal(clause: str, reason: str, hint: str, node: exp.Expr) -> UnsupportedClause:
    """The error for a clause that no view has; `node` is where it stands."""
    return UnsupportedClause(f"{clause} is not supported in a view: {reason}{position(node)}", hint)


@contextmanager
def not_too_deep() -> Iterator[None]:
    """Turns the recursion of a deep tree into an error for the user."""
    try:
        yield
    except RecursionError as error:
        raise SyntaxProblem("the definition is nested too deeply", "write it with fewer nested operators") from error


def words(sql: str) -> list[Token]:
    """The words of a text. Refused: what has none, and 'it''s', which Spark 4 reads as one literal, Spark 3 as two."""
    try:
        found = ViewDialect().tokenize(sql)
    except sqlglot.TokenError as error:
        cause = str(error.__cause__ or "")
        opened = cause.removeprefix("Missing ").partition(" ")[0] if cause.startswith("Missing ") else "/*"
        start = sql.rfind(opened) if opened == "/*" else sql.find(opened)
        raise SyntaxProblem(
            f"{_line_and_column(sql, start)}: {opened} is opened and never closed", "close it"
        ) from error
    for left, right in pairwise(found):
        if left.token_type == right.token_type == TokenType.STRING and left.end + 1 == right.start:
            literals = sql[left.start : right.end + 1]
            raise SyntaxProblem(
                f"{_line_and_column(sql, left.start)}: two string literals side by side: {literals}",
                r"write a quote inside a string as \', or join two strings with ||",
            )
    return found


def _refuse_beginning(sql: str) -> None:
    """The first word of a CREATE that is none of a view's, if that is what is wrong: the parser does not say so."""
    found = words(sql)
    if found[0].text.upper() != "CREATE":
        return
    replaces = [word.text.upper() for word in found[1:3]] == ["OR", "REPLACE"]
    for word, expected in zip(found[3 if replaces else 1 :], ("MATERIALIZED", "VIEW"), strict=False):
        if word.text.upper() != expected:
            raise _unexpected(sql, word, expected)
    behind_as = next((word for before, word in pairwise(found) if before.token_type == TokenType.ALIAS), None)
    if behind_as is not None and behind_as.token_type in (TokenType.VAR, TokenType.IDENTIFIER):
        raise _unexpected(sql, behind_as, "SELECT")


def _unexpected(sql: str, word: Token, expected: str) -> SyntaxProblem:
    where = _line_and_column(sql, word.start)
    hint = f"{did_you_mean(word.text, (expected,)) or f'there should be {expected}: '}{EXPECTED}"
    return SyntaxProblem(f"{where}: unexpected {word.text!r}", hint)


def _refuse_query(sql: str) -> None:
    """What is wrong with the query of a CREATE that is not understood, if that is it: the parser does not say so."""
    for before, word in pairwise(words(sql)):
        if before.token_type == TokenType.ALIAS and word.token_type in (TokenType.SELECT, TokenType.WITH):
            blank = "".join("\n" if sign == "\n" else " " for sign in sql[: word.start])
            try:
                sqlglot.parse(blank + sql[word.start :], dialect=ViewDialect)
            except sqlglot.ParseError as error:
                raise _parse_problem(error) from error
            return


def _line_and_column(sql: str, offset: int) -> str:
    before = sql[: max(offset, 0)]
    return f"line {before.count(chr(10)) + 1}, column {len(before) - (before.rfind(chr(10)) + 1) + 1}"


def _parse_problem(error: sqlglot.ParseError) -> SyntaxProblem:
    if not error.errors:
        return SyntaxProblem(str(error), EXPECTED)
    found = error.errors[0]
    word, rest = str(found["highlight"]), str(found["end_context"])
    if "Unexpected token" in str(found["description"]):
        complaint = f"unexpected {word!r}"
    elif rest.strip():
        complaint = f"something is missing near {word!r}"
    else:
        complaint = f"the text ends too early, after {word!r}"
    context = " ".join(f"{str(found['start_context'])[-40:]}{word}{rest[:40]}".split())
    column = int(found["col"]) - len(word) + 1
    return SyntaxProblem(f"line {found['line']}, column {column}: {complaint} in: {context}", EXPECTED)


@contextmanager
def _quiet() -> Iterator[None]:
    """Keeps sqlglot from logging what it cannot parse: the caller gets an error for it."""
    thread = threading.get_ident()

    def from_elsewhere(record: logging.LogRecord) -> bool:
        return record.thread != thread

    logger = logging.getLogger("sqlglot")
    logger.addFilter(from_elsewhere)
    try:
        yield
    finally:
        logger.removeFilter(from_elsewhere)
