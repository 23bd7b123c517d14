"""Tables for people: drawn in a terminal, plain aligned text elsewhere."""

import sys
from collections.abc import Collection, Sequence
from typing import Any

import click

GAP = 2
"""signs between two columns"""
SHORTEST = 8
"""signs that a cell is never cut below"""
_SHOWN = {"\n": "\\n", "\r": "\\r", "\t": "\\t", "\x1b": "\\x1b"}
"""what would break a line or speak to the terminal"""


def show_table(headings: Sequence[str], rows: Sequence[Sequence[str]], right: Collection[int] = ()) -> None:
    """Prints rows under their headings; the columns numbered in `right` are aligned to the right."""
    shown = [[_one_line(cell) for cell in row] for row in rows]
    if sys.stdout.isatty():
        _draw(headings, shown, right)
    else:
        click.echo("\n".join(aligned(headings, shown, right)))


def show_rows(headings: Sequence[str], rows: Sequence[Sequence[str]], right: Collection[int] = ()) -> bool:
    """Prints rows of data, each on one line: in a terminal that is too narrow long texts are cut, numbers never are.
    Whether something was."""
    shown = [[_one_line(cell) for cell in row] for row in rows]
    if not sys.stdout.isatty():
        click.echo("\n".join(aligned(headings, shown, right)))
        return False
    from rich.console import Console

    console = Console(highlight=False)
    fitted = fit([headings, *shown], console.width, right)
    console.print(drawn_table(fitted[0], fitted[1:], right))
    return fitted != [list(line) for line in [headings, *shown]]


def fit(lines: Sequence[Sequence[str]], room: int, whole: Collection[int] = ()) -> list[list[str]]:
    """The lines with their longest cells cut to one length, so that they fit; the columns in `whole` are left alone."""
    from rich.cells import cell_len, set_cell_size

    widths = [max(map(cell_len, column)) for column in zip(*lines, strict=True)]

    def taken(most: int) -> int:
        return sum(width if number in whole else min(width, most) for number, width in enumerate(widths))

    gaps = GAP * (len(widths) - 1)
    most = max(widths, default=0)
    while most > SHORTEST and taken(most) + gaps > room:
        most -= 1

    def cut(cell: str, number: int) -> str:
        if number in whole or cell_len(cell) <= most:
            return cell
        return set_cell_size(cell, most - 1).rstrip() + "…"

    return [[cut(cell, number) for number, cell in enumerate(line)] for line in lines]


def aligned(headings: Sequence[str], rows: Sequence[Sequence[str]], right: Collection[int] = ()) -> list[str]:
    """The lines of a plain table."""
    from rich.cells import cell_len

    widths = [max(map(cell_len, column)) for column in zip(headings, *rows, strict=True)]

    def line(cells: Sequence[str]) -> str:
        gaps = [" " * (width - cell_len(cell)) for cell, width in zip(cells, widths, strict=True)]
        padded = [
            gap + cell if number in right else cell + gap
            for number, (cell, gap) in enumerate(zip(cells, gaps, strict=True))
        ]
        return "  ".join(padded).rstrip()

    return [line(headings), *map(line, rows)]


def _draw(headings: Sequence[str], rows: Sequence[Sequence[str]], right: Collection[int]) -> None:
    from rich.console import Console

    Console(highlight=False).print(drawn_table(headings, rows, right))


def drawn_table(headings: Sequence[str], rows: Sequence[Sequence[str]], right: Collection[int] = ()) -> Any:
    """A table for a terminal; what does not fit goes on in the next line."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False, show_edge=False)
    for number, heading in enumerate(headings):
        table.add_column(Text(heading), justify="right" if number in right else "left", overflow="fold")
    for row in rows:
        table.add_row(*map(Text, row))
    return table


def _one_line(cell: str) -> str:
    for sign, written in _SHOWN.items():
        cell = cell.replace(sign, written)
    return cell


def size(count: int) -> str:
    """Bytes as people read them."""
    amount, units = float(count), ["bytes", "KiB", "MiB", "GiB", "TiB"]
    while amount >= 1024 and len(units) > 1:
        amount, units = amount / 1024, units[1:]
    return f"{count} bytes" if units[0] == "bytes" else f"{amount:.1f} {units[0]}"


def counted(number: int, noun: str) -> str:
    """`1 row`, `2 rows`."""
    return f"{number} {noun}" + ("" if number == 1 else "s")


def row_count(rows: int, *, selects: bool) -> str:
    """`3 rows`, or `up to 3 rows` of a view that shows only some of what is stored for it."""
    return f"{'up to ' if selects else ''}{counted(rows, 'row')}"


def row_cell(rows: int, *, selects: bool) -> str:
    """The same in a table."""
    return f"{'<= ' if selects else ''}{rows:,}"


def vector(positions: "dict[str, str]") -> str:
    """Positions without the zeros that only make them sort."""
    return ", ".join(f"{source} {place.lstrip('0') or '0'}" for source, place in sorted(positions.items())) or "-"


def moment(time: str) -> str:
    """A time of the warehouse, to the second."""
    return f"{time[:10]} {time[11:19]} UTC" if time else "-"
