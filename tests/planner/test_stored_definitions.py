"""The SQL in the properties of a table is parsed once for all tables of a family, and again for other relations."""

from dataclasses import replace

import pytest

from viewkeeper.planner.summaries import lattice
from viewkeeper.planner.summaries.lattice import view_of
from viewkeeper.sql.relation import Relation

SALES = Relation("shop.sales", "shop", ("city", "item", "qty"), ("STRING", "STRING", "INT"))
CUBE = "CREATE MATERIALIZED VIEW sold AS SELECT city, item, SUM(qty) AS q FROM shop.sales GROUP BY CUBE(city, item)"


def test_a_family_is_parsed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    parsed: list[str] = []
    parse = lattice.parse_definition
    monkeypatch.setattr(lattice, "parse_definition", lambda sql, catalog: parsed.append(sql) or parse(sql, catalog))
    lattice._parsed.cache_clear()
    members = [view_of(CUBE, member, {"shop.sales": SALES}) for member in (0, 1, 2, 3)]
    assert len({member.name for member in members}) == 4
    assert parsed == [CUBE]
    wider = replace(SALES, types=("STRING", "STRING", "BIGINT"))
    assert view_of(CUBE, 0, {"shop.sales": wider}) != members[0]
    assert parsed == [CUBE, CUBE]
