"""All feeds and all groups: starts them, watches over them, tells the sources what they may forget.

with Mediator(sources, groups, make_zset, store) as mediator:
    mediator.catch_up()
    mediator.run(seconds=60)
"""

import gc
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from types import TracebackType
from typing import Self

from viewkeeper.algorithms.update_queue import MakeZSet
from viewkeeper.clock import monotonic
from viewkeeper.errors import SourceError, SourceUnavailable, ViewkeeperError, WriterPresent, as_viewkeeper_error
from viewkeeper.mediator.feed import Feed
from viewkeeper.mediator.group import Group
from viewkeeper.mediator.group_plan import OWN, GroupPlan, Recorder, Store
from viewkeeper.mediator.report import Report
from viewkeeper.mediator.retries import Retries
from viewkeeper.mediator.waits import WaitStore
from viewkeeper.messages import Position, Vector
from viewkeeper.sources.base import PATIENCE, Source

GLANCE = 0.02
"""Seconds between two looks at whether everything is caught up."""
ACKNOWLEDGE_EVERY = 1.0
MEASURE_EVERY = 10.0
COLLECT_RARELY = (100_000, 50, 1_000)
"""Thresholds of the garbage collector while a mediator works. Thousands of transactions are held at a time, none of
them in a cycle; looking through them again and again, as by default, took a third of the time."""

SWITCH_EVERY = 0.001
"""Seconds after which a thread of Python gives way to another that waits. A stream waits for its turn after every read
of a file and every statement: with the 5 ms of Python it fell ever further behind a group that was busy."""


class Mediator:
    """Maintains groups of views over sources, each group and each stream in a thread of its own."""

    def __init__(
        self,
        sources: Mapping[str, Source],
        plans: Sequence[GroupPlan],
        make_zset: MakeZSet,
        store: Store,
        recorder: Recorder | None = None,
        *,
        others_need: bool = False,
        wait_store: WaitStore | None = None,
        plan_again: Callable[[str], GroupPlan | None] | None = None,
        before_groups: Callable[[], None] = lambda: None,
    ) -> None:
        """`others_need`: there are groups beside these that need the sources, so that nothing may be forgotten yet.

        `plan_again` gives the plan of a group at its last commit, None if no view of it is left to maintain.
        `before_groups` is called while the streams are being opened, before the threads of the groups start.
        """
        self.feeds = {
            name: Feed(source, min((plan.vector[name] for plan in plans if name in plan.sources), default=None))
            for name, source in sources.items()
        }
        self._plans = plans
        self._make_zset = make_zset
        self._store = store
        self._recorder = recorder
        self._others_need = others_need
        self._wait_store = wait_store
        self._plan_again = plan_again or self._plan_at_last_commit
        self._before_groups = before_groups
        self._retries = Retries()
        self._ending = False
        self._stop = threading.Event()
        self._threads: list[threading.Thread] = []
        self._collecting, self._switching = gc.get_threshold(), sys.getswitchinterval()
        self._acknowledged: dict[str, Position] = {}
        self._last_acknowledgement = monotonic()
        self._last_measurement: float | None = None
        self.groups: list[Group] = []

    def __enter__(self) -> Self:
        self._collecting, self._switching = gc.get_threshold(), sys.getswitchinterval()
        gc.set_threshold(*COLLECT_RARELY)
        sys.setswitchinterval(SWITCH_EVERY)
        # Groups take their places in the streams before these begin to flow.
        self.groups = [self._group(plan) for plan in self._plans if plan.views]
        for feed in self.feeds.values():
            feed.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # Every group finishes its step.
        self._stop.set()
        for group in self.groups:
            group.wake()
        for thread in self._threads:
            thread.join()
        if error is None:
            self._acknowledge()
        for group in self.groups:
            group.close()
        for feed in self.feeds.values():
            feed.close()
        gc.set_threshold(*self._collecting)
        sys.setswitchinterval(self._switching)

    def stop(self) -> None:
        """End `catch_up` or `run`. From any thread, or a signal handler: so it takes no lock."""
        self._ending = True

    def _group(self, plan: GroupPlan) -> Group:
        return Group(plan, self.feeds, self._make_zset, self._store, self._recorder, self._wait_store)

    def _start_groups(self) -> None:
        if not self._threads:
            self._before_groups()
            self._threads = [self._started(group) for group in self.groups]

    def _started(self, group: Group) -> threading.Thread:
        thread = threading.Thread(target=group.run, args=(self._stop,), name=f"group {group.name}", daemon=True)
        thread.start()
        return thread

    def catch_up(
        self, patience: float = PATIENCE, watch: Callable[[], None] = lambda: None, *, settled: bool = False
    ) -> Vector:
        """Process what is committed at the sources now.

        While others write on, more may be under way when it returns; `settled` waits until nothing is. A source that
        cannot be reached for that long is an error, SourceUnavailable, when all groups without it have caught up.
        """
        self._ending = False
        ends: dict[str, Position] = {}
        lost: dict[str, SourceError] = {}
        with ThreadPoolExecutor(max(len(self.feeds), 1), thread_name_prefix="end of") as connecting:
            # All at once: none waits for the connection to another.
            asked = {name: connecting.submit(feed.source.end) for name, feed in self.feeds.items()}
            self._start_groups()
            for name, end in asked.items():
                try:
                    ends[name] = end.result()
                except SourceError as error:
                    lost[name] = error
        begin = monotonic()

        def left_behind(group: Group) -> SourceError | None:
            return next((lost[name] for name in tuple(group.channels) if name in lost and has_told(name)), None)

        def has_told(source: str) -> bool:
            # A stream that has said nothing yet may have to say that changes are lost, which halts views; one that has
            # failed is for the groups to deal with.
            feed = self.feeds[source]
            told = feed.begun or feed.trouble is not None or monotonic() - begin > patience
            return told and feed.failure is None

        def behind() -> list[Group]:
            return [one for one in self.groups if not one.failure and not one.caught_up(ends, settled=settled)]

        while not self._ending and not all(map(left_behind, behind())):
            watch()
            self._acknowledge_now_and_then()
            lost |= self._out_of_reach(patience)
            self._stop.wait(GLANCE)
        watch()
        for group in self.groups:
            if group.failure is not None:
                raise group.failure
        for missing in filter(None, map(left_behind, behind())):
            raise missing
        return ends

    def run(
        self,
        seconds: float | None = None,
        watch: Callable[[], None] = lambda: None,
        *,
        until: Callable[[], bool] = lambda: False,
    ) -> None:
        """Maintain until stopped, for so long, or until something holds.

        A group that fails stops alone, and begins again at its last commit, with growing pauses. It is an error only if
        another process maintains the views.
        """
        self._start_groups()
        begin = monotonic()
        while not self._ending and not until() and (seconds is None or monotonic() - begin < seconds):
            self._try_again()
            watch()
            self._acknowledge_now_and_then()
            left = GLANCE * 5 if seconds is None else min(GLANCE * 5, max(seconds - (monotonic() - begin), 0))
            self._stop.wait(left)
        watch()

    # --- groups that fail ---

    def _try_again(self) -> None:
        for number, (group, thread) in enumerate(zip(self.groups, self._threads, strict=True)):
            if isinstance(group.failure, WriterPresent):
                raise group.failure
            if group.failure is None:
                if group.name in self._retries and group.goes_well:
                    self._retries.forget(group.name)
                    with suppress(ViewkeeperError, OSError):
                        self._store.failed(group.name, None)
            elif not thread.is_alive() and self._retries.is_due(group.name, group.failure):
                self._begin_again(number, group)

    def _begin_again(self, number: int, group: Group) -> None:
        """A group goes on from its last commit."""
        try:
            plan = self._plan_again(group.name)
            if plan is None:
                group.views.clear()
                group.failure = None
                return
            if self._recorder is not None:
                self._recorder.began_again(group.name, plan.vector)
            begun = self._group(plan)
        except Exception as error:
            group.failure = as_viewkeeper_error(error, f"group {group.name}")
            return
        self._retries.note_work(group.report())
        begun.halted.update(group.halted)
        self.groups[number], self._threads[number] = begun, self._started(begun)

    def _plan_at_last_commit(self, name: str) -> GroupPlan:
        plan, group = next((plan, one) for plan in self._plans for one in self.groups if plan.name == one.name == name)
        return replace(
            plan,
            views=tuple(how for how in plan.views if how.view.name not in group.halted),
            derived=tuple(view for view in plan.derived if view.name not in group.halted),
            vector=dict(group.vector),
        )

    def _out_of_reach(self, patience: float) -> dict[str, SourceError]:
        """The sources that cannot be reached for longer than that."""
        troubles = {name: feed.trouble for name, feed in self.feeds.items()}
        return {
            name: SourceUnavailable(
                f"{name} cannot be reached for {patience:g} seconds: {trouble.reason}",
                "its views are as they were; try again when it is back",
            )
            for name, trouble in troubles.items()
            if trouble is not None and monotonic() - trouble.since > patience
        }

    @property
    def to_recompute(self) -> bool:
        """Whether views were halted that are only to be computed again."""
        return any(group.to_recompute for group in self.groups)

    def report(self) -> Report:
        """What is going on; from any thread."""
        return Report(
            tuple(feed.report() for feed in self.feeds.values()),
            tuple(self._retries.counted(group.report()) for group in tuple(self.groups)),
            {
                view: reason
                for group in self.groups
                for view, reason in dict(group.halted).items()
                if not view.startswith(OWN)
            },
        )

    # --- what the sources may forget ---

    def _acknowledge_now_and_then(self) -> None:
        if monotonic() - self._last_acknowledgement >= ACKNOWLEDGE_EVERY:
            self._acknowledge()
            self._measure_now_and_then()

    def _measure_now_and_then(self) -> None:
        if self._last_measurement is None or monotonic() - self._last_measurement >= MEASURE_EVERY:
            self._last_measurement = monotonic()
            for feed in self.feeds.values():
                feed.measure()

    def _acknowledge(self) -> None:
        self._last_acknowledgement = monotonic()
        if self._others_need:
            return
        for name, feed in self.feeds.items():
            needed = [behind for group in self.groups if (behind := group.needs_behind(name)) is not None]
            position = min(needed, default=feed.upto)
            if position > self._acknowledged.get(name, ""):
                try:
                    feed.source.acknowledge(position)
                except SourceError:
                    # It is said again, with the next position.
                    continue
                self._acknowledged[name] = position
