"""A stored tree may come from somebody else: what is no expression of a view is refused when it is read."""

import pytest

from viewkeeper.errors import ViewkeeperError
from viewkeeper.planner.composed.checked_texts import check_texts
from viewkeeper.sql.tree import Column, Computed, Filter, Project, Query, Recompute, Scan

SCAN = Scan("s.t", ("id",), (Column("c1", "bigint"),))


def query(sql: str, type: str = "bigint") -> Query:
    return Query(Project(SCAN, (Computed(Column("c2", type), sql),)), ("x",))


@pytest.mark.parametrize(
    "sql",
    [
        "(c1 + 1L)",
        "CASE WHEN (c1 > 3L) THEN 'select reflect(x)' END",
        "row_number() OVER (PARTITION BY c1 ORDER BY c1 ASC NULLS FIRST ROWS UNBOUNDED PRECEDING)",
        "transform(array(c1), x -> (x + 1L))",
        "CAST('2020-01-01' AS DATE)",
    ],
)
def test_expressions(sql: str) -> None:
    check_texts(query(sql))


@pytest.mark.parametrize(
    "sql",
    [
        "java_method('java.lang.System', 'exit', 1)",
        "coalesce(reflect('java.lang.System', 'getenv', 'HOME'), '')",
        "(SELECT max(value) FROM parquet.`/etc`)",
        "EXISTS (SELECT 1 FROM secrets)",
        "c1 FROM secrets; DROP TABLE x",
        "c1, c1",
        "c1 FROM secrets UNION SELECT 1",
    ],
)
def test_no_expressions(sql: str) -> None:
    with pytest.raises(ViewkeeperError):
        check_texts(query(sql))
    with pytest.raises(ViewkeeperError):
        check_texts(Query(Filter(SCAN, sql), ("x",)))


def test_names_and_types() -> None:
    with pytest.raises(ViewkeeperError):
        check_texts(query("c1", "bigint) FROM x --"))
    with pytest.raises(ViewkeeperError):
        check_texts(Query(Scan("s.t", ("id",), (Column("c1, reflect('a')", "bigint"),)), ("x",)))


@pytest.mark.parametrize(
    "sql", ["SELECT * FROM secrets", "SELECT reflect('a', 'b') FROM input_1", "DROP TABLE input_1"]
)
def test_whole_queries(sql: str) -> None:
    def whole(text: str) -> Query:
        return Query(Recompute(text, (SCAN,), ("input_1",), (Column("c2", "bigint"),), "why"), ("x",))

    check_texts(whole("WITH a AS (SELECT id FROM input_1) SELECT id FROM a"))
    with pytest.raises(ViewkeeperError):
        check_texts(whole(sql))
