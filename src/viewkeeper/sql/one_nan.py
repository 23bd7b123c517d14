"""One NaN for all rows.

    NaN = NaN          in SQL, when rows are grouped, matched or cancelled

Python finds two NaN unequal, but a tuple compares by identity first. So every NaN in a row is this one object, and rows
that hold one are found in a dict like any other. Whoever makes a row sees to it: the constructor of a Z-set, the
arithmetic of the evaluator, the reader of what Spark computed.
"""

import math
from typing import Any

NAN = math.nan


def one_nan(values: tuple[Any, ...]) -> tuple[Any, ...]:
    """The same values with every NaN the one."""
    return tuple([NAN if type(value) is float and value != value else value for value in values])
