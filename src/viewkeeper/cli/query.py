"""`viewkeeper query`: Spark SQL over the views, all at one commit."""

import sys
from pathlib import Path

import click

from viewkeeper.cli.opening import open_to_read, warehouse_option
from viewkeeper.cli.results import FORMATS, check_output, data_is_piped, write_result


@click.command(short_help="Run a SELECT over the views.")
@click.argument("sql", metavar="[SELECT]", required=False)
@warehouse_option
@click.option("--file", "file", metavar="FILE", type=click.Path(), help="Read the query from a file.")
@click.option(
    "--format", "form", type=click.Choice(FORMATS), default="table", show_default=True, help="How rows are written."
)
@click.option("--output", metavar="FILE", type=click.Path(), help="Write to a file; parquet needs one.")
@click.option(
    "--limit", metavar="N", type=click.IntRange(min=1), help="At most N rows.  [default: 100 in a table, else all]"
)
def query(sql: str | None, path: str, file: str | None, form: str, output: str | None, limit: int | None) -> None:
    """Run a SELECT in Spark's dialect over the views of the warehouse, by their names, all at one commit.

    Give the query as one argument, as - for standard input, or with --file. Values are exact: decimals with all their
    digits (in JSON as text), timestamps as ISO 8601 in UTC, binary values as hexadecimal digits. NULL is empty in CSV,
    where an empty text is "", and null in JSON. CSV and JSON are written as the rows come.

    \b
    Examples:
      viewkeeper query 'SELECT city, SUM(amount) FROM big_orders GROUP BY city' -w lake
      viewkeeper query 'SELECT * FROM big_orders' --format csv > big_orders.csv
      viewkeeper query --file report.sql --format parquet --output report.parquet
    """
    text = _query_text(sql, file)
    target = check_output(form, output)
    with (
        open_to_read(path, quiet=data_is_piped(form, output)) as warehouse,
        warehouse.snapshot() as snapshot,
    ):
        write_result(snapshot.sql(text), form, target, limit)


def _query_text(sql: str | None, file: str | None) -> str:
    from viewkeeper.errors import UsageError

    if (sql is None) == (file is None):
        raise UsageError(
            "there is no query" if sql is None else "there are two queries: an argument and --file",
            "give one: as an argument, as - for standard input, or with --file",
        )
    if sql == "-":
        return _decoded(sys.stdin.buffer.read(), "standard input")
    if file is None:
        return sql or ""
    try:
        return _decoded(Path(file).read_bytes(), file)
    except OSError as error:
        raise UsageError(f"cannot read {file}: {error.strerror}", "name a file with the query") from error


def _decoded(content: bytes, place: str) -> str:
    from viewkeeper.errors import UsageError

    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(f"{place} is not UTF-8 text", "give the query as text") from error
