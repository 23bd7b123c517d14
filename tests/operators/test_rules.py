"""Every operator maintained by its rule, over random changes; Spark says what its rows should be."""

from datetime import date
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest
from maintained import Maintained, random_changes

from viewkeeper.clock import seeded
from viewkeeper.sql.relation import Relation

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

RELATIONS = {
    "s.a": Relation(
        "s.a", "s", ("id", "k", "v", "s", "d", "f"), ("BIGINT", "INT", "DECIMAL(10,2)", "STRING", "DATE", "DOUBLE")
    ),
    "t.b": Relation("t.b", "t", ("id", "k", "w"), ("BIGINT", "INT", "BIGINT")),
    "t.c": Relation("t.c", "t", ("id", "name"), ("BIGINT", "STRING"), ("id",)),
}
QUERIES = {
    "project": "SELECT id + k AS x, upper(s) AS u FROM s.a WHERE v > 1 OR k IS NULL",
    "in-spark": "SELECT soundex(s) AS x, k FROM s.a WHERE s RLIKE '^[xy]'",
    "join": "SELECT a.s, b.w FROM s.a a JOIN t.b b ON a.k = b.k AND a.id < b.w",
    "self-join": "SELECT x.id, y.s FROM s.a x JOIN s.a y ON x.k = y.k + 1",
    "cross": "SELECT a.id, c.name FROM s.a a CROSS JOIN t.c c WHERE a.k > c.id",
    "left": "SELECT a.id, a.k, b.w FROM s.a a LEFT JOIN t.b b ON a.k = b.k AND b.w > 10",
    "full": "SELECT a.s, b.w FROM s.a a FULL JOIN t.b b ON a.id = b.id",
    "between": "SELECT a.id, b.w FROM s.a a LEFT JOIN t.b b ON b.id BETWEEN a.k AND a.k + 1",
    "exists": "SELECT id, s FROM s.a WHERE EXISTS (SELECT 1 FROM t.b WHERE b.k = a.k AND b.w > a.id)",
    "not-exists": "SELECT id, s FROM s.a WHERE NOT EXISTS (SELECT 1 FROM t.b WHERE b.k = a.k)",
    "not-in": "SELECT id FROM s.a WHERE k NOT IN (SELECT k FROM t.b WHERE w > 20)",
    "not-in-a-key": "SELECT id, name FROM t.c WHERE id NOT IN (SELECT id FROM t.b WHERE id IS NOT NULL)",
    "exists-or": "SELECT id FROM s.a WHERE k = 1 OR EXISTS (SELECT 1 FROM t.b WHERE b.id = a.id)",
    "scalar": "SELECT id, v / (SELECT SUM(v) FROM s.a) AS part FROM s.a",
    "correlated": "SELECT id FROM s.a x WHERE v > (SELECT AVG(v) FROM s.a y WHERE y.k = x.k)",
    "count-bug": "SELECT id FROM t.c WHERE (SELECT COUNT(*) FROM t.b WHERE b.id = c.id) = 0",
    "sums": "SELECT k, COUNT(*) AS n, SUM(v) AS s, AVG(v) AS a, AVG(id) AS i, COUNT(s) AS c FROM s.a GROUP BY k",
    "filtered": "SELECT k, SUM(v) FILTER (WHERE s = 'x') AS x, COUNT(*) FILTER (WHERE v > 1) AS n FROM s.a GROUP BY k",
    "global": "SELECT COUNT(*) AS n, SUM(v) AS s FROM s.a WHERE k = 3",
    "extremes": "SELECT k, MIN(v) AS low, MAX(d) AS high, COUNT(DISTINCT s) AS n FROM s.a GROUP BY k",
    "doubles": "SELECT k, SUM(f) AS s, AVG(f) AS a, STDDEV(f) AS d FROM s.a GROUP BY k",
    "holistic": "SELECT k, MEDIAN(v) AS m, MAX_BY(s, id * 100 + v) AS b, BOOL_OR(id > 2) AS o FROM s.a GROUP BY k",
    "over-outer": "SELECT name, COUNT(b.id) AS n, SUM(w) AS w FROM t.c LEFT JOIN t.b ON c.id = b.id GROUP BY name",
    "over-aggregate": "SELECT n, COUNT(*) AS m FROM (SELECT k, COUNT(*) AS n FROM s.a GROUP BY k) GROUP BY n",
    "rollup": "SELECT k, s, SUM(v) AS t, GROUPING(s) AS g FROM s.a GROUP BY ROLLUP (k, s)",
    "distinct": "SELECT DISTINCT k, s FROM s.a",
    "union": "SELECT id FROM s.a UNION SELECT id FROM t.b",
    "union-all": "SELECT id, 'a' AS x FROM s.a UNION ALL SELECT id, 'b' FROM t.b",
    "intersect-all": "SELECT id FROM s.a INTERSECT ALL SELECT id FROM t.b",
    "except-all": "SELECT id FROM s.a EXCEPT ALL SELECT id FROM t.b",
    "except": "SELECT id FROM s.a EXCEPT SELECT id FROM t.b",
    "first-row": "SELECT * FROM s.a QUALIFY ROW_NUMBER() OVER (PARTITION BY k ORDER BY d DESC, id) = 1",
    "window": "SELECT id, LAG(v) OVER w AS l, SUM(v) OVER w AS r FROM s.a WINDOW w AS (PARTITION BY k ORDER BY d)",
    "one-partition": "SELECT id, RANK() OVER (ORDER BY v) AS r FROM s.a",
    "limit": "SELECT id, v FROM s.a ORDER BY v DESC LIMIT 3 OFFSET 1",
    "explode": "SELECT id, e FROM s.a LATERAL VIEW EXPLODE(ARRAY(k, id)) t AS e",
}


def rows(seed: int) -> dict[str, list[tuple[Any, ...]]]:
    """Few values, so that there are matches, groups and duplicates; what is no key has NULLs."""
    random = seeded(seed)

    def some(*values: Any) -> Any:
        return random.choice([*values, None])

    days = (date(2020, 1, 31), date(2021, 2, 28), date(1999, 12, 31))
    amounts = (Decimal("1.50"), Decimal("-2.25"), Decimal("7.00"))
    a = [
        (some(1, 2, 3, 4), some(1, 2, 3), some(*amounts), some("x", "y", "z"), some(*days), some(0.1, 0.2, 3.5))
        for _ in range(18)
    ]
    b = [(some(1, 2, 3, 4), some(1, 2, 3), some(10, 20, 30)) for _ in range(12)]
    return {"s.a": a + a[:4], "t.b": b + b[:2], "t.c": [(number, some("p", "q")) for number in range(seed, seed + 5)]}


@pytest.mark.parametrize("name", QUERIES)
def test_rule(name: str, spark: "SparkSession") -> None:
    maintained = Maintained(spark, QUERIES[name], RELATIONS, rows(1))
    random = seeded(len(name))
    for round in range(2):
        maintained.change(random_changes(random, maintained.contents, rows(20 + 10 * round)))
        assert maintained.found() == maintained.expected(), round
    assert maintained.wrong_tables() == []


@pytest.mark.parametrize("name", ["left", "sums", "extremes", "first-row", "except-all", "global"])
def test_rule_from_nothing_to_nothing(name: str, spark: "SparkSession") -> None:
    maintained = Maintained(spark, QUERIES[name], RELATIONS, {relation: [] for relation in RELATIONS})
    come = {relation: [(row, 1) for row in some] for relation, some in rows(1).items()}
    maintained.change(come)
    assert maintained.found() == maintained.expected()
    maintained.change({relation: [(row, -1) for row, _ in some] for relation, some in come.items()})
    assert maintained.found() == maintained.expected()
