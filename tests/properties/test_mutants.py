"""The steps that are easy to get wrong, gotten wrong on purpose: the checker catches every one of them.

A proof by simulation is worth what it can refute. Each mutant is a mistake that a reader of the papers could make.
"""

from dataclasses import replace

import pytest
from seeded_runs import run

from viewkeeper.algorithms import (
    c_strobe,
    g_strobe,
    nested_sweep,
    parallel_pipelined_sweep,
    parallel_sweep,
    periodic_c_strobe,
    t_strobe,
    update_queue,
)
from viewkeeper.algorithms.driver import Driver
from viewkeeper.algorithms.effects import Join
from viewkeeper.algorithms.global_order import GlobalOrder
from viewkeeper.algorithms.global_parts import GlobalParts
from viewkeeper.algorithms.key_information import KeyInformation
from viewkeeper.algorithms.registry import Transactions
from viewkeeper.algorithms.update_queue import UpdateQueue
from viewkeeper.mediator import alignment, group
from viewkeeper.mediator.group import Group
from viewkeeper.mediator.known_rows import KnownRows
from viewkeeper.mediator.stream import Subscription
from viewkeeper.sim import live_world
from viewkeeper.sim.scenario import Scenario
from viewkeeper.sources.local_queries import Known
from viewkeeper.sources.multi_relation import MultiRelationWrapper, _Outgoing

S, L, G = Transactions.SINGLE, Transactions.LOCAL, Transactions.GLOBAL


def no_compensation(patch):
    patch.setattr(UpdateQueue, "interfering", lambda self, operand, *_: self.make_zset(operand.relation.columns, ()))


def forget_what_came_last_before_the_answer(patch):
    true = UpdateQueue.interfering

    def interfering(self, operand, update, occurrence, answer):
        seen = type(answer)(answer.rows, answer.seq - 1)
        return true(self, operand, update, occurrence, seen)

    patch.setattr(UpdateQueue, "interfering", interfering)


def compensate_only_what_still_waits(patch):
    """For pipelined-sweep: updates in flight, or computed and not yet installed, are forgotten."""

    def interfering(self, operand, update, occurrence, answer):
        waiting = self.waiting_for(operand, answer)
        return self._sum(operand, [u.deltas[operand.index] for u in waiting])

    patch.setattr(UpdateQueue, "interfering", interfering)


def forget_what_is_computed(patch):
    """With several in flight: an update is dropped when its own change is there, while older ones are still swept."""
    true = parallel_pipelined_sweep.parallel_view_change

    def view_change(plan, queue, u):
        delta = yield from true(plan, queue, u)
        queue.forget(u.rank)
        return delta

    patch.setattr(parallel_pipelined_sweep, "parallel_view_change", view_change)


def fold_one_update_only(patch):
    """Figure 6 read literally: of several waiting updates of R_j only one is removed and compensated."""

    def waiting_for(self, operand, answer):
        return []

    patch.setattr(UpdateQueue, "waiting_for", waiting_for)
    true = nested_sweep._foldable
    patch.setattr(nested_sweep, "_foldable", lambda *args: true(*args)[:1])


def fold_out_of_order(patch):
    """Folding whatever touches R_j, though something older of the same source stays behind."""

    def foldable(queue, operand, seq, most):
        return [u for u in queue.waiting if u.operands == [operand.index] and u.seq <= seq][:most]

    patch.setattr(nested_sweep, "_foldable", foldable)


def multiply_weights_on_both_sides(patch):
    true = parallel_sweep._side

    def side(plan, queue, u, i, ones, component):
        weights = dict(plan.start(i, u.deltas[i]).weights())
        signed = ones.like(ones.columns, [(row, weights[row[1:]]) for row, _ in ones.weights()])
        return true(plan, queue, u, i, signed, component)

    patch.setattr(parallel_sweep, "_side", side)


def keep_insert_delete_pairs(patch):
    """T-Strobe without the removal: an insertion that the same transaction deletes is queried for all the same."""
    patch.setattr(update_queue, "net", list)


def forget_pending_deletions(patch):
    patch.setattr(t_strobe, "key_delete", lambda rows, view, action: rows)


def key_delete_by_key_alone(patch):
    """C-Strobe with `the same tuple` meaning the same key: a re-used key brings in the wrong version."""

    def versions_at(view, events):
        first = true(view, events)
        return {key: (place, deletion) for key, (place, deletion) in first.items() if deletion is None}

    true = c_strobe.versions_at
    patch.setattr(c_strobe, "versions_at", versions_at)


def let_later_transactions_pass(patch):
    """A global transaction waits for its parts, and what stands after one of them does not."""

    def arrive(self, transaction):
        if not transaction.parts:
            return [(transaction,)]
        (one,) = self._parts.add(transaction)
        return [tuple(one.members)] if one.is_whole else []

    patch.setattr(GlobalOrder, "arrive", arrive)


def answers_overtake_updates_in_the_wrapper(patch):
    """The wrapper lets an answer go as soon as it is there."""

    original = MultiRelationWrapper.base_answer

    def base_answer(self, asked_by, answer):
        name, ticket = asked_by
        if name:
            original(self, asked_by, answer)
        else:
            self._outbox.appendleft(_Outgoing((ticket, answer)))
            self._flush()

    patch.setattr(MultiRelationWrapper, "base_answer", base_answer)


def keep_the_last_global_id_of_a_merged_capture(patch):
    def last_alone(*args, **merged):
        transaction = true(*args, **merged)
        return replace(transaction, parts=transaction.parts[-1:])

    true = live_world.as_transaction
    patch.setattr(live_world, "as_transaction", last_alone)


def wait_for_the_sources_of_the_view_alone(patch):
    """G-Strobe in a group: a part from a source that the view does not read, after the transaction is whole, begins it
    again, and what it waits for has come already."""

    def begin(self, plan, queue):
        true(self, plan, queue)
        self._parts = GlobalParts(plan.view.sources)

    true = g_strobe._GlobalStrobeWarehouse.__init__
    patch.setattr(g_strobe._GlobalStrobeWarehouse, "__init__", begin)


def known_rows_stay_as_they_were(patch):
    patch.setattr(KnownRows, "delivered", lambda self, transaction: None)


def views_of_a_group_do_not_wait_for_each_other(patch):
    """A state of the group is the next state of each view, whatever that reflects."""

    def meeting(self):
        return dict.fromkeys(self._installed, 1) if all(one.waiting for one in self._installed.values()) else None

    patch.setattr(alignment.Alignment, "_meeting", meeting)


def note_what_was_taken_as_if_it_were_committed(patch):
    def advance(self):
        ahead = {source: channel.subscription.position for source, channel in self.channels.items()}
        self._store.advance(self.name, ahead)
        self.vector.update(ahead)

    patch.setattr(Group, "_advance", advance)


def answers_come_before_what_they_show(patch):
    """The group takes an answer as soon as it is there, and what it shows later."""

    def take(self, most=None, until=None):
        return [] if until is not None else true(self, most)

    true = Subscription.take
    patch.setattr(Subscription, "take", take)


def go_over_to_one_that_waits_for_whole_transactions(patch):
    """T-Strobe has committed a part of a transaction, and batched-sweep waits for that part."""

    def successor(how, *, alone):
        return replace(how, algorithm="batched-sweep", stored_for=how.layout) if how.algorithm == "t-strobe" else None

    patch.setattr(group, "without_quiet", successor)


def take_what_was_read_for_all_there_is(patch):
    """A later hop of a local sweep is answered here, though rows were asked for that compensation brought back."""
    patch.setattr(Known, "answer", lambda self, query: query.over([self.rows]))


def know_the_view_and_not_what_came_since(patch):
    """Key information from MV alone, without the transactions that it does not reflect."""
    patch.setattr(KeyInformation, "delivered", lambda self, transaction: None)


def answer_before_all_is_taken(patch):
    """What the view answers comes before updates are taken that the answer shows."""

    def ask(self, process, query):
        true(self, process, query)
        self._ready.extend(self._known)
        self._known.clear()

    true = Driver._ask
    patch.setattr(Driver, "_ask", ask)


def forced_without_compensation(patch):
    """Periodic C-Strobe in time: what is out is waited for, and what came meanwhile stays in."""

    def force(self):
        self._forced = True
        yield Join(*self._running)
        yield from self._install([query.answer[0] for query in self._queries])
        self._forced = False

    patch.setattr(periodic_c_strobe._PeriodicStrobe, "force", force)


MUTANTS = [
    (no_compensation, "sweep", S, {}),
    (forget_what_came_last_before_the_answer, "sweep", S, {}),
    (compensate_only_what_still_waits, "pipelined-sweep", S, {}),
    (forget_what_is_computed, "parallel-pipelined-sweep", S, {}),
    (fold_one_update_only, "nested-sweep", S, {}),
    (fold_out_of_order, "nested-sweep", L, {"relations": 4, "sources": 2}),
    (multiply_weights_on_both_sides, "parallel-sweep", S, {}),
    (keep_insert_delete_pairs, "t-strobe", L, {}),
    (forget_pending_deletions, "t-strobe", S, {}),
    (key_delete_by_key_alone, "c-strobe", S, {}),
    (let_later_transactions_pass, "batched-sweep", G, {}),
    (know_the_view_and_not_what_came_since, "t-strobe", L, {"key_information": True}),
    (answer_before_all_is_taken, "periodic-c-strobe", L, {"key_information": True, "options": {"period": 2}}),
    (forced_without_compensation, "periodic-c-strobe", S, {"options": {"period": 100, "interval": 3}}),
    (answers_overtake_updates_in_the_wrapper, "sweep", S, {"relations": 4, "multi_relation": True}),
    (keep_the_last_global_id_of_a_merged_capture, "batched-sweep", G, {"merge": True}),
    (keep_the_last_global_id_of_a_merged_capture, "g-strobe", G, {"merge": True}),
    (wait_for_the_sources_of_the_view_alone, "g-strobe", G, {"views": 2}),
    (known_rows_stay_as_they_were, "sweep", L, {"mediator": True, "relations": 2}),
    (views_of_a_group_do_not_wait_for_each_other, "nested-sweep", S, {"views": 2}),
    (note_what_was_taken_as_if_it_were_committed, "batched-sweep", L, {"restarts": 2}),
    (answers_come_before_what_they_show, "sweep", S, {"mediator": True}),
    (go_over_to_one_that_waits_for_whole_transactions, "t-strobe", G, {"without_quiet": 1}),
    (take_what_was_read_for_all_there_is, "sweep", L, {"relations": 6, "sources": 2, "multi_relation": True}),
]


@pytest.mark.parametrize(("mutate", "name", "transactions", "features"), MUTANTS)
def test_mutant_is_caught(mutate, name, transactions, features, monkeypatch):
    mutate(monkeypatch)
    for seed in range(200):
        scenario = Scenario(name, seed, transactions=transactions, updates=15, **features)
        if not run(scenario).kept_promise:
            return
    raise AssertionError(f"{mutate.__name__} went unnoticed in 200 runs")
