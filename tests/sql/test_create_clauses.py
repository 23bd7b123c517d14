"""OR REPLACE and IF NOT EXISTS are read, and taken out of the definition that is kept."""

import pytest

from viewkeeper.errors import DefinitionError
from viewkeeper.sql.create_clauses import IfThere, read_create

PLAIN = "CREATE MATERIALIZED VIEW v AS SELECT 1"


@pytest.mark.parametrize(
    ("text", "if_there", "left"),
    [
        (PLAIN, IfThere.REFUSE, PLAIN),
        ("CREATE OR REPLACE MATERIALIZED VIEW v AS SELECT 1", IfThere.REPLACE, PLAIN),
        ("CREATE MATERIALIZED VIEW IF NOT EXISTS v AS SELECT 1", IfThere.KEEP, PLAIN),
        (
            "create  or\nreplace materialized view v as select 1",
            IfThere.REPLACE,
            "create  materialized view v as select 1",
        ),
        (f"-- OR REPLACE\n{PLAIN}", IfThere.REFUSE, f"-- OR REPLACE\n{PLAIN}"),
        ("CREATE /* all */ OR REPLACE MATERIALIZED VIEW v", IfThere.REPLACE, "CREATE /* all */ MATERIALIZED VIEW v"),
    ],
)
def test_the_clause_is_read_and_taken_out(text: str, if_there: IfThere, left: str) -> None:
    create = read_create(text)
    assert (create.if_there, create.sql, create.creates) == (if_there, left, True)


@pytest.mark.parametrize("text", ["SELECT id FROM shop.orders", "SELECT 'a", ""])
def test_what_is_no_create_is_left_to_others(text: str) -> None:
    create = read_create(text)
    assert (create.sql, create.if_there) == (text, IfThere.REFUSE)


def test_the_two_together_are_refused() -> None:
    with pytest.raises(DefinitionError, match="contradict"):
        read_create("CREATE OR REPLACE MATERIALIZED VIEW IF NOT EXISTS v AS SELECT 1")
