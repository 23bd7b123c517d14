"""`viewkeeper query`: Spark SQL over the views, all at one commit."""

import click

from viewkeeper.cli.opening import open_to_read, warehouse_option
from viewkeeper.cli.results import (
    FORMATS,
    check_output,
    data_is_piped,
    form_of,
    json_rows_option,
    say_written,
    write_result,
)
from viewkeeper.cli.sql_text import sql_text


@click.command(short_help="Run a SELECT over the views.")
@click.argument("sql", metavar="[SELECT]", required=False)
@warehouse_option
@click.option("--file", "file", metavar="FILE", type=click.Path(), help="Read the query from a file.")
@click.option(
    "--format",
    "form",
    type=click.Choice(FORMATS),
    help="How rows are written.  [default: as the name of --output ends, else table]",
)
@json_rows_option
@click.option("--output", metavar="FILE", type=click.Path(), help="Write to a file; parquet needs one.")
@click.option(
    "--limit", metavar="N", type=click.IntRange(min=1), help="At most N rows.  [default: 100 in a table, else all]"
)
def query(
    sql: str | None,
    path: str,
    file: str | None,
    form: str | None,
    as_json: bool,
    output: str | None,
    limit: int | None,
) -> None:
    """Run a SELECT in Spark's dialect over the views of the warehouse, by their names, all at one commit.

    Give the query as one argument, as - for standard input, or with --file. Values are exact: decimals with all their
    digits (in JSON as text), timestamps as ISO 8601 in UTC, binary values as hexadecimal digits. NULL is empty in CSV,
    where an empty text is "", and null in JSON. CSV and JSON are written as the rows come.

    \b
    Examples:
      viewkeeper query 'SELECT city, SUM(amount) FROM big_orders GROUP BY city' -w lake
      viewkeeper query 'SELECT * FROM big_orders' --format csv > big_orders.csv
      viewkeeper query --file report.sql --output report.parquet
    """
    text = sql_text(sql, file, "query")
    form = form_of(form, as_json, output)
    target = check_output(form, output)
    with (
        open_to_read(path, quiet=as_json or data_is_piped(form, output)) as warehouse,
        warehouse.snapshot() as snapshot,
    ):
        write_result(snapshot.sql(text), form, target, limit)
    say_written(target, quiet=as_json)
