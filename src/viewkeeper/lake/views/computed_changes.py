"""What changed between two states of a computed view.

Without copies it is linear: the changes of `rows`, filtered and projected. With copies, each row of a hidden table
lives in intervals of states, and a row of the view lives while all rows that it is made of do:

    life(pair ⋈ row_0 ⋈ row_1 ...)  =  life(pair) ∩ life(row_0) ∩ life(row_1) ...        [from, to)
    changes                         =  Σ + at `from` if that is after `since`,  - at `to` if that is not after `until`

Only pairs that come or go in the range, or of which a row does, have to be looked at: of a large table nothing else is
sorted. Finding them costs more than sorting a small one.
"""

from collections.abc import Sequence
from functools import reduce

from viewkeeper.algebra.pyspark_names import Column, DataFrame, F, Window
from viewkeeper.lake.log.catalog import Definition
from viewkeeper.lake.log.columns import RESERVED, STATE, WEIGHT
from viewkeeper.lake.tables.signed_frames import quoted
from viewkeeper.lake.tables.spark_tables import BROADCAST_ROWS, added_up
from viewkeeper.lake.views.computed_expressions import ComputedExpressions, ids_of, pointing_columns
from viewkeeper.lake.views.computed_views import evaluated

FROM, TO = f"{RESERVED}from", f"{RESERVED}to"
"""the life of a row: the first state that has it, and the first after that which has it not"""
OTHER_FROM, OTHER_TO = f"{RESERVED}other_from", f"{RESERVED}other_to"
TOUCHED = f"{RESERVED}touched"
FOREVER = (1 << 63) - 1
SORTED_ROWS = 100_000
"""A table of no more rows is sorted as a whole."""


def computed_changes(view: Definition, tables: Sequence[Definition], signed: DataFrame) -> DataFrame:
    """From the signed rows of `rows`, with their states."""
    # Added up before too: on a row that one state inserts and deletes an expression might fail.
    net = added_up(signed, STATE)
    return added_up(evaluated(net, ComputedExpressions(view, tables), WEIGHT, STATE), STATE)


def joined_changes(
    view: Definition,
    tables: Sequence[Definition],
    before: Sequence[DataFrame],
    signed: Sequence[DataFrame],
    since: int,
    sizes: Sequence[int],
) -> DataFrame:
    """From what the tables hold at `since`, and their signed rows of later states; `sizes` are their rows, about."""
    assert view.computed is not None
    kept = [F.col(quoted(name)) for name in pointing_columns(view, tables)]
    pairs, changed_pairs = before[0].select(*kept), signed[0].select(*kept, WEIGHT, STATE)
    all_ids = [ids for _, ids in view.computed.copies]
    if sizes[0] > SORTED_ROWS:
        pairs = _touched(pairs, [(ids_of(view), changed_pairs), *zip(all_ids, signed[1:], strict=True)]).select(*kept)
    concerned = pairs.unionAll(changed_pairs.select(*kept))
    lives = _lives(pairs, changed_pairs, since)
    copies = zip(all_ids, before[1:], signed[1:], sizes[1:], strict=True)
    few = sizes[0] <= BROADCAST_ROWS
    for ids, copy, changed, size in copies:
        if size > SORTED_ROWS:
            few = few or concerned.limit(BROADCAST_ROWS + 1).count() <= BROADCAST_ROWS
            wanted = concerned.select(*map(quoted, ids)).distinct()
            copy = copy.join(F.broadcast(wanted) if few else wanted, list(ids), "left_semi")
        lives = _meeting(lives, _lives(copy, changed, since), ids)
    begun_or_ended = (F.col(FROM) > since) | (F.col(TO) < FOREVER)
    shown = evaluated(lives.filter(begun_or_ended), ComputedExpressions(view, tables), FROM, TO)
    return added_up(_begun_and_ended(shown, since), STATE)


def _touched(pairs: DataFrame, touching: Sequence[tuple[Sequence[str], DataFrame]]) -> DataFrame:
    """The pairs that have ids of changed rows, found in one pass."""
    flags: list[Column] = []
    for number, (ids, changed) in enumerate(touching):
        flag = f"{TOUCHED}_{number}"
        pairs = pairs.join(
            changed.select(*map(quoted, ids)).distinct().withColumn(flag, F.lit(True)), list(ids), "left"
        )
        flags.append(F.col(flag).isNotNull())
    return pairs.filter(reduce(Column.__or__, flags))


def _lives(before: DataFrame, signed: DataFrame, since: int) -> DataFrame:
    """Rows that are there at `since`, and those that come later, with their lives."""
    net = added_up(signed, STATE)
    columns = [F.col(quoted(name)) for name in net.columns if name not in (WEIGHT, STATE)]
    there = before.select(*columns, F.lit(1).cast("bigint").alias(WEIGHT), F.lit(since).cast("bigint").alias(STATE))
    # A row of a set comes and goes by turns.
    next_state = F.lead(STATE).over(Window.partitionBy(*columns).orderBy(STATE))
    events = there.unionAll(net.select(*columns, WEIGHT, STATE))
    ended = events.select(*columns, WEIGHT, F.col(STATE).alias(FROM), F.coalesce(next_state, F.lit(FOREVER)).alias(TO))
    return ended.filter(F.col(WEIGHT) > 0).drop(WEIGHT)


def _meeting(lives: DataFrame, others: DataFrame, ids: Sequence[str]) -> DataFrame:
    """The two joined by ids, while both are there."""
    others = others.withColumnsRenamed({FROM: OTHER_FROM, TO: OTHER_TO})
    joined = lives.join(others, list(ids))
    common = {FROM: F.greatest(FROM, OTHER_FROM), TO: F.least(TO, OTHER_TO)}
    return joined.withColumns(common).drop(OTHER_FROM, OTHER_TO).filter(F.col(FROM) < F.col(TO))


def _begun_and_ended(shown: DataFrame, since: int) -> DataFrame:
    """Lives as signed rows of the states in which they begin and end."""
    columns = [F.col(quoted(name)) for name in shown.columns if name not in (FROM, TO)]
    begins = F.struct(F.lit(1).cast("bigint").alias(WEIGHT), F.col(FROM).alias(STATE))
    ends = F.struct(F.lit(-1).cast("bigint").alias(WEIGHT), F.col(TO).alias(STATE))
    both = shown.select(*columns, F.inline(F.array(begins, ends)))
    return both.filter((F.col(STATE) > since) & (F.col(STATE) < FOREVER))
