"""read_query: the text of a query as an operator tree."""

from collections.abc import Mapping
from typing import Any

from viewkeeper.errors import first_line, is_of_engine
from viewkeeper.sql.catalyst.analysis import Analysis, analysis_of
from viewkeeper.sql.catalyst.literals import NotRendered
from viewkeeper.sql.catalyst.operators import Conversion
from viewkeeper.sql.catalyst.plan_json import parsed
from viewkeeper.sql.catalyst.recomputing import recompute
from viewkeeper.sql.catalyst.refusals import refuse
from viewkeeper.sql.catalyst.spark_failures import definition_error
from viewkeeper.sql.relation import Relation
from viewkeeper.sql.tree import Query


def read_query(session: Any, sql: str, relations: Mapping[str, Relation]) -> Query:
    """The tree of a query over these relations (by their names, however they are spelled).

    What has no operator becomes a Recompute of the whole query, which says why. Raises an error of `DefinitionError`'s
    kind, with the line and position that Spark names.
    """
    analysis = analysis_of(session)
    with analysis.settings():
        plan = _analyzed(analysis, sql, relations)
        refuse(analysis, parsed(plan.toJSON()))
        try:
            return Conversion(analysis, sql, relations).query(plan)
        except NotRendered as reason:
            why = str(reason)
        except Exception as error:
            if not is_of_engine(error):
                raise
            why = f"a rule of Spark that failed: {first_line(error)}"
        return recompute(analysis, sql, plan, relations, why)


def _analyzed(analysis: Analysis, sql: str, relations: Mapping[str, Relation]) -> Any:
    try:
        return analysis.analyzed(sql, relations)
    except Exception as error:
        if not is_of_engine(error):
            raise
        raise definition_error(error, tuple(relations)) from None
