"""Queries of every construct over three small tables with NULLs and duplicates: name and text."""

# ruff: noqa: E501

import re
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from viewkeeper.clock import seeded
from viewkeeper.sql.relation import Relation

TABLES = {
    "a": "id BIGINT, k INT, v DECIMAL(10,2), s STRING, d DATE, f DOUBLE",
    "b": "id BIGINT, k INT, w BIGINT, t STRING, at TIMESTAMP",
    "n": "id BIGINT, tags ARRAY<STRING>, place STRUCT<zip: INT, city: STRING>, m MAP<STRING, INT>, flag BOOLEAN",
}


def relations() -> dict[str, Relation]:
    """The tables, as relations without keys."""
    made = {}
    for table, text in TABLES.items():
        columns = [one.partition(" ") for one in re.split(r", (?![^<]*>)", text)]
        made[table] = Relation(table, "", tuple(one[0] for one in columns), tuple(one[2] for one in columns))
    return made


def rows(seed: int) -> dict[str, list[tuple[Any, ...]]]:
    """Few values, so that there are matches, groups and duplicates; every column has NULLs."""
    random = seeded(seed)

    def some(*values: Any) -> Any:
        return random.choice([*values, None])

    def small() -> Any:
        return some(1, 2, 3, 4)

    a = [
        (
            small(),
            small(),
            some(Decimal("1.50"), Decimal("-2.25"), Decimal("7.00")),
            some("x", "y", "a%b", "it's $ {z} \\ `q`"),
            some(date(2020, 1, 31), date(2021, 2, 28), date(1999, 12, 31)),
            some(0.5, -1.25, 3.0),
        )
        for _ in range(20)
    ]
    b = [
        (small(), small(), some(10, 20, 30), some("x", "z"), some(datetime(2020, 5, 1, 3, 4, 5), datetime(2021, 1, 1)))
        for _ in range(14)
    ]
    n = [
        (
            small(),
            some([], ["x"], ["x", None, "y"]),
            some({"zip": 1, "city": "p"}, {"zip": None, "city": "q"}),
            some({}, {"x": 1}, {"x": 2, "y": None}),
            some(True, False),
        )
        for _ in range(10)
    ]
    return {"a": a + a[:4], "b": b + b[:3], "n": n + n[:2]}


QUERIES = {
    # select, project, filter
    "columns": "SELECT id, s FROM a",
    "star": "SELECT * FROM a",
    "same column twice": "SELECT id, id, id AS other FROM a",
    "expressions": "SELECT id + k, v * 2, -f, id % 2, f / 2, id div 2, v - 1.5BD, (id & k) | 1 FROM a",
    "comparison": "SELECT id = k, id <=> k, id <> k, v >= 1, s < 'y', NOT (id > 1) FROM a",
    "precedence": "SELECT id = k BETWEEN false AND true FROM a",
    "filter": "SELECT id FROM a WHERE v > 1 AND s LIKE 'a%' OR k IS NULL",
    "like": "SELECT s LIKE '%!%%' ESCAPE '!', s LIKE 'a\\\\%b', s RLIKE '^[xy]$', s ILIKE 'X' FROM a",
    "strings": "SELECT s = 'it\\'s $ {z} \\\\ `q`', concat(s, '$', '{id}'), upper(s), length(s), s || t FROM a JOIN b USING (id)",
    "in": "SELECT id FROM a WHERE s IN ('x', 'y') AND k NOT IN (1, 2)",
    "between": "SELECT id FROM a WHERE v BETWEEN 0 AND 5 AND id + k BETWEEN 2 AND 6",
    "case": "SELECT CASE WHEN k = 1 THEN 'one' WHEN k = 2 THEN s END, CASE k WHEN 1 THEN 1 ELSE v END, if(k > 1, k, f) FROM a",
    "nulls": "SELECT coalesce(k, id), nvl(k, 0), nvl2(k, id, 7), nullif(k, 1), ifnull(s, '-'), k IS NOT NULL FROM a",
    "casts": "SELECT CAST(id AS STRING), CAST(v AS INT), CAST(k AS DECIMAL(5,1)), CAST(d AS TIMESTAMP), v::double FROM a",
    "try": "SELECT try_cast(s AS INT), try_divide(id, k - 1), try_add(k, 2147483647), nullif(try_cast(s AS INT), 1), try_sum(id) OVER () FROM a",
    "literals": "SELECT 1Y, 2S, 3, 4L, 5.5F, 6.25D, 7.125BD, true, NULL, 'x', DATE'2020-01-02', CAST(INTERVAL '3' DAY AS STRING), "
    "CAST(INTERVAL '1-2' YEAR TO MONTH AS STRING), INTERVAL '1 02:03:04.5' DAY TO SECOND, -5, -0.5BD, id FROM a",
    "other literals": "SELECT TIMESTAMP'2020-01-02 03:04:05.678', X'1F', TIMESTAMP_NTZ'2020-01-02 03:04:05', id FROM a",
    "dates": "SELECT d + INTERVAL '3' DAY, d - INTERVAL '2' MONTH, date_add(d, k), datediff(d, DATE'2020-01-01'), "
    "extract(YEAR FROM d), month(d), date_trunc('month', d), d - DATE'2019-01-01', add_months(d, 1), last_day(d) FROM a",
    "times": "SELECT at + INTERVAL '3' HOUR, at - INTERVAL '1' YEAR, hour(at), CAST(at AS DATE), "
    "at - TIMESTAMP'2020-01-01 00:00:00', date_format(at, 'yyyy') FROM b",
    "functions": "SELECT substring(s, 1, 2), substr(s, 2), left(s, 1), right(s, 1), trim(s), lpad(s, 3, '*'), round(v, 1), "
    "ceil(v), floor(v), abs(k), power(f, 2), greatest(k, id), least(k, id), md5(s), split(s, 'a')[0], instr(s, 'b') FROM a",
    "trims": "SELECT trim('x' FROM s), trim(LEADING 'xa' FROM s), trim(TRAILING '`' FROM s), btrim(s, 'x'), ltrim('x', s), s ILIKE '%!%%' ESCAPE '!' FROM a",
    "precision": "SELECT k, approx_count_distinct(s, 0.01) FROM a GROUP BY k",
    "nested values": "SELECT place.zip, place.city, get(tags, 0), IF(size(tags) > 0, tags[0], '-'), m['x'], element_at(m, 'y'), size(tags), "
    "array_contains(tags, 'x'), named_struct('p', id, 'q', flag), array(id, 1), map('k', id) FROM n",
    "lambdas": "SELECT transform(tags, x -> upper(x)), filter(tags, (x, i) -> i > 0), exists(tags, x -> x = 'y'), "
    "aggregate(tags, '', (r, x) -> concat(r, coalesce(x, '?'))), transform(tags, x -> transform(tags, y -> x || y)) FROM n",
    # joins
    "inner join": "SELECT a.id, b.w FROM a JOIN b ON a.id = b.id AND a.k < b.k",
    "cross join": "SELECT a.id, b.w FROM a CROSS JOIN b WHERE a.k = 1",
    "comma join": "SELECT x.id, y.id, z.w FROM a x, a y, b z WHERE x.id = z.id AND y.k = z.k AND x.s = 'x'",
    "using": "SELECT * FROM a JOIN b USING (id)",
    "natural join": "SELECT * FROM a NATURAL JOIN b",
    "left join": "SELECT a.id, b.w FROM a LEFT JOIN b ON a.id = b.id AND b.w > 10",
    "right join": "SELECT a.id, a.s, b.* FROM a RIGHT JOIN b ON a.id = b.id AND a.k = 1",
    "full join": "SELECT a.id, b.w, coalesce(a.k, b.k) FROM a FULL JOIN b ON a.id = b.id AND a.k > b.k",
    "semi join": "SELECT * FROM a LEFT SEMI JOIN b ON a.id = b.id AND a.k <> b.k",
    "anti join": "SELECT * FROM a LEFT ANTI JOIN b ON a.id = b.id",
    "null safe join": "SELECT a.k, b.w FROM a JOIN b ON a.k <=> b.k",
    "join without equality": "SELECT a.id, b.id FROM a JOIN b ON a.id < b.id",
    "join of expressions": "SELECT a.id, b.id FROM a JOIN b ON a.id + 1 = b.k * 2",
    "left join without keys": "SELECT a.id, b.w FROM a LEFT JOIN b ON b.w > 25",
    "filter over left join": "SELECT a.id, b.w FROM a LEFT JOIN b ON a.id = b.id WHERE b.w IS NULL OR b.w > 10",
    "three joins": "SELECT a.s, b.t, n.flag FROM a JOIN b ON a.id = b.id LEFT JOIN n ON n.id = b.k",
    "self join": "SELECT x.id, y.s FROM a x JOIN a y ON x.id = y.k",
    # aggregates
    "group": "SELECT k, count(*), sum(v), min(s), max(d), avg(f) FROM a GROUP BY k",
    "global aggregate": "SELECT count(*), sum(id), max(v) FROM a",
    "global aggregate of nothing": "SELECT count(*), sum(id), max(v) FROM a WHERE id > 100",
    "group of nothing": "SELECT k, count(*) FROM a WHERE id > 100 GROUP BY k",
    "expressions of aggregates": "SELECT k + 1, sum(v) / count(v), max(id) - min(id), k * sum(id) FROM a GROUP BY k",
    "group by expression": "SELECT year(d), id % 2, count(*) FROM a GROUP BY year(d), id % 2",
    "group by place": "SELECT k % 2 AS p, count(*) FROM a GROUP BY 1",
    "group by constant": "SELECT 'all', count(*) FROM a GROUP BY 'all'",
    "group by all": "SELECT k, s, count(*) FROM a GROUP BY ALL",
    "having": "SELECT k FROM a GROUP BY k HAVING count(*) > 2 AND sum(v) > 0",
    "count distinct": "SELECT k, count(DISTINCT s), sum(DISTINCT id), count(DISTINCT s, id) FROM a GROUP BY k",
    "aggregate filter": "SELECT k, count(*) FILTER (WHERE v > 0), sum(id) FILTER (WHERE s = 'x') FROM a GROUP BY k",
    "statistics": "SELECT k, stddev(f), variance(f), corr(f, id), median(f), percentile(f, 0.25), skewness(f) FROM a GROUP BY k",
    "ordered aggregates": "SELECT k, max_by(s, id * 100 + f), percentile_cont(0.5) WITHIN GROUP (ORDER BY f), "
    "percentile_disc(0.5) WITHIN GROUP (ORDER BY f DESC), listagg(s, ',') WITHIN GROUP (ORDER BY s) FROM a GROUP BY k",
    "collected": "SELECT k, sort_array(collect_list(id)), sort_array(collect_set(s)), array_size(array_agg(f)) FROM a GROUP BY k",
    "logic aggregates": "SELECT id, bool_and(flag), bool_or(flag), count_if(flag), any(flag), every(flag) FROM n GROUP BY id",
    "any value": "SELECT k, first(k), any_value(k), last(k, true), approx_count_distinct(s) FROM a GROUP BY k",
    "aggregate of aggregate": "SELECT n, count(*) FROM (SELECT k, count(*) AS n FROM a GROUP BY k) GROUP BY n",
    "rollup": "SELECT k, s, count(*), grouping(k), grouping_id() FROM a GROUP BY ROLLUP (k, s)",
    "cube": "SELECT k, s, sum(v) FROM a GROUP BY CUBE (k, s)",
    "rollup of a union": "SELECT p, k, sum(id) FROM (SELECT 'a' AS p, k, id FROM a UNION ALL SELECT 'b', k, w FROM b) GROUP BY ROLLUP (p, k)",
    "grouping sets": "SELECT k, s, sum(id) FROM a GROUP BY GROUPING SETS ((k), (s), ())",
    "unpivot": "SELECT * FROM (SELECT id, k, w FROM b) UNPIVOT (value FOR name IN (k, w))",
    "distinct": "SELECT DISTINCT k, s FROM a",
    # sets
    "union all": "SELECT id, s FROM a UNION ALL SELECT k, t FROM b",
    "union": "SELECT id FROM a UNION SELECT w FROM b",
    "union of itself": "SELECT id, k FROM a UNION ALL SELECT k, id FROM a",
    "intersect": "SELECT id, k FROM a INTERSECT SELECT id, k FROM b",
    "intersect all": "SELECT k FROM a INTERSECT ALL SELECT k FROM b",
    "except": "SELECT id, k FROM a EXCEPT SELECT id, k FROM b",
    "except all": "SELECT k FROM a EXCEPT ALL SELECT k FROM b",
    # subqueries
    "exists": "SELECT id FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b.id = a.id AND b.w > 10)",
    "not exists": "SELECT id FROM a WHERE NOT EXISTS (SELECT 1 FROM b WHERE b.id = a.id AND b.k < a.k)",
    "exists or": "SELECT id FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b.id = a.id) OR k = 1",
    "exists as value": "SELECT id, EXISTS (SELECT 1 FROM b WHERE b.id = a.id) FROM a",
    "exists alone": "SELECT id FROM a WHERE EXISTS (SELECT 1 FROM b WHERE w > 20)",
    "in subquery": "SELECT id FROM a WHERE k IN (SELECT k FROM b)",
    "in subquery or": "SELECT id FROM a WHERE k IN (SELECT k FROM b WHERE w = 10) OR s IN (SELECT t FROM b)",
    "not in": "SELECT id FROM a WHERE k NOT IN (SELECT k FROM b WHERE k IS NOT NULL)",
    "not in with nulls": "SELECT id FROM a WHERE k NOT IN (SELECT k FROM b)",
    "not in of two": "SELECT id FROM a WHERE (id, k) NOT IN (SELECT id, k FROM b)",
    "not in correlated": "SELECT id FROM a WHERE k NOT IN (SELECT k FROM b WHERE b.id = a.id)",
    "not in or": "SELECT id FROM a WHERE k NOT IN (SELECT k FROM b WHERE w = 10) OR s = 'x'",
    "scalar": "SELECT id, (SELECT max(w) FROM b) FROM a WHERE v < (SELECT avg(w) FROM b)",
    "scalar of one row": "SELECT id, (SELECT w FROM b WHERE id = 1 AND k > 100) FROM a",
    "scalar correlated": "SELECT id, (SELECT sum(w) FROM b WHERE b.id = a.id) FROM a",
    "scalar count": "SELECT id, (SELECT count(*) FROM b WHERE b.id = a.id) FROM a",
    "scalar count in filter": "SELECT id FROM a WHERE (SELECT count(*) FROM b WHERE b.id = a.id AND b.w > 10) = 0",
    "scalar of greater": "SELECT id FROM a x WHERE v > (SELECT avg(v) FROM a y WHERE y.k = x.k)",
    "scalar inequality": "SELECT id, (SELECT max(w) FROM b WHERE b.id < a.id) FROM a",
    "scalar in aggregate": "SELECT k, sum(v) + (SELECT max(w) FROM b), max((SELECT min(w) FROM b) + id) FROM a GROUP BY k",
    "scalar in join": "SELECT a.id, b.id FROM a LEFT JOIN b ON a.id = b.id AND b.w > (SELECT avg(w) FROM b)",
    "scalar in having": "SELECT k, sum(id) FROM a GROUP BY k HAVING sum(id) > (SELECT avg(w) FROM b) / 4",
    "subquery in subquery": "SELECT id FROM a WHERE k IN (SELECT k FROM b WHERE w > (SELECT min(w) FROM b) AND EXISTS "
    "(SELECT 1 FROM n WHERE n.id = b.id))",
    "lateral": "SELECT a.id, l.w FROM a, LATERAL (SELECT w FROM b WHERE b.id = a.id AND b.k > a.k) l",
    "lateral aggregate": "SELECT a.id, l.n FROM a LEFT JOIN LATERAL (SELECT count(*) AS n FROM b WHERE b.id = a.id) l",
    "lateral alias": "SELECT id + 1 AS p, p * 2 AS q FROM a",
    "derived tables": "SELECT p, sum(q) FROM (SELECT id % 2 AS p, v + 1 AS q FROM a WHERE k > 1) WHERE q > 0 GROUP BY p",
    "with": "WITH c AS (SELECT k, count(*) AS n FROM a GROUP BY k) SELECT x.k, y.n FROM c x JOIN c y ON x.n = y.n",
    "with in with": "WITH c AS (WITH d AS (SELECT k FROM a) SELECT k, count(*) AS n FROM d GROUP BY k), e AS (SELECT * FROM c) "
    "SELECT e.n, c.k FROM e JOIN c ON e.k = c.k",
    # windows
    "row number": "SELECT id, row_number() OVER (PARTITION BY k ORDER BY id, s, d, v, f) FROM a",
    "ranks": "SELECT id, rank() OVER (PARTITION BY k ORDER BY id DESC), dense_rank() OVER (ORDER BY v), "
    "percent_rank() OVER (ORDER BY id), cume_dist() OVER (ORDER BY id NULLS LAST) FROM a",
    "window sums": "SELECT id, sum(v) OVER (PARTITION BY k), count(*) OVER (), sum(id) OVER (PARTITION BY s ORDER BY id) FROM a",
    "frames": "SELECT id, sum(id) OVER (ORDER BY id, k, s, d, f, v ROWS BETWEEN 1 PRECEDING AND CURRENT ROW), "
    "max(v) OVER (PARTITION BY k ORDER BY id RANGE BETWEEN 1 PRECEDING AND 2 FOLLOWING), "
    "min(id) OVER (ORDER BY id RANGE BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) FROM a",
    "offsets": "SELECT id, lag(id) OVER w, lead(id, 2, 0L) OVER w, first_value(id) OVER w, nth_value(id, 2) OVER w, ntile(3) OVER w "
    "FROM a WINDOW w AS (PARTITION BY k ORDER BY id, v, s, d, f)",
    "qualify": "SELECT * FROM a QUALIFY row_number() OVER (PARTITION BY k ORDER BY id DESC, v, s, d, f) = 1",
    "window over aggregate": "SELECT k, sum(v), rank() OVER (ORDER BY sum(v)) FROM a GROUP BY k",
    "window of expression": "SELECT id, sum(v * 2) OVER (PARTITION BY id % 2 ORDER BY k + 1) + 1 FROM a",
    # order and limit
    "order": "SELECT id, v FROM a ORDER BY v DESC NULLS LAST, id",
    "order by hidden": "SELECT id FROM a ORDER BY v",
    "limit": "SELECT id, k, v, s, d, f FROM a ORDER BY id DESC, k, v, s, d, f LIMIT 5",
    "limit by hidden": "SELECT id FROM a ORDER BY id, v, k, s, d, f LIMIT 5",
    "offset": "SELECT id, k FROM b ORDER BY id, k LIMIT 4 OFFSET 3",
    "offset alone": "SELECT id, k FROM b ORDER BY id, k OFFSET 5",
    "limit in from": "SELECT k, count(*) FROM (SELECT id, k FROM a ORDER BY id DESC, k LIMIT 7) GROUP BY k",
    "order in from": "SELECT k, count(*) FROM (SELECT id, k FROM a ORDER BY id) GROUP BY k",
    # generators
    "explode": "SELECT id, explode(tags) FROM n",
    "explode outer": "SELECT id, tag FROM n LATERAL VIEW OUTER explode(tags) x AS tag",
    "posexplode": "SELECT id, p, tag FROM n LATERAL VIEW posexplode(tags) x AS p, tag WHERE tag = 'x'",
    "explode map": "SELECT id, key, value FROM n LATERAL VIEW explode(m) x",
    "inline": "SELECT id, p, q FROM n LATERAL VIEW inline(array(struct(id AS p, 1 AS q))) x",
    "stack": "SELECT id, c FROM a LATERAL VIEW stack(2, CAST(k AS BIGINT), id) x AS c",
    "group of exploded": "SELECT tag, count(*) FROM n LATERAL VIEW explode(tags) x AS tag GROUP BY tag",
    "pipe": "FROM a |> WHERE k > 1 |> AGGREGATE sum(v) AS total GROUP BY k |> WHERE total > 0",
}

RECOMPUTED = {
    "options of a function": "SELECT to_json(named_struct('z', k, 'a', id), map('sortKeys', 'true')) FROM a",
    "type of a function": "SELECT from_json('{\"a\": 1}', 'a INT'), make_timestamp_ntz(2020, 1, 2, 3, 4, 5) FROM a",
    "function that tries": "SELECT try_to_date(s, 'yyyy-MM-dd'), try_to_timestamp(s) FROM a",
    "pivot": "SELECT * FROM (SELECT k, s, id FROM a) PIVOT (sum(id) FOR s IN ('x', 'y'))",
    "values": "SELECT a.id, x.p FROM a JOIN (VALUES (1, 'one'), (2, 'two')) AS x(k, p) ON a.k = x.k",
    "one row": "SELECT 1 AS one, (SELECT max(id) FROM a) AS most",
    "range": "SELECT a.id, r.id AS other FROM a JOIN range(3) r ON a.id = r.id",
    "recursive": "WITH RECURSIVE r(i) AS (SELECT min(id) FROM a UNION ALL SELECT i + 1 FROM r WHERE i < 4) SELECT i FROM r",
    "qualified": "SELECT a.id, a.*, x.p FROM a, (VALUES (1)) AS x(p) WHERE a.k = x.p -- ends with a comment",
}
