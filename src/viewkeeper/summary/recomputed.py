"""MIN and MAX the way of the paper: kept while possible, recomputed when the extreme may have been deleted.

    MIN(e) = NULL                      if COUNT(e) = 0
             recomputed                if a value ≤ old was deleted, and no insertion makes up for it
             least(old, inserted)      otherwise

Changes are net: what is inserted and deleted in one batch is not among them (they are *weakly minimal*). So a deletion
cannot be below the old minimum, the test for it is one for equality, and what was inserted is there. If the deletions
themselves show that the changes are not like that, the general test is made: an insertion helps only if it is better
than all that was deleted.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from viewkeeper.summary.delta_join import DeltaJoin
from viewkeeper.summary.grouping import FALSE, ZERO, all_of, first, numbered, placed
from viewkeeper.summary.ranking import Ends
from viewkeeper.summary.soundness import corrupt


@dataclass(frozen=True)
class Kept:
    """The values of the columns as far as they are known, and the groups for which they are to be recomputed."""

    columns: Mapping[str, pa.Array]
    needed: pa.Array
    weakly_minimal: bool
    """whether there were deletions, and the test for them was the tighter one"""


def kept(joined: DeltaJoin) -> Kept:
    """What is known of the recomputed columns of a table without a look at its base."""
    ends = {}
    for each in joined.shape.recomputed:
        gained, lost = (joined.delta[name].combine_chunks() for name in (each.inserted, each.deleted))
        ends[each.column] = Ends.of(each.function, joined.stored(each.column), joined.delta_groups, gained, lost)
    tight = not any(pc.any(end.beyond).as_py() for end in ends.values())
    columns, needed = {}, pa.repeat(FALSE, len(joined))
    for each in joined.shape.recomputed:
        end, any_value = ends[each.column], pc.greater(joined.new[each.count], ZERO)
        known = end.candidates
        columns[each.column] = pc.if_else(any_value, known, pa.scalar(None, known.type))
        if not joined.insert_only:
            made_up = pc.or_(end.undercut, end.renewed) if tight else end.undercut
            # A group that goes has no value left either.
            needed = pc.or_(needed, all_of(any_value, end.hit, pc.invert(made_up)))
    deletions = any(joined.delta[each.deleted].null_count < joined.delta.num_rows for each in joined.shape.recomputed)
    return Kept(columns, needed, tight and deletions)


def recomputed(joined: DeltaJoin, known: Kept, fresh: pa.Table) -> dict[str, pa.Array]:
    """The columns with what was recomputed: `fresh` has the keys of all groups that needed it, and their extremes."""
    wanted = joined.groups.filter(known.needed)
    _, (_, places) = numbered((wanted, fresh), joined.shape.keys)
    asked = pc.less(places, wanted.num_rows)
    row_of = placed(pa.arange(0, fresh.num_rows).filter(asked), places.filter(asked), wanted.num_rows)
    members = pc.indices_nonzero(known.needed).cast(pa.int64())
    columns = {}
    for each in joined.shape.recomputed:
        type = joined.old.schema.field(each.column).type
        found = placed(fresh[each.column].combine_chunks().take(row_of).cast(type), members, len(joined))
        lacking = all_of(known.needed, pc.is_null(found), pc.greater(joined.new[each.count], ZERO))
        if (group := first(lacking)) is not None:
            count = joined.new[each.count][group]
            what = f"what {each.column} is recomputed from has no value, though {each.count} is {count}"
            corrupt(joined.shape, joined.groups, group, what)
        columns[each.column] = pc.if_else(known.needed, found, known.columns[each.column])
    return columns
