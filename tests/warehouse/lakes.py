"""Small warehouses for the tests of crashes, full disks and bad input; building them needs no Spark."""

from pathlib import Path
from typing import Any

from viewkeeper.algebra.memory import MemoryZSet
from viewkeeper.lake.commit import Commit
from viewkeeper.warehouse import Warehouse

ORDERS = ("id", "item")
ORDER_TYPES = {"id": "BIGINT", "item": "STRING"}
TOTALS = ("item", "total")
TOTAL_TYPES = {"item": "STRING", "total": "BIGINT"}


def orders(*rows: tuple[Any, ...], minus: tuple[tuple[Any, ...], ...] = ()) -> MemoryZSet:
    """Rows that are inserted, and rows that are deleted."""
    return MemoryZSet(ORDERS, [(row, 1) for row in rows] + [(row, -1) for row in minus])


def totals(*rows: tuple[Any, ...], minus: tuple[tuple[Any, ...], ...] = ()) -> MemoryZSet:
    return MemoryZSet(TOTALS, [(row, 1) for row in rows] + [(row, -1) for row in minus])


def place(number: int) -> str:
    """A position."""
    return f"{number:020d}"


def prepare(root: Path, commits: int = 2) -> None:
    """Two groups, of `shop` (orders, returns, totals) and of `crm` (people, visits), each with a few states."""
    with Warehouse.open(root, compaction=None) as wh:
        with wh.commit() as commit:
            for view in ("orders", "returns"):
                commit.create(
                    view, ORDER_TYPES, rows=orders((1, "pen"), (2, "ink")), group="shop", vector={"shop": place(0)}
                )
            commit.create("totals", TOTAL_TYPES, rows=totals(("pen", 1), ("ink", 1)), layout="rewritten", group="shop")
            for view in ("people", "visits"):
                commit.create(view, ORDER_TYPES, rows=orders((7, "Ada")), group="crm", vector={"crm": place(0)})
        for number in range(1, commits + 1):
            with wh.commit() as commit:
                add_states(commit, number)


def add_states(commit: Commit, number: int) -> None:
    """A state for each group: a row more in each view, and a total that grows."""
    commit.state(
        "shop",
        {"shop": place(number)},
        {
            "orders": orders((10 + number, "pen")),
            "returns": orders((10 + number, "ink")),
            "totals": totals(("pen", number + 1), minus=(("pen", number),)),
        },
    )
    commit.state("crm", {"crm": place(number)}, {"people": orders((10 + number, "Bob"))})


def make_large_commit(wh: Warehouse) -> None:
    """One commit with everything in it: appended and rewritten views of two groups, a new view of each layout, and one
    that is dropped."""
    next_state = wh.states("totals")[-1].state + 1
    with wh.commit() as commit:
        add_states(commit, next_state)
        commit.state("shop", {"shop": place(99)}, {"orders": orders((99, "ink"), minus=((1, "pen"),))})
        commit.create("notes", ORDER_TYPES, rows=orders((5, "a"), (6, "b")), group="crm")
        commit.create("counts", TOTAL_TYPES, rows=totals(("a", 1)), layout="rewritten", group="crm")
        commit.create("empty", TOTAL_TYPES, group="news", vector={"news": place(0)})
        commit.drop("visits")


def make_growing_commit(wh: Warehouse) -> None:
    """Two states of a rewritten view, whose changes are appended from there on."""
    with wh.commit() as commit:
        commit.append_from_now_on("totals")
        commit.state("shop", {"shop": place(500)}, {"totals": totals(("cap", 1))})
        commit.state("shop", {"shop": place(501)}, {"totals": totals(("cap", 2), minus=(("cap", 1),))})


def make_small_commit(wh: Warehouse) -> None:
    """One more state of a view of each layout."""
    with wh.commit() as commit:
        commit.state(
            "shop",
            {"shop": place(1000)},
            {"orders": orders((1000, "cap")), "totals": totals(("cap", 1))},
        )
