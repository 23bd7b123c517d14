"""What the verbs of the warehouse share: the option that names it, and how it is opened."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from viewkeeper.cli.progress import announced

if TYPE_CHECKING:
    from viewkeeper.warehouse.warehouse import Warehouse

Verb = TypeVar("Verb", bound=Callable[..., Any])

VARIABLE = "VIEWKEEPER_WAREHOUSE"
MANY_ROWS = 1_000_000
"""a warehouse with fewer is served sooner by a Spark that starts fast"""


def warehouse_option(verb: Verb) -> Verb:
    """`-w PATH`, else the environment variable, else the current folder."""
    return click.option(
        "-w",
        "--warehouse",
        "path",
        metavar="PATH",
        envvar=VARIABLE,
        show_envvar=True,
        default=".",
        show_default="the current folder",
        help="The folder of the warehouse.",
    )(verb)


def json_option(verb: Verb) -> Verb:
    """`--json`."""
    return click.option("--json", "as_json", is_flag=True, help="One JSON object on standard output.")(verb)


def open_to_read(path: str, *, quiet: bool) -> "Warehouse":
    """The warehouse for a verb that changes nothing: no lock, so it works beside a writer."""
    return _open(path, quiet, read_only=True)


def open_to_write(path: str, *, quiet: bool) -> "Warehouse":
    """The warehouse for a verb that writes; no other process may be writing."""
    return _open(path, quiet, create=False, compaction=None)


def _open(path: str, quiet: bool, **how: Any) -> "Warehouse":
    from viewkeeper.errors import NotAWarehouse
    from viewkeeper.warehouse.warehouse import Warehouse

    def start() -> Any:
        rows = sum(view.rows + view.pending_rows for view in warehouse.status().views)
        return start_spark(quiet=quiet, brief=rows < MANY_ROWS)

    try:
        warehouse = Warehouse.open(path, start, **how)
    except NotAWarehouse as error:
        raise NotAWarehouse(error.detail, f"name the folder of one with -w, or in {VARIABLE}") from error
    return warehouse


def start_spark(*, quiet: bool, brief: bool) -> Any:
    """The session of this process; says so if it has to be started, for that takes seconds."""
    from viewkeeper.warehouse.session import BRIEF, local_session, running_session

    with announced("starting Spark ...", quiet=quiet or running_session() is not None):
        return local_session(settings=BRIEF if brief else {}, quiet=True)
