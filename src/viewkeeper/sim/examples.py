"""Every worked example of the papers, by name, with the states that the paper says the view goes through."""

import difflib
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from viewkeeper.algorithms.registry import Transactions
from viewkeeper.errors import UsageError
from viewkeeper.sim.report import Report, judge
from viewkeeper.sim.run import Simulation
from viewkeeper.sim.scenario import Scenario
from viewkeeper.sim.script import Schedule, parse_relation, parse_updates
from viewkeeper.sim.setting import Setting
from viewkeeper.sim.trace import Observer, Trace, describe_rows


@dataclass(frozen=True)
class Example:
    """Relations, view and updates; the algorithm and the order in which things happen; the states that result."""

    title: str = ""
    relations: tuple[str, ...] = ()
    view: str = ""
    updates: dict[str, str] = field(default_factory=dict)
    algorithm: str = ""
    schedule: str = ""
    states: tuple[str, ...] = ()
    """the content of the view after each installation, as `1 2; 3 4` (a row that counts twice stands twice)"""
    transactions: Transactions = Transactions.SINGLE
    multi_relation: bool = False
    joint_queries: bool = False
    options: tuple[tuple[str, int | bool], ...] = ()

    @cached_property
    def name(self) -> str:
        return next(name for name, example in EXAMPLES.items() if example is self)

    preamble = 5
    """how many lines come before the first event of a trace"""

    def play(self, tell: Callable[[str], None], observer: Observer | None = None) -> Report:
        """Play it, telling every event (to an observer of one's own, if one is given)."""
        parsed = [parse_relation(text) for text in self.relations]
        script, names = parse_updates(self.updates)
        for relation, _ in parsed:
            script.setdefault(relation.source, deque())
        scenario = Scenario(
            algorithm=self.algorithm,
            seed=0,
            relations=len(parsed),
            updates=len(self.updates),
            transactions=self.transactions,
            sources=len({relation.source for relation, _ in parsed}),
            multi_relation=self.multi_relation,
            joint_queries=self.joint_queries,
            options=self.options,
        )
        relations = {relation.name: relation for relation, _ in parsed}
        rows = {relation.name: content for relation, content in parsed}
        command = f"viewkeeper simulate --example {self.name} --trace"
        setting = Setting(relations, rows, self.view, script)
        simulation = Simulation(scenario, setting, observer or Trace(tell, names), command)
        tell(self.title)
        tell(f"V = {self.view}")
        tell(
            "   ".join(
                f"{name.split('.')[1]} at {relations[name].source} = {describe_rows(rows[name])}" for name in rows
            )
        )
        tell(f"initially V = {describe_rows(simulation.warehouse.view)}; algorithm: {scenario.algorithm}")
        tell("")
        schedule = Schedule(self.schedule, names)
        return judge(scenario, simulation.run(schedule.choose), command)

    def expected_states(self) -> list[list[tuple[Any, ...]]]:
        """The paper's states as sorted lists of rows."""
        return [
            sorted(tuple(map(int, row.split())) for row in state.split(";") if row.strip()) for state in self.states
        ]


# What several examples share; each of them is completed below.

_STROBE_1 = Example(
    relations=("x.r1(a*, b): 1 2", "y.r2(b*, c):", "z.r3(c*, d): 3 4"),
    view="SELECT r1.a, r1.b, r2.c, r3.d FROM x.r1 JOIN y.r2 ON r1.b = r2.b JOIN z.r3 ON r2.c = r3.c",
    updates={"U1": "+y.r2 2 3", "U2": "-x.r1 1 2"},
)
_FIGURE_5 = Example(
    relations=("s1.r1(a, b): 1 3; 2 3", "s2.r2(c, d): 3 7", "s3.r3(e, f): 5 6; 7 8"),
    view="SELECT r2.d, r3.f FROM s1.r1, s2.r2, s3.r3 WHERE r1.b = r2.c AND r2.d = r3.e",
    updates={"U1": "+s2.r2 3 5", "U2": "-s3.r3 7 8", "U3": "-s1.r1 2 3"},
    states=("5 6; 5 6; 7 8; 7 8", "5 6; 5 6", "5 6"),
)
_SECTION_3 = Example(
    view="SELECT r1.a, r2.b, r2.c, r3.d FROM s.r1 JOIN s.r2 ON r1.b = r2.b JOIN s.r3 ON r2.c = r3.c",
    updates={"U1": "+s.r1 1 2", "U2": "+s.r2 2 3"},
)
_APART = Example(
    view="SELECT r1.a, r2.b, r2.c, r3.d FROM x.r1 JOIN y.r2 ON r1.b = r2.b JOIN z.r3 ON r2.c = r3.c",
    relations=("x.r1(a*, b): 9 2", "y.r2(b*, c): 7 3", "z.r3(c*, d): 3 4"),
)
_WRAPPER = Example(
    relations=("is1.r1(a*, c): 1 2; 6 4", "is1.r2(d*, e): 2 3", "is2.r3(b*, f): 8 3"),
    view="SELECT r1.a, r3.b FROM is1.r1, is1.r2, is2.r3 WHERE r1.c = r2.d AND r2.e = r3.f",
)

EXAMPLES: dict[str, Example] = {
    "strobe-1": replace(
        _STROBE_1,
        title="Strobe paper, example 1: the conventional algorithm keeps a row that a deletion took away",
        algorithm="conventional",
        schedule="U1 y> x? x> U2 x> z? z>",
        states=("", "1 2 3 4"),
    ),
    "strobe-1-sweep": replace(
        _STROBE_1,
        title="Strobe paper, example 1, the same timing under sweep: every state is right",
        algorithm="sweep",
        schedule="U1 y> x? x> U2 x> z? z>",
        states=("1 2 3 4", ""),
    ),
    "strobe-2": Example(
        title="Strobe paper, example 2: next_source asks x for r1 ⋈ U2, then z for the rest",
        algorithm="strobe",
        relations=("x.r1(a*, b): 1 2", "y.r2(b*, c):", "z.r3(c*, d): 3 4"),
        view="SELECT r1.a, r1.b, r2.c, r3.d FROM x.r1 JOIN y.r2 ON r1.b = r2.b JOIN z.r3 ON r2.c = r3.c",
        updates={"U2": "+y.r2 2 3"},
        schedule="U2 y> x? x> z? z>",
        states=("1 2 3 4",),
    ),
    "strobe-3": replace(
        _STROBE_1,
        title="Strobe paper, example 3: Strobe remembers the deletion until the query is over",
        algorithm="strobe",
        schedule="U1 y> x? x> U2 x> z? z>",
        states=("",),
    ),
    "strobe-4": Example(
        title="Strobe paper, example 4: Strobe shows the middle of a transaction",
        algorithm="strobe",
        relations=("x.r1(a*, b): 1 2",),
        view="SELECT r1.a, r1.b FROM x.r1",
        updates={"T1": "-x.r1 1 2, +x.r1 3 4"},
        schedule="T1 x>",
        states=("", "3 4"),
        transactions=Transactions.LOCAL,
    ),
    "strobe-4-t-strobe": Example(
        title="Strobe paper, example 4: T-Strobe goes straight to the state after the transaction",
        algorithm="t-strobe",
        relations=("x.r1(a*, b): 1 2",),
        view="SELECT r1.a, r1.b FROM x.r1",
        updates={"T1": "-x.r1 1 2, +x.r1 3 4"},
        schedule="T1 x>",
        states=("3 4",),
        transactions=Transactions.LOCAL,
    ),
    "strobe-5": Example(
        title="Strobe paper, example 5: T-Strobe shows one half of a global transaction",
        algorithm="t-strobe",
        relations=("x.r1(a*, b):", "y.r2(b, c*): 3 4; 3 5"),
        view="SELECT r1.a, r1.b, r2.c FROM x.r1 JOIN y.r2 ON r1.b = r2.b",
        updates={"U1": "+x.r1 1 3", "U2": "-y.r2 3 4 @T2", "U3": "+x.r1 2 3 @T2"},
        schedule="U1 x> U2 y> y? y> x> y? y>",
        states=("1 3 5", "1 3 5; 2 3 5"),
        transactions=Transactions.GLOBAL,
    ),
    "strobe-5-g-strobe": Example(
        title="Strobe paper, example 5: G-Strobe waits for all of the global transaction",
        algorithm="g-strobe",
        relations=("x.r1(a*, b):", "y.r2(b, c*): 3 4; 3 5"),
        view="SELECT r1.a, r1.b, r2.c FROM x.r1 JOIN y.r2 ON r1.b = r2.b",
        updates={"U1": "+x.r1 1 3", "U2": "-y.r2 3 4 @T2", "U3": "+x.r1 2 3 @T2"},
        schedule="U1 x> U2 y> y? y> x> y? y>",
        states=("1 3 5; 2 3 5",),
        transactions=Transactions.GLOBAL,
    ),
    "strobe-6": replace(
        _STROBE_1,
        title="Strobe paper, example 6: C-Strobe gives each update its state; the deletion comes after the answer",
        algorithm="c-strobe",
        schedule="U1 y> x? x> U2 x> z? z> z? z>",
        states=("1 2 3 4", ""),
    ),
    "strobe-7": replace(
        _STROBE_1,
        title="Strobe paper, example 7: the deletion comes before the answer; a compensating query finds the row",
        algorithm="c-strobe",
        schedule="U1 y> U2 x> x? x> z? z>",
        states=("1 2 3 4", ""),
    ),
    "sweep-figure-5": replace(
        _FIGURE_5,
        title="SWEEP paper, figure 5: three updates, one after the other",
        algorithm="sweep",
        schedule="U1 s2> s1? s1> s3? s3> U2 s3> s2? s2> s1? s1> U3 s1> s2? s2> s3? s3>",
    ),
    "sweep-figure-5-concurrent": replace(
        _FIGURE_5,
        title="SWEEP paper, section 5.2: the three updates of figure 5 at once",
        algorithm="sweep",
        schedule="U1 s2> U2 U3 s3> s1> s1? s1> s3? s3> s2? s2> s1? s1> s2? s2> s3? s3>",
    ),
    "sweep-figure-5-nested": replace(
        _FIGURE_5,
        title="SWEEP paper, figure 6 over the updates of figure 5: Nested SWEEP folds them into one state",
        algorithm="nested-sweep",
        schedule="U1 s2> U2 U3 s3> s1> s1? s1> s2? s2> s3? s3> s2? s2> s1? s1>",
        states=("5 6",),
    ),
    "sweep-figure-5-batched": replace(
        _FIGURE_5,
        title="The updates of figure 5 under batched-sweep: one round of queries for what waits, a state for each",
        algorithm="batched-sweep",
        schedule="U1 s2> U2 U3 s3> s1> s1? s1> s3? s3>",
    ),
    "sweep-figure-5-parallel": replace(
        _FIGURE_5,
        title="The updates of figure 5 under parallel-sweep: both sides of an update are asked at once",
        algorithm="parallel-sweep",
        schedule="U1 s2> U2 U3 s3> s1> s3? s1? s3> s1>",
    ),
    "sweep-figure-5-pipelined": replace(
        _FIGURE_5,
        title="The updates of figure 5 under pipelined-sweep: three sweeps in flight, installed in order",
        algorithm="pipelined-sweep",
        schedule="U1 s2> U2 U3 s3> s1>",
    ),
    "sweep-figure-5-parallel-pipelined": replace(
        _FIGURE_5,
        title="The updates of figure 5 under parallel-pipelined-sweep: all in flight, both sides of U1 asked at once",
        algorithm="parallel-pipelined-sweep",
        schedule="U1 s2> U2 U3 s3> s1>",
    ),
    "sweep-recompute": replace(
        _FIGURE_5,
        title="The updates of figure 5 under recompute: a state made of answers from different moments",
        algorithm="recompute",
        schedule="U1 s2> s1? s1> U2 U3 s3> s1> s2? s2> s3? s3>",
        states=("5 6; 5 6", "5 6"),
    ),
    "sweep-eca": replace(
        _SECTION_3,
        title="SWEEP paper, section 3: ECA asks for ΔR2's change less the error term that Q1 already has",
        algorithm="eca",
        relations=("s.r1(a*, b): 9 2", "s.r2(b*, c): 7 3", "s.r3(c*, d): 3 4"),
        schedule="U1 s> U2 s> s? s> s? s>",
        states=("1 2 3 4; 9 2 3 4",),
    ),
    "sweep-eca-key": Example(
        title="Strobe paper, section 5.2: ECA-Key when a tuple is deleted while its own query is out",
        algorithm="eca-key",
        relations=("s.r1(a*, b):", "s.r2(b*, c): 2 3", "s.r3(c*, d): 3 4"),
        view="SELECT r1.a, r2.b, r2.c, r3.d FROM s.r1 JOIN s.r2 ON r1.b = r2.b JOIN s.r3 ON r2.c = r3.c",
        updates={"U1": "+s.r1 1 2", "U2": "-s.r1 1 2"},
        schedule="U1 s> U2 s> s? s>",
        states=("1 2 3 4",),
    ),
    "sweep-strobe": replace(
        _APART,
        title="SWEEP paper, section 3: under Strobe both answers have the error term, suppressed as a duplicate",
        algorithm="strobe",
        updates={"U1": "+x.r1 1 2", "U2": "+y.r2 2 3"},
        schedule="U1 x> U2 y> y? y> x? x> z? z> z? z>",
        states=("1 2 3 4; 9 2 3 4",),
    ),
    "sweep-c-strobe": Example(
        title="SWEEP paper, section 3: C-Strobe compensates an answer, and then the compensation",
        algorithm="c-strobe",
        relations=("x.r1(a*, b):", "y.r2(b*, c): 2 3", "z.r3(c*, d): 3 4"),
        view="SELECT r1.a, r2.b, r2.c, r3.d FROM x.r1 JOIN y.r2 ON r1.b = r2.b JOIN z.r3 ON r2.c = r3.c",
        updates={"U1": "+x.r1 1 2", "U2": "-y.r2 2 3", "U3": "-z.r3 3 4"},
        schedule="U1 x> U2 y> y? y> U3 z> z? z>",
        states=("1 2 3 4", "", ""),
    ),
    "c-t-strobe": Example(
        title="Strobe paper, section 6: C-T-Strobe gives a source-local transaction one complete state",
        algorithm="c-t-strobe",
        relations=("x.r1(a*, b): 5 2", "y.r2(b*, c): 2 3", "z.r3(c*, d): 3 4"),
        view="SELECT r1.a, r2.b, r2.c, r3.d FROM x.r1 JOIN y.r2 ON r1.b = r2.b JOIN z.r3 ON r2.c = r3.c",
        updates={"T1": "-x.r1 5 2, +x.r1 1 2, +x.r1 6 2", "T2": "-y.r2 2 3"},
        schedule="T1 x> T2 y> y? y> z? z>",
        states=("1 2 3 4; 6 2 3 4", ""),
        transactions=Transactions.LOCAL,
    ),
    "periodic-c-strobe": replace(
        _APART,
        title="Strobe paper, section 6: periodic C-Strobe installs after two updates, whatever comes after them",
        algorithm="periodic-c-strobe",
        updates={"U1": "+x.r1 1 2", "U2": "+y.r2 2 3", "U3": "-z.r3 3 4"},
        schedule="U1 x> U2 y> U3 z>",
        states=("1 2 3 4; 9 2 3 4", ""),
        options=(("period", 2),),
    ),
    "wrapper-1": replace(
        _WRAPPER,
        title="Wrapper paper, example 1: ΔR3 while R2, one of two relations at IS1, changes; behind the wrapper",
        algorithm="sweep",
        updates={"U1": "+is2.r3 9 3", "U2": "-is1.r2 2 3"},
        schedule="U1 is2~ is2> U2 is1~",
        states=("1 8; 1 9", ""),
        multi_relation=True,
    ),
    "wrapper-1-without": replace(
        _WRAPPER,
        title="Wrapper paper, example 1 without the wrapper: the answer shows ΔR2, and SWEEP cannot compensate for it",
        algorithm="sweep",
        updates={"U1": "+is2.r3 9 3", "U2": "+is1.r2 4 3"},
        schedule="U1 is2~ is2> U2 is1? is1! is1~ is1~ is1> is1! is1~ is1>",
        states=("1 8; 1 9; 6 9", "1 8; 1 9; 6 8; 6 9; 6 9"),
        multi_relation=True,
        joint_queries=True,
    ),
    "wrapper-2": replace(
        _WRAPPER,
        title="Wrapper paper, example 2: every relation as a source of its own, IS1 is asked twice",
        algorithm="sweep",
        updates={"U1": "+is2.r3 9 3", "U2": "-is1.r2 2 3"},
        schedule="U1 is2> U2 is1> is1? is1> is1? is1>",
        states=("1 8; 1 9", ""),
    ),
    "wrapper-3": replace(
        _WRAPPER,
        title="Wrapper paper, example 3: the mediator sends one maintenance query per source and collects ΔV",
        algorithm="pipelined-sweep",
        updates={"U1": "+is2.r3 9 3", "U2": "+is1.r1 5 2"},
        schedule="U1 is2~ is2> is1? is1! is1~ is1>",
        states=("1 8; 1 9", "1 8; 1 9; 5 8; 5 9"),
        multi_relation=True,
    ),
    "wrapper-4": replace(
        _WRAPPER,
        title="Wrapper paper, example 4: the view of figure 3, decomposed into the local views of figure 4",
        algorithm="sweep",
        updates={"U1": "+is1.r1 5 2"},
        schedule="U1 is1~ is1! is1~ is1> is2? is2! is2~ is2>",
        states=("1 8; 5 8",),
        multi_relation=True,
    ),
    "wrapper-5": replace(
        _WRAPPER,
        title="Wrapper paper, example 5: ΔIS(R1) while R2 changes, compensated inside the wrapper",
        algorithm="sweep",
        updates={"U1": "+is1.r1 5 2", "U2": "-is1.r2 2 3"},
        schedule="U1 is1~ U2 is1~ is1! is1~",
        states=("1 8; 5 8", ""),
        multi_relation=True,
    ),
    "wrapper-6": replace(
        _WRAPPER,
        title="Wrapper paper, example 6: ΔIS1(R2) leaves before the answer that already shows it",
        algorithm="sweep",
        updates={"U1": "+is2.r3 9 3", "U2": "+is1.r2 4 3"},
        schedule="U1 is2~ is2> U2 is1? is1! is1~ is1~ is1! is1~ is1> is1>",
        states=("1 8; 1 9", "1 8; 1 9; 6 8; 6 9"),
        multi_relation=True,
    ),
}


def find_example(name: str) -> Example:
    """The example of that name."""
    if name not in EXAMPLES:
        close = difflib.get_close_matches(name, EXAMPLES, n=1)
        raise UsageError(
            f"there is no example {name!r}",
            f"did you mean {close[0]}?" if close else "viewkeeper simulate --list shows them",
        )
    return EXAMPLES[name]
