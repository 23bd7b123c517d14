"""read_query: the text of a query as an operator tree."""

from collections.abc import Mapping
from typing import Any

from viewkeeper.errors import UnsupportedClause, is_of_engine
from viewkeeper.sql.catalyst.analysis import analysis_of
from viewkeeper.sql.catalyst.literals import NotRendered
from viewkeeper.sql.catalyst.operators import Conversion
from viewkeeper.sql.catalyst.spark_failures import definition_error
from viewkeeper.sql.relation import Relation
from viewkeeper.sql.tree import Query


def read_query(session: Any, sql: str, relations: Mapping[str, Relation]) -> Query:
    """The tree of a query over these relations (by their names, however they are spelled).

    Raises an error of `DefinitionError`'s kind, with the line and position that Spark names.
    """
    analysis = analysis_of(session)
    with analysis.settings():
        try:
            plan = analysis.analyzed(sql, relations)
        except Exception as error:
            if not is_of_engine(error):
                raise
            raise definition_error(error, tuple(relations)) from None
        try:
            return Conversion(analysis, dict(relations)).query(plan)
        except NotRendered as reason:
            raise UnsupportedClause(
                f"the query has no operator tree: it has {reason}", "write it without that"
            ) from None
