"""What is shown of a load, and of the views while they are maintained."""

import os
import pty
import re
import sqlite3
import subprocess
import sys
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from viewkeeper import Warehouse
from viewkeeper.cli import loading, view_lines
from viewkeeper.cli.loading import Figures, duration
from viewkeeper.cli.tables import fit
from viewkeeper.cli.view_lines import VIEW_HEADINGS, view_rows
from viewkeeper.clock import now
from viewkeeper.maintenance.load_progress import LoadProgress
from viewkeeper.mediator.report import GroupReport, Report, SourceReport, ViewReport
from waiting import LONG, program


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time, to be set."""
    time = [100.0]
    monkeypatch.setattr(loading, "monotonic", lambda: time[0])
    return time


# --- loads ---


def test_rows_rate_and_time_left(clock: list[float]) -> None:
    figures = Figures("big")
    assert figures.see(LoadProgress("shop.orders", 0, 1000))
    assert figures.text() == "reading shop.orders: 0 of about 1,000 rows"
    clock[0] += 2
    assert not figures.see(LoadProgress("shop.orders", 500, 1000))
    assert figures.text() == "reading shop.orders: 500 of about 1,000 rows, 250 a second, 2 s left"
    assert figures.bar() == "[############............] "


def test_an_estimate_that_was_too_low_is_not_shown_any_more(clock: list[float]) -> None:
    figures = Figures("big")
    figures.see(LoadProgress("shop.orders", 0, 10))
    clock[0] += 1
    figures.see(LoadProgress("shop.orders", 20, 10))
    assert figures.text() == "reading shop.orders: 20 rows, 20 a second"


def test_without_an_estimate_there_is_no_bar(clock: list[float]) -> None:
    figures = Figures("big")
    figures.see(LoadProgress("lake.orders", 20))
    assert (figures.bar(), figures.text()) == ("", "reading lake.orders: 20 rows")
    figures.see(LoadProgress(None, 40))
    assert figures.text() == "computing big from 40 rows"


@pytest.mark.parametrize(("seconds", "told"), [(9.4, "9 s"), (130, "2 min"), (7500, "2 h 5 min")])
def test_durations(seconds: float, told: str) -> None:
    assert duration(seconds) == told


def shop(folder: Path, rows: int) -> Path:
    with closing(sqlite3.connect(folder / "shop.db")) as connection:
        connection.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY, amount INTEGER)")
        connection.executemany("INSERT INTO orders VALUES (?, ?)", ((n, n) for n in range(1, rows + 1)))
        connection.commit()
    return folder / "shop.db"


def test_a_load_tells_its_rows_and_what_the_source_thinks_it_has(tmp_path: Path) -> None:
    seen: list[LoadProgress] = []
    with Warehouse.open(tmp_path / "lake") as warehouse:
        warehouse.add_source("shop", f"sqlite:///{shop(tmp_path, 5000)}", install=True)
        warehouse.watch_loads(seen.append)
        warehouse.create_view("CREATE MATERIALIZED VIEW big AS SELECT id FROM shop.orders")
        warehouse.watch_loads(None)
        told = len(seen)
        warehouse.reload("big")
    assert seen[0] == LoadProgress("shop.orders", 0, 5000)
    assert seen[-2] == LoadProgress("shop.orders", 5000, 5000)
    assert seen[-1] == LoadProgress(None, 5000)
    assert len(seen) == told, "nobody is told any more"


def test_lines_where_there_is_no_terminal(
    tmp_path: Path, clock: list[float], capsys: pytest.CaptureFixture[str]
) -> None:
    with Warehouse.open(tmp_path / "lake") as warehouse:
        warehouse.add_source("shop", f"sqlite:///{shop(tmp_path, 5)}", install=True)
        with loading.load_shown(warehouse, "big", quiet=False):
            warehouse.create_view("CREATE MATERIALIZED VIEW big AS SELECT id FROM shop.orders")
        assert capsys.readouterr().err == "", "a load that takes no time needs no words"
        with loading.load_shown(warehouse, "big", quiet=False):
            clock[0] += loading.LINE_EVERY
            warehouse.reload("big")
        assert capsys.readouterr().err == "reading shop.orders: 0 of about 5 rows\n"
        with loading.load_shown(warehouse, "big", quiet=True):
            clock[0] += loading.LINE_EVERY
            warehouse.reload("big")
        assert capsys.readouterr().err == ""


# --- views ---

SHOP = SourceReport("shop", "12", 3)
CRM = SourceReport("crm", "7", 0)
GROUP = GroupReport(
    "g", ("v",), {}, 10, 4, 0, 10, 0, 15, 8, 100, 50, behind={"shop": 3, "crm": 0}, refresh_seconds=0.043
)


def view(**given: object) -> ViewReport:
    seen = ViewReport("v", "g", 12, 3000, (now() - timedelta(seconds=4.2)).isoformat())
    return replace(seen, **given)  # type: ignore[arg-type]


def cells(report: Report) -> dict[str, str]:
    (row,) = view_rows(report, {"g": 2.0})
    return dict(zip(VIEW_HEADINGS, row, strict=True))


@pytest.fixture
def still(monkeypatch: pytest.MonkeyPatch) -> None:
    moment = now()
    monkeypatch.setattr(view_lines, "now", lambda: moment)


@pytest.mark.usefixtures("still")
def test_a_line_for_each_view() -> None:
    assert cells(Report((SHOP, CRM), (GROUP,), {}, (view(),))) == {
        "view": "v",
        "state": "12",
        "rows": "3,000",
        "lag": "shop 3",
        "updates/s": "2.0",
        "queries each": "1.50",
        "last refresh": "4 s ago in 0.04 s",
    }


def test_a_source_that_is_away_is_a_lag_too() -> None:
    away = replace(CRM, trouble="refused", unreachable_for=12.0)
    assert cells(Report((SHOP, away), (GROUP,), {}, (view(),)))["lag"] == "crm away 12 s, shop 3"
    gone = replace(CRM, failure="no privilege")
    assert cells(Report((SHOP, gone), (GROUP,), {}, (view(),)))["lag"] == "crm stopped, shop 3"
    calm = replace(GROUP, behind={"shop": 0, "crm": 0})
    assert cells(Report((SHOP, CRM), (calm,), {}, (view(),)))["lag"] == "none"


def test_views_that_are_not_maintained_say_so() -> None:
    assert cells(Report((SHOP,), (GROUP,), {"v": "TRUNCATE"}, (view(),)))["lag"] == "halted"
    assert cells(Report((SHOP,), (replace(GROUP, failure="no space"),), {}, (view(),)))["lag"] == "stopped"


@pytest.mark.usefixtures("still")
def test_what_waits_for_a_deferred_summary() -> None:
    told = cells(Report((SHOP,), (GROUP,), {}, (view(deferred=True, waiting=1200),)))["last refresh"]
    assert told == "4 s ago, 1,200 wait"


# --- rows in a terminal ---


def test_long_texts_are_cut_and_numbers_are_not() -> None:
    lines = [["id", "text", "more"], ["123456789012", "x" * 50, "short"]]
    fitted = fit(lines, 40, {0})
    assert fitted[1] == ["123456789012", "x" * 18 + "…", "short"]
    assert fit(lines, 200, {0}) == lines


# --- colours ---


def in_a_terminal(words: list[str], **environment: str) -> str:
    ours, theirs = pty.openpty()
    clean = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "FORCE_COLOR")}
    settings = {**clean, "TERM": "xterm-256color", **environment}
    shown = b""
    with program([sys.executable, "-m", "viewkeeper", *words], stdout=theirs, stderr=theirs, env=settings) as process:
        os.close(theirs)
        while True:
            try:
                shown += os.read(ours, 100_000)
            except OSError:  # the other side is closed
                break
        assert process.wait(LONG) == 0
    os.close(ours)
    return shown.decode()


COLOUR = re.compile(r"\x1b\[[0-9;]*\b(3[0-8]|4[0-8]|9[0-7]|10[0-7])[0-9;]*m")
MATRIX = ["simulate", "--matrix", "--runs", "1", "--seed", "1", "--updates", "2"]


@pytest.mark.processes
def test_colours_are_for_terminals_and_respect_no_color() -> None:
    assert COLOUR.search(in_a_terminal(MATRIX)), "or the next line proves nothing"
    assert not COLOUR.search(in_a_terminal(MATRIX, NO_COLOR="1"))
    done = subprocess.run([sys.executable, "-m", "viewkeeper", *MATRIX], capture_output=True, text=True, check=True)
    assert "\x1b" not in done.stdout + done.stderr
