"""What each algorithm sends: queries and rows per update, by the number of relations and by what interferes.

Prints one JSON object; with `--markdown` the table of docs/messages.md. Everything is counted, nothing is timed, so the
figures are the same on every machine.
"""

import json
import sys

from viewkeeper.algorithms.registry import ALGORITHMS
from viewkeeper.sim.chains import Calm, Hostile, Storm, Timing, chain, run_chain

NS = (2, 3, 4, 5)
BATCHES = (1, 4, 16, 64)
UPDATES = 15


def mixed(relations: int, count: int) -> list[tuple[int, int]]:
    """Two insertions and one deletion by turns, relation by relation."""
    return [
        (number % relations + 1, -1 if (number // relations + number % relations) % 3 == 2 else 1)
        for number in range(count)
    ]


def per_update(algorithm: str, relations: int, timing: Timing) -> dict[str, float]:
    """Queries and rows per update of a mixed load on a chain."""
    one_source = ALGORITHMS[algorithm].one_source
    updates = 10 if one_source else UPDATES
    setting = chain(relations, mixed(relations, updates), rows=3, per_source=relations if one_source else 1)
    messages = run_chain(algorithm, setting, timing).messages
    return {"queries": round(messages.queries / updates, 3), "rows": round(messages.rows / updates, 3)}


def c_strobe_worst(relations: int, *, grouped: bool) -> dict[str, int]:
    """Messages for one insertion while every other source deletes a row before each answer."""
    deletions = [(j, -1) for _ in range(relations - 1) for j in range(2, relations + 1)]
    setting = chain(relations, [(1, 1), *deletions], rows=relations)
    options = (("grouped", grouped),)
    return {"queries": run_chain("c-strobe", setting, Hostile(), options=options).messages.queries}


def compensating_bound(relations: int) -> int:
    """Σ (n-1)!/(n-1-k)! for k = 1..n-2."""
    total, ways = 0, 1
    for k in range(1, relations - 1):
        ways *= relations - k
        total += ways
    return total


def batched(relations: int, batch: int) -> float:
    """Queries per update of batched-sweep when everything waits at once."""
    updates = 128
    setting = chain(relations, mixed(relations, updates), rows=60)
    run = run_chain("batched-sweep", setting, Storm(), options=(("batch", batch),))
    return round(run.messages.queries / updates, 4)


def wrapped(relations: int, per_source: int) -> dict[str, int]:
    """Queries for one insertion into each relation, with and without the multi-relation wrapper."""
    setting = chain(relations, [(j, 1) for j in range(1, relations + 1)], per_source=per_source)
    run = run_chain("sweep", setting, Calm(), multi_relation=True)
    return {
        "relations": relations,
        "sources": len(setting.script),
        "without": run_chain("sweep", setting, Calm()).messages.queries,
        "maintenance": run.messages.queries,
        "local": run.local_queries,
        "with": run.messages.queries + run.local_queries,
    }


def measure() -> dict[str, object]:
    return {
        "per_update": {
            name: {f"n={n}": {"calm": per_update(name, n, Calm()), "storm": per_update(name, n, Storm())} for n in NS}
            for name in ALGORITHMS
        },
        "c_strobe_one_insertion_under_constant_deletions": {
            f"n={n}": {
                "grouped": c_strobe_worst(n, grouped=True),
                "ungrouped": c_strobe_worst(n, grouped=False),
                "compensating_queries_bound": compensating_bound(n),
            }
            for n in NS
        },
        "batched_sweep_queries_per_update": {
            f"n={n}": {f"batch={batch}": batched(n, batch) for batch in BATCHES} for n in (2, 3, 4)
        },
        "wrapper": [wrapped(4, 2), wrapped(6, 2), wrapped(6, 3), wrapped(4, 4)],
    }


def markdown(measured: dict[str, object]) -> str:
    lines = ["| algorithm | n = 2 | n = 3 | n = 4 | n = 5 | rows per update, n = 4 |", "|---|---|---|---|---|---|"]
    per = measured["per_update"]
    assert isinstance(per, dict)
    for name, by_n in per.items():
        cells = [f"{by_n[f'n={n}']['calm']['queries']:g} / {by_n[f'n={n}']['storm']['queries']:g}" for n in NS]
        rows = f"{by_n['n=4']['calm']['rows']:g} / {by_n['n=4']['storm']['rows']:g}"
        lines.append(f"| {name} | {' | '.join(cells)} | {rows} |")
    return "\n".join(lines)


if __name__ == "__main__":
    result = measure()
    print(markdown(result) if "--markdown" in sys.argv else json.dumps(result, indent=2))
