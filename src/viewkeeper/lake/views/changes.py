"""What changed between two states of a view: its signed rows, state by state.

changes(since, until) = Σ Δ_s,  since < s <= until
V(until) = V(since) + changes(since, until)
"""

from collections.abc import Sequence
from functools import reduce

from viewkeeper.algebra.pyspark_names import DataFrame, F
from viewkeeper.lake.log.catalog import Definition
from viewkeeper.lake.log.columns import STATE, WEIGHT
from viewkeeper.lake.log.record import Record
from viewkeeper.lake.tables.change_files import ChangeFiles, change_files
from viewkeeper.lake.tables.files import Files
from viewkeeper.lake.tables.spark_files import read_files
from viewkeeper.lake.tables.spark_tables import added_up
from viewkeeper.lake.views.shown_views import padded_rows, shown_rows


def stored_changes(files: Files, table: Definition, newest: Record, since: int, until: int) -> DataFrame:
    """The signed rows of the states in (since, until], with their states, as they are stored: not added up."""
    pieces = [_read(files, table, one) for one in change_files(files, table, newest, since, until)]
    return reduce(lambda some, more: some.unionAll(more), pieces)


def shown_changes(stored: DataFrame, view: Definition) -> DataFrame:
    """The same as readers see them."""
    # A row that one state inserts and deletes has not changed; nor has one of which readers do not see what changed.
    return added_up(shown_rows(stored, view, WEIGHT, STATE), STATE)


def family_changes(members: Sequence[DataFrame], views: Sequence[Definition]) -> DataFrame:
    """The changes of a family, from those of its members."""
    return added_up(padded_rows(members, views, WEIGHT, STATE), STATE)


def _read(files: Files, view: Definition, changed: ChangeFiles) -> DataFrame:
    frame = read_files(files.spark(), files.store, changed.folder, list(changed.files), view.columns, signed=True)
    return frame.filter((F.col(STATE) > changed.since) & (F.col(STATE) <= changed.until))
