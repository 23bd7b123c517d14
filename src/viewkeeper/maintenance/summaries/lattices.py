"""The summaries of one warehouse: created, followed, propagated, refreshed, reloaded.

continuous    with every commit of the core: propagate and refresh, all in that commit
deferred      with every commit of the core: its changes are noted
              propagate: what was noted becomes part of the summary-deltas that wait
              refresh: these are applied, and all tables of the lattice published, in one commit
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import pyarrow as pa

from viewkeeper.clock import monotonic
from viewkeeper.errors import UsageError, ViewkeeperError, as_viewkeeper_error, may_pass
from viewkeeper.lake.commit import Commit, NewState
from viewkeeper.lake.log.catalog import Catalog, Definition, Layout
from viewkeeper.lake.log.columns import HIDDEN, RESERVED
from viewkeeper.lake.log.halts import Halts
from viewkeeper.lake.log.record import Record
from viewkeeper.maintenance.contents import MOST_REWRITTEN
from viewkeeper.maintenance.context import Context
from viewkeeper.maintenance.summaries.input_changes import Changes
from viewkeeper.maintenance.summaries.recomputing import recomputed_tables
from viewkeeper.maintenance.summaries.round import Rounds
from viewkeeper.maintenance.summaries.waiting import Waiting
from viewkeeper.maintenance.typed_rows import signed_rows
from viewkeeper.messages import Vector
from viewkeeper.planner.summaries.decision import Decision, decide
from viewkeeper.planner.summaries.foreign_keys import DeclaredForeignKeys
from viewkeeper.planner.summaries.hierarchies import DeclaredHierarchies
from viewkeeper.planner.summaries.lattice import Lattice, is_stored_otherwise, lattices_of
from viewkeeper.planner.summaries.learned import Learned
from viewkeeper.planner.summaries.naming import BROKEN, METRICS, SUMMARY
from viewkeeper.sources.layout import widens
from viewkeeper.summary.content import ArrowContent


@dataclass(frozen=True)
class Made:
    """A refresh that is computed: what it stores, and what is told about it."""

    signed: Mapping[str, Any]
    contents: Mapping[str, ArrowContent]
    learned: Learned
    told: Mapping[str, Any]


class Summaries:
    """All lattices of one warehouse."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.files = context.files
        self.writer = context.writer
        self.contents = context.contents
        self.rounds = Rounds(self.files, self.contents)
        self.waiting = Waiting(self.files)
        self._halts = Halts(self.files.store)
        self._known: tuple[dict[str, Definition], dict[str, Lattice]] | None = None

    # --- what there is ---

    @property
    def catalog(self) -> Catalog:
        return self.writer.catalog

    @property
    def hierarchies(self) -> DeclaredHierarchies:
        return DeclaredHierarchies(self.context.sources.definitions(), self.catalog)

    def lattices(self) -> dict[str, Lattice]:
        """Those that are stored."""
        stored = {name: view for name, view in self.catalog.items() if SUMMARY in view.properties}
        if self._known is None or self._known[0] != stored:
            made: dict[str, Lattice] = {}
            relations, determined = self.context.relations() if stored else {}, self.hierarchies.determined
            foreign_keys = DeclaredForeignKeys(self.context.sources.definitions())
            for group in dict.fromkeys(stored[name].group for name in sorted(stored)):
                tables = {name: view for name, view in self.catalog.items() if view.group == group}
                try:
                    made |= lattices_of(tables, relations, determined, foreign_keys, stored=self.catalog)
                except ViewkeeperError as error:
                    self._halt_tables(group, error.detail)
                if group in made and self._has_other_inputs(made[group]):
                    told = "what it is computed from has other columns than when it was made"
                    widened = not self._has_other_inputs(made[group], but_wider=True)
                    self._halt_tables(group, told, recomputable=widened)
                elif group in made and self.is_outdated(made[group]):
                    self._halt_tables(group, "an earlier viewkeeper has stored its aggregates in other columns")
            self._known = stored, made
        return self._known[1]

    def _halt_tables(self, lattice: str, reason: str, *, recomputable: bool = False) -> None:
        halted, state = self._halts.all(), self.writer.last.groups[lattice].last
        for name, table in self.catalog.items():
            if table.group == lattice and not name.startswith(RESERVED) and name not in halted:
                self._halts.add(name, table.folder, reason, state, recomputable=recomputable)

    def look_again(self) -> None:
        """The relations of the sources may be others."""
        self._known = None

    def is_outdated(self, lattice: Lattice) -> bool:
        """Whether its tables, its feed or a copy of a dimension would have other columns if they were made now."""
        return self._has_other_inputs(lattice) or any(map(is_stored_otherwise, lattice.tables.values()))

    def _has_other_inputs(self, lattice: Lattice, *, but_wider: bool = False) -> bool:
        """Whether its feed, or a copy of a dimension, has other columns than what it stands for has now; `but_wider`:
        beside those that only got a wider type."""
        for view, relation in lattice.input_relations.items():
            if view.startswith(RESERVED):
                stored = {name: type for name, type in self.catalog[view].columns if not name.startswith(HIDDEN)}
                now = dict(zip(relation.columns, relation.types, strict=True))
                if stored.keys() != now.keys():
                    return True
                for column, type in stored.items():
                    same = _written(type) == _written(now[column])
                    if not same and not (but_wider and widens(type, now[column])):
                        return True
        return False

    def lattice_of(self, view: str) -> Lattice:
        """The lattice of a summary or of a family; UsageError for what is none."""
        for lattice in self.lattices().values():
            families = {table.defined.view.family for table in lattice.visible.values()}
            if view in lattice.visible or view in families:
                return lattice
        known = ", ".join(sorted(n for one in self.lattices().values() for n in one.visible)) or "none yet"
        raise UsageError(f"{view} is not a summary", f"the summaries are: {known}")

    def sizes(self) -> dict[str, int]:
        return {name: table.rows for name, table in self.writer.last.tables.items()}

    def learned(self, lattice: Lattice, record: Record) -> Learned:
        return Learned.of(record.groups[lattice.name].resume)

    def one_by_one(self, group: str) -> bool:
        """Whether a summary shows every state of this core."""
        return any(lattice.complete for lattice in self._fed_by(group))

    # --- following the core ---

    def unstored(self, group: str) -> frozenset[str]:
        """Feeds of a core: their changes are passed on or noted, and the core itself stores nothing of them."""
        return frozenset(lattice.facts.feed for lattice in self._fed_by(group) if not lattice.facts.readable)

    def _fed_by(self, group: str) -> list[Lattice]:
        return [lattice for lattice in self.lattices().values() if lattice.facts.core == group]

    def follow(self, commit: Commit) -> None:
        """Before a commit is made: what it does to cores, done to the lattices over them.

        What goes wrong with its rows halts that lattice alone.
        """
        for lattice in self.lattices().values():
            core = lattice.facts.core
            states = [state for state in commit.new_states if state.group == core]
            if not (states or core in commit.advanced) or self.is_halted(lattice):
                continue
            if lattice.deferred:
                for state in states:
                    self.waiting.note(commit, lattice, state)
                continue
            try:
                self._follow(commit, lattice, states)
            except Exception as error:
                if may_pass(error):
                    raise
                self.halt(lattice, as_viewkeeper_error(error, f"refreshing {', '.join(lattice.visible)}").detail)

    def _follow(self, commit: Commit, lattice: Lattice, states: Sequence[NewState]) -> None:
        record = self.writer.last
        vector = dict(record.groups[lattice.facts.core].vector)
        for state in states:
            vector.update(state.vector)
        delta = self._changes(lattice, states)
        if delta.none:
            vector.update(commit.advanced.get(lattice.facts.core, {}))
            if vector != dict(record.groups[lattice.name].vector):
                commit.advance(lattice.name, vector)
            return
        self._publish(commit, lattice, vector, self._made(lattice, record, delta, {}))

    def _changes(self, lattice: Lattice, states: Sequence[NewState]) -> Changes:
        """The changes of the fact and of the dimensions, not stored yet."""
        held, rows = {}, {}
        for view, relation in lattice.input_relations.items():
            changed, size = signed_rows([one for state in states for one in state.deltas.get(view, ())], relation)
            if changed is not None:
                held[view], rows[view] = changed, size
        return Changes(held, rows, applied=False)

    # --- propagate and refresh ---

    def _made(self, lattice: Lattice, record: Record, changes: Changes, waiting: Mapping[str, pa.Table]) -> Made:
        """A refresh, by changes and by summary-deltas that have waited."""
        learned = self.learned(lattice, record)
        rows = sum(changes.rows.values())
        decision = decide(learned, rows, record.tables[lattice.facts.feed].rows if lattice.facts.readable else None)
        self._check_dimensions(lattice, record, changes)
        if decision.recompute and not waiting:
            return self._recompute(lattice, record, changes, learned, decision)
        expected = learned.expected(self.sizes())
        deltas = dict(waiting)
        propagate = 0.0
        broken: Mapping[str, int] = {}
        if not changes.none:
            made = self.rounds.propagate(lattice, record, changes, expected, waiting)
            propagate, broken = made.seconds, made.broken
            for name, table in made.deltas.items():
                deltas[name] = pa.concat_tables([waiting[name], table]) if name in waiting else table
        applied = self.rounds.refresh(lattice, record, deltas, changes)
        sizes = {name: table.num_rows for name, table in deltas.items()}
        told = {
            **decision.told(),
            "changes": rows,
            "propagate_seconds": round(propagate, 4),
            "refresh_seconds": round(applied.seconds, 4),
            **({BROKEN: dict(broken)} if broken else {}),
            "tables": {
                name: {
                    "summary_delta": sizes.get(name, 0),
                    **asdict(one.figures),
                    "optimizations": list(one.optimizations),
                }
                for name, one in applied.refreshed.items()
            },
        }
        after = learned.after(rows, sizes, propagate, applied.seconds)
        return Made(applied.signed, applied.contents, after, told)

    def _recompute(
        self, lattice: Lattice, record: Record, changes: Changes, learned: Learned, decision: Decision
    ) -> Made:
        begin = monotonic()
        signed = recomputed_tables(self.context, self.rounds.in_spark, lattice, record, changes)
        seconds = round(monotonic() - begin, 4)
        told = {**decision.told(), "changes": sum(changes.rows.values()), "recompute_seconds": seconds}
        return Made(signed, {}, learned.recomputed(seconds), told)

    def _check_dimensions(self, lattice: Lattice, record: Record, changes: Changes) -> None:
        """Hierarchies are declared: a change that contradicts one is found before anything rests on it."""
        for relation, view in lattice.facts.copies.items():
            if changes.rows.get(view) and self.hierarchies.of(relation) is not None:
                self.hierarchies.check(
                    lattice.input_relations[view],
                    self.rounds.on_driver.dimension_table(lattice, view, record, changes)[1],
                )

    def _publish(self, commit: Commit, lattice: Lattice, vector: Vector, made: Made) -> None:
        changes = {name: [rows] for name, rows in made.signed.items()}
        for name in changes:
            is_rewritten = commit.catalog[name].layout is Layout.REWRITTEN
            if is_rewritten and self.writer.last.tables[name].rows > MOST_REWRITTEN:
                commit.append_from_now_on(name)
        commit.states(lattice.name, [(vector, changes)], resume=made.learned.as_json())
        commit.metrics.setdefault(METRICS, {})[lattice.name] = dict(made.told)
        commit.afterwards(lambda record: self._remember(record, made.contents))

    def _remember(self, record: Record, contents: Mapping[str, ArrowContent]) -> None:
        catalog = self.files.catalogs.read(record.catalog)
        for name, content in contents.items():
            self.contents.remember(catalog[name], record, content)

    def propagate(self, lattice: Lattice) -> Mapping[str, Any]:
        """Make summary-deltas of what was noted, and keep them until the refresh. Readers see nothing of it."""
        with self.context.new_commit() as commit:
            record = self.writer.last
            changes = self.waiting.changes(lattice, record)
            told: dict[str, Any] = {"changes": sum(changes.rows.values()), "propagate_seconds": 0.0}
            if changes.none:
                return told
            self._check_dimensions(lattice, record, changes)
            expected = self.learned(lattice, record).expected(self.sizes())
            made = self.rounds.propagate(lattice, record, changes, expected, self.waiting.deltas(lattice, record))
            self.waiting.empty(commit, [lattice.log(view) for view in lattice.inputs], record)
            self.waiting.add(commit, lattice, made.deltas, record)
            told["propagate_seconds"] = round(made.seconds, 4)
            if made.broken:
                told[BROKEN] = dict(made.broken)
            told["tables"] = {name: {"summary_delta": table.num_rows} for name, table in made.deltas.items()}
            commit.metrics[METRICS] = {lattice.name: told}
        return told

    def noted(self, lattice: Lattice) -> int:
        """How many changes wait to be propagated."""
        return self.waiting.noted(lattice, self.writer.last)

    def refresh(self, lattice: Lattice) -> Mapping[str, Any]:
        """Apply everything that waits, and publish all tables of the lattice in one commit."""
        if not lattice.deferred:
            return {"changes": 0, "reason": "it follows its facts continuously"}
        with self.context.new_commit() as commit:
            record = self.writer.last
            changes = self.waiting.changes(lattice, record)
            waiting = self.waiting.deltas(lattice, record)
            vector = record.groups[lattice.facts.core].vector
            if changes.none and not waiting:
                if dict(vector) != dict(record.groups[lattice.name].vector):
                    commit.advance(lattice.name, vector)
                return {"changes": 0, "reason": "nothing has changed"}
            made = self._made(lattice, record, changes, waiting)
            self._publish(commit, lattice, vector, made)
            self.waiting.empty(commit, self.waiting.tables(lattice), record)
        return made.told

    # --- halting ---

    def is_halted(self, lattice: Lattice) -> bool:
        """Whether it is not refreshed any more, or one of those that it follows not maintained."""
        halted = self._halts.all()
        return any(name in halted for name in (*lattice.visible, *lattice.inputs))

    def halt(self, lattice: Lattice, reason: str, *, recomputable: bool = False) -> None:
        """Stop refreshing a lattice: its tables stay as they are, and say why."""
        self._halt_tables(lattice.name, reason, recomputable=recomputable)

    def refuse_halted_inputs(self, lattice: Lattice) -> None:
        """UsageError if it reads a view that is halted: what is computed from that would be as wrong."""
        halted = self._halts.all()
        for name in lattice.inputs:
            if name in halted and not name.startswith(RESERVED):
                raise UsageError(f"{', '.join(lattice.visible)} reads {name}, which is halted", f"reload {name} first")

    def unhalt(self, lattice: Lattice) -> None:
        """It is right again, with the feed and the copies of its own."""
        for name in (*lattice.visible, *lattice.inputs):
            if name in lattice.visible or name.startswith(RESERVED):
                self._halts.remove(self.catalog[name].folder)

    def over(self, view: str) -> list[str]:
        """The summaries that read a view."""
        return [n for lattice in self.lattices().values() if view in lattice.inputs for n in lattice.visible]

    def awaiting_refresh(self) -> list[str]:
        """Deferred summaries that have not got yet what was noted for them, so they are not what their sources give."""
        return [
            name
            for lattice in self.lattices().values()
            if lattice.deferred and self.waiting.has_any(lattice, self.writer.last)
            for name in lattice.visible
        ]

    def members(self, name: str) -> list[str]:
        """The tables of a family, or the one summary of this name; none if it is neither."""
        for lattice in self.lattices().values():
            found = [n for n, table in lattice.visible.items() if name in (n, table.defined.view.family)]
            if found:
                return found
        return []

    def halted_input(self, view: str, reason: str, *, recomputable: bool = False) -> None:
        """A feed or a copy is not maintained any more."""
        for lattice in self.lattices().values():
            if view in lattice.inputs:
                named = f"{lattice.relation_of(view)}: "
                own = view.startswith(RESERVED) and not reason.startswith(named)
                self.halt(lattice, f"{named}{reason}" if own else reason, recomputable=recomputable)


def _written(type: str) -> str:
    return type.replace(" ", "").upper()
