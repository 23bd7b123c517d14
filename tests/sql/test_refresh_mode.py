"""The property `refresh`: when a view follows its sources."""

import pytest

from viewkeeper.errors import DefinitionError
from viewkeeper.sql.parse import parse_view
from viewkeeper.sql.parse_summary import parse_definition
from viewkeeper.sql.refresh_mode import Refresh, RefreshMode, refresh_of
from viewkeeper.sql.relation import Catalog


@pytest.mark.parametrize(
    ("text", "refresh"),
    [
        ("continuous", Refresh(RefreshMode.CONTINUOUS)),
        ("Manual", Refresh(RefreshMode.MANUAL)),
        ("every 1 second", Refresh(RefreshMode.EVERY, 1)),
        ("every 30 seconds", Refresh(RefreshMode.EVERY, 30)),
        ("every 5 minutes", Refresh(RefreshMode.EVERY, 300)),
        (" EVERY  2\tHours ", Refresh(RefreshMode.EVERY, 7200)),
        ("every 1 day", Refresh(RefreshMode.EVERY, 86400)),
        ("every 7 days", Refresh(RefreshMode.EVERY, 604800)),
    ],
)
def test_refresh(text: str, refresh: Refresh) -> None:
    assert refresh_of([("group", "g"), ("refresh", text)]) == refresh


def test_a_view_is_refreshed_continuously_unless_it_says_otherwise() -> None:
    assert refresh_of([("group", "g")]) == Refresh(RefreshMode.CONTINUOUS)


@pytest.mark.parametrize(
    "text",
    ["", "daily", "every", "every day", "every 0 seconds", "every -1 seconds", "every 1.5 hours", "every 1 week",
     "every 5 minutes or so", "5 minutes", "every 1234567890 days"],
)  # fmt: skip
@pytest.mark.parametrize("parse", [parse_view, parse_definition])
def test_what_says_nothing_about_when(catalog: Catalog, parse: object, text: str) -> None:
    assert callable(parse)
    with pytest.raises(DefinitionError) as refused:
        parse(f"CREATE MATERIALIZED VIEW v TBLPROPERTIES ('refresh' = '{text}') AS SELECT id FROM shop.orders", catalog)
    assert refused.value.code == "unknown-property"
    assert f"the property refresh is {text!r}" in refused.value.detail
    for choice in ("'continuous'", "'manual'", "'every <n> seconds'", "minutes", "hours", "days"):
        assert choice in refused.value.hint


def test_the_property_stays_as_it_was_written(catalog: Catalog) -> None:
    sql = "CREATE MATERIALIZED VIEW v TBLPROPERTIES ('refresh' = 'every 2 HOURS') AS SELECT id FROM shop.orders"
    assert parse_view(sql, catalog).properties == (("refresh", "every 2 HOURS"),)
