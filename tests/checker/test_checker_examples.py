"""The worked examples of Zhuge et al. (1996) that show what a level is."""

import pytest
from history_notation import written

from viewkeeper.checker.judge import check
from viewkeeper.checker.judgement import Reason
from viewkeeper.levels import Level

EXAMPLE_1_CONVENTIONAL = """
    SELECT r1.a, r1.b, r2.c, r3.d FROM x.r1 JOIN y.r2 ON r1.b = r2.b JOIN z.r3 ON r2.c = r3.c
    x.r1(a, b): 1 2
    y.r2(b, c):
    z.r3(c, d): 3 4

    y: +r2 2 3
    x: -r1 1 2

    - @ x0 y0
    - @ x1 y0
    1 2 3 4 @ x1 y1
"""

EXAMPLE_4_STROBE_UNDER_LOCAL_TRANSACTIONS = """
    SELECT a, b FROM x.r1
    x.r1(a, b): 1 2

    x: -r1 1 2, +r1 3 4

    1 2 @ x0
    - @ x0
    3 4 @ x1
"""

EXAMPLE_4_T_STROBE = """
    SELECT a, b FROM x.r1
    x.r1(a, b): 1 2

    x: -r1 1 2, +r1 3 4

    1 2 @ x0
    3 4 @ x1
"""

EXAMPLE_5 = """
    SELECT r1.a, r1.b, r2.c FROM x.r1 JOIN y.r2 ON r1.b = r2.b
    x.r1(a, b):
    y.r2(b, c): 3 4, 3 5

    x: +r1 1 3
    y T2: -r2 3 4
    x T2: +r1 2 3

    - @ x0 y0
"""

EXAMPLE_5_T_STROBE_UNDER_GLOBAL_TRANSACTIONS = f"""{EXAMPLE_5}
    1 3 5 @ x1 y1
    1 3 5, 2 3 5 @ x2 y1
"""

EXAMPLE_5_G_STROBE = f"""{EXAMPLE_5}
    1 3 5, 2 3 5 @ x2 y1
"""


@pytest.mark.parametrize("blind", [False, True])
@pytest.mark.parametrize(
    ("history", "level"),
    [
        pytest.param(EXAMPLE_1_CONVENTIONAL, Level.NONE, id="example 1: conventional"),
        pytest.param(EXAMPLE_4_STROBE_UNDER_LOCAL_TRANSACTIONS, Level.CONVERGENT, id="example 4: strobe"),
        pytest.param(EXAMPLE_4_T_STROBE, Level.COMPLETE, id="example 4: t-strobe"),
        pytest.param(EXAMPLE_5_T_STROBE_UNDER_GLOBAL_TRANSACTIONS, Level.WEAK, id="example 5: t-strobe"),
        pytest.param(EXAMPLE_5_G_STROBE, Level.STRONG, id="example 5: g-strobe"),
    ],
)
def test_level(history: str, level: Level, blind: bool) -> None:
    assert check(written(history), blind=blind).level is level


def test_example_1_shows_a_tuple_that_should_not_exist() -> None:
    violation = check(written(EXAMPLE_1_CONVENTIONAL)).violation
    assert violation is not None
    assert violation.reason is Reason.NOT_CONVERGED
    assert violation.message == "the last state (2) shows [1, 2, 3, 4], and the final source state gives no row"
    assert violation.extra == (((1, 2, 3, 4), 1),)
    assert violation.missing == ()


def test_example_5_splits_the_global_transaction() -> None:
    violation = check(written(EXAMPLE_5_T_STROBE_UNDER_GLOBAL_TRANSACTIONS)).violation
    assert violation is not None
    assert violation.level is Level.STRONG
    assert violation.reason is Reason.SPLIT_GLOBAL_TRANSACTION
    assert violation.message == "state 1 claims x at 1 and y at 1: that splits global transaction T2"
    assert [(part.source, *part.global_ids) for part in violation.transactions] == [("y", "T2"), ("x", "T2")]
