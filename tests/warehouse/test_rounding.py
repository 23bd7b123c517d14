"""What an audit leaves out: pairs of rows that differ by the rounding of DOUBLE alone."""

from decimal import Decimal
from math import inf, nan

import pytest

from viewkeeper.maintenance.summaries import rounding
from viewkeeper.maintenance.summaries.rounding import Weighted, beyond_rounding, confirmed


def test_pairs_that_differ_by_rounding_are_left_out() -> None:
    assert beyond_rounding([(("a", 1.0, nan), 1), (("a", 1.0 + 1e-12, nan), -1)]) == []
    assert beyond_rounding([((1e20,), 2), ((1e20 * (1 + 1e-12),), -1), ((1e20 * (1 - 1e-12),), -1)]) == []
    assert beyond_rounding([((0.0, inf), 1), ((-0.0, inf), -1)]) == []


def test_what_is_different_stays() -> None:
    different: list[list[Weighted]] = [
        [(("a", 1.0), 1), (("b", 1.0), -1)],
        [(("a", 1.0), 1), (("a", 1.0 + 1e-6), -1)],
        [((1.0, nan), 1), ((1.0, inf), -1)],
        [((2.5e-10,), 1), ((0.0,), -1)],
        [((2.5e-10,), 1), ((3.5e-10,), -1)],
        [((1, 1.0), 1), ((True, 1.0), -1)],
        [((Decimal(1), 1.0), 1), ((1, 1.0), -1)],
        [((None, 1.0), 1), ((0.0, 1.0), -1)],
        [((1.0,), 1)],
    ]
    for wrong in different:
        assert beyond_rounding(wrong) == wrong
    # Of two rows one has a partner.
    assert beyond_rounding([((1.0,), 2), ((1.0 + 1e-12,), -1)]) == [((1.0,), 1)]
    assert beyond_rounding([((1.0,), 1), ((1.0 + 1e-12,), -3)]) == [((1.0 + 1e-12,), -2)]


def test_each_row_is_compared_with_few_others(monkeypatch: pytest.MonkeyPatch) -> None:
    compared = 0
    close = rounding._close

    def counted(a: float, b: float) -> bool:
        nonlocal compared
        compared += 1
        return close(a, b)

    monkeypatch.setattr(rounding, "_close", counted)
    rows = 8_000
    # A key that is exact; none, and only the second DOUBLE tells rows apart; none is paired.
    # All rows are close.
    cases = (
        (lambda n: (n, n / 7 + 1), 1e-13),
        (lambda n: (0.5, n / 7 + 1), 1e-13),
        (lambda n: (n / 7 + 1,), 0.01),
        (lambda n: (1 + 1e-10 * n / rows,), 1e-13),
    )
    for made, shift in cases:
        wrong = [(made(n), 1) for n in range(rows)]
        wrong += [((*row[:-1], row[-1] + shift), -1) for row, _ in reversed(wrong)]
        compared = 0
        assert len(beyond_rounding(wrong)) == (0 if shift < 1e-9 else 2 * rows)
        assert compared <= 4 * rows
    # Only the second DOUBLE tells rows apart, and the first has as many values, in another order.
    wrong = [((1 + 5e-10 * n / rows, n / 7 + 1), 1) for n in range(rows)]
    wrong += [((1 + 5e-10 * (rows - n) / rows, n / 7 + 1), -1) for n in range(rows)]
    compared = 0
    assert beyond_rounding(wrong) == []
    assert compared <= 4 * rows


def test_what_differs_in_some_columns_alone_is_compared_again() -> None:
    wrong: list[Weighted] = [((1, 2.0), 1), ((1, 2.5), -1), ((3, 1.0), 1), ((4, 1.0), -1)]
    assert confirmed(wrong, [((1, 2.5 + 1e-12), [0.0]), ((3, 1.0), [0.0])], [1]) == wrong[2:]
    assert confirmed(wrong, [((1, 2.4), [0.2])], [1]) == wrong[2:]
    assert confirmed(wrong, [((1, 2.4), [0.05])], [1]) == wrong
    assert confirmed(wrong, [], [1]) == wrong
    # A row is missing beside one that is explained.
    more: list[Weighted] = [*wrong[:2], ((1, 7.0), 1)]
    assert confirmed(more, [((1, 2.5), [0.0]), ((1, 7.0), [0.0])], [1]) == more
    assert confirmed([((1, nan), 1), ((1, None), -1)], [((1, nan), [0.0])], [1]) == [((1, nan), 1), ((1, None), -1)]
