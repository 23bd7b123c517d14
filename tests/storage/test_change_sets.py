"""The conditions of a refresh are made once, and not at each."""

import pytest

from viewkeeper.algebra.memory import MemoryZSet
from viewkeeper.sql.expressions import Expression
from viewkeeper.storage.change_sets import able_to_join, absent, present, unable_to_join


def test_a_second_refresh_makes_no_conditions(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = MemoryZSet.of(("r.a", "r.b"), (1, 2), (None, 3), (4, None), (None, None))
    on = ("r.a", "r.b")

    def sizes() -> list[int]:
        parts = (
            able_to_join(rows, on),
            unable_to_join(rows, on),
            rows.select((absent(on),)),
            rows.select((present(on),)),
        )
        return [part.size() for part in parts]

    assert sizes() == [1, 3, 1, 3]
    made: list[object] = []
    monkeypatch.setattr(Expression, "from_node", made.append)
    assert sizes() == [1, 3, 1, 3]
    assert made == []
