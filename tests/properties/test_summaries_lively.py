"""The random worlds have something to show: summaries with rows, and changes that reach them.

Comparing empty ones with recomputation would prove little.
"""

import pytest
from summary_definitions import Definitions
from summary_oracle import Oracle, differences
from summary_schemas import Model, random_schema

from run_size import some
from viewkeeper.clock import seeded

CHANGES = 10


@pytest.mark.parametrize("worlds", some([12, 40], 1))
def test_most_summaries_have_rows_and_most_changes_reach_some(worlds):
    oracle = Oracle()
    filled = changed = compared = 0
    for seed in range(worlds):
        rng = seeded(seed)
        schema = random_schema(rng)
        model = Model(schema, rng, 30)
        made = Definitions(schema, rng)
        views = [made.make(f"v{number}", {}) for number in range(3)]
        before = [oracle.recomputed(view, schema.tables.values(), model.rows) for view in views]
        for _ in range(CHANGES):
            model.change()
            after = [oracle.recomputed(view, schema.tables.values(), model.rows) for view in views]
            compared += len(views)
            filled += sum(map(bool, after))
            changed += sum(
                differences(*pair, view.rounded) is not None for view, *pair in zip(views, before, after, strict=True)
            )
            before = after
    oracle.close()
    assert filled > 0.75 * compared, f"{filled} of {compared} have rows"
    assert changed > 0.4 * compared, f"{changed} of {compared} were changed"
