"""How long after a commit the view shows it, and what that asks: the sweeps by number of relations, rate and delay.

    python benchmarks/latency.py [--markdown relations | rate | delay | burst | unmatched]

In virtual time (`viewkeeper.sim.virtual_time`): the figures come from the seed and are the same on every machine.
Prints JSON, or one experiment as tables for docs/latency.md.
"""

import argparse
import json
from dataclasses import replace
from functools import cache
from typing import Any

from viewkeeper.sim.virtual_time import Load, Timing, timed

SWEEPS = (
    "sweep", "parallel-sweep", "pipelined-sweep", "parallel-pipelined-sweep", "nested-sweep", "batched-sweep",
)  # fmt: skip
BASE = Load(relations=4, rate=10.0, delay=0.010)
EXPERIMENTS: dict[str, tuple[str, dict[str, Load]]] = {
    "relations": ("relations", {f"{n}": replace(BASE, relations=n) for n in (2, 3, 4, 5, 6)}),
    "rate": ("updates per second", {f"{rate:g}": replace(BASE, rate=float(rate)) for rate in (1, 10, 30, 100, 1000)}),
    "delay": ("delay, ms", {f"{ms:g}": replace(BASE, delay=ms / 1000) for ms in (1, 3, 10, 30, 100)}),
}
BURST = Load(relations=3, updates=300, rate=0.0)
BURST_OPTIONS: dict[str, tuple[dict[str, int | bool], ...]] = {
    "sweep": ({},),
    "nested-sweep": ({"updates": 64}, {"updates": 4096}),
    "batched-sweep": ({"batch": 64}, {"batch": 4096}),
}
UNMATCHED = replace(BASE, relations=3, updates=100, rate=1.0)
SHARES = (0.0, 0.2, 0.4, 0.6)


@cache
def run(algorithm: str, load: Load, options: tuple[tuple[str, int | bool], ...] = ()) -> Timing:
    return timed(algorithm, load, dict(options))


def figures(timing: Timing) -> dict[str, Any]:
    updates = len(timing.latencies)
    return {
        "median_ms": round(1000 * timing.quantile(0.5), 1),
        "p95_ms": round(1000 * timing.quantile(0.95), 1),
        "queries_per_update": round(timing.queries / updates, 3),
        "states_per_update": round(timing.states / updates, 3),
        "falls_behind": timing.falls_behind,
    }


def experiment(name: str) -> dict[str, dict[str, dict[str, Any]]]:
    """algorithm -> value -> figures"""
    _, loads = EXPERIMENTS[name]
    return {one: {value: figures(run(one, load)) for value, load in loads.items()} for one in SWEEPS}


def burst() -> list[dict[str, Any]]:
    """All updates at once: what each sweep asks in all, by its bound."""
    rows = []
    for name, choices in BURST_OPTIONS.items():
        for options in choices:
            timing = run(name, BURST, tuple(options.items()))
            bound = next((f"{option} = {value}" for option, value in options.items()), "")
            rows.append({"algorithm": name, "bound": bound, "queries": timing.queries, "states": timing.states})
    return rows


def unmatched() -> dict[str, dict[str, int]]:
    """Queries in all where some rows have no partner, one update after the other."""
    loads = {f"{share:.0%}": replace(UNMATCHED, unmatched=share) for share in SHARES}
    return {
        name: {share: run(name, load).queries for share, load in loads.items()} for name in ("sweep", "parallel-sweep")
    }


def measure() -> dict[str, Any]:
    return {**{name: experiment(name) for name in EXPERIMENTS}, "burst": burst(), "unmatched": unmatched()}


def markdown(name: str) -> str:
    if name == "burst":
        lines = ["| algorithm | bound | queries | states |", "|---|---|---|---|"]
        lines += [f"| {row['algorithm']} | {row['bound']} | {row['queries']} | {row['states']} |" for row in burst()]
        return "\n".join(lines)
    if name == "unmatched":
        shares = next(iter(unmatched().values()))
        return table(
            "rows without a partner", list(shares), {one: list(row.values()) for one, row in unmatched().items()}
        )
    heading, loads = EXPERIMENTS[name]
    measured = experiment(name)
    latency = {one: [_latency(cell) for cell in row.values()] for one, row in measured.items()}
    queries = {one: [f"{cell['queries_per_update']:.2f}" for cell in row.values()] for one, row in measured.items()}
    return "\n\n".join(
        [
            "Latency in ms, median / 95th percentile:",
            table(heading, list(loads), latency),
            "Queries per update:",
            table(heading, list(loads), queries),
        ]
    )


def _latency(cell: dict[str, Any]) -> str:
    text = f"{cell['median_ms']:,.0f} / {cell['p95_ms']:,.0f}"
    return f"{text} †" if cell["falls_behind"] else text


def table(heading: str, values: list[str], rows: dict[str, list[Any]]) -> str:
    lines = [f"| {heading} | {' | '.join(values)} |", "|---|" + "---|" * len(values)]
    return "\n".join([*lines, *(f"| {name} | {' | '.join(map(str, cells))} |" for name, cells in rows.items())])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--markdown", choices=[*EXPERIMENTS, "burst", "unmatched"])
    options = parser.parse_args()
    print(markdown(options.markdown) if options.markdown else json.dumps(measure(), indent=2))


if __name__ == "__main__":
    main()
