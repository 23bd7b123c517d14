"""What the verbs of the warehouse share: the option that names it, and how it is opened."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from viewkeeper.cli.completing import complete_folders
from viewkeeper.cli.progress import announced
from viewkeeper.cli.stopping import writing_to

if TYPE_CHECKING:
    from viewkeeper.warehouse import Warehouse

Verb = TypeVar("Verb", bound=Callable[..., Any])

VARIABLE = "VIEWKEEPER_WAREHOUSE"
MANY_ROWS = 1_000_000
"""a warehouse with fewer is served sooner by a Spark that starts fast"""


def warehouse_option(verb: Verb) -> Verb:
    """`-w PATH`, else the environment variable, else what the project says, else the current folder."""
    return click.option(
        "-w",
        "--warehouse",
        "path",
        metavar="PATH",
        envvar=VARIABLE,
        show_envvar=True,
        default=_default_warehouse,
        show_default="what viewkeeper.yml of this folder or one above says, else this folder",
        shell_complete=complete_folders,
        help="The folder of the warehouse.",
    )(verb)


def _default_warehouse() -> str:
    """The warehouse of the project that the current folder is in; else that folder, as also if it is a warehouse."""
    from viewkeeper.errors import ViewkeeperError
    from viewkeeper.project.finding import find_project_file, warehouse_of

    file = find_project_file()
    if file is None or (file.parent != Path.cwd() and Path("_viewkeeper").is_dir()):
        return "."
    try:
        return str(warehouse_of(file, os.environ))
    except ViewkeeperError:
        context = click.get_current_context(silent=True)
        if context is not None and context.resilient_parsing:
            # A shell that completes a word is not the one to be told.
            return "."
        raise


def project_option(verb: Verb) -> Verb:
    """`-p PATH`, else the current folder or one above it."""
    return click.option(
        "-p",
        "--project",
        "path",
        metavar="PATH",
        default=".",
        show_default="this folder, or one above it",
        shell_complete=complete_folders,
        help="The folder with viewkeeper.yml, or that file.",
    )(verb)


def json_option(verb: Verb) -> Verb:
    """`--json`."""
    return click.option("--json", "as_json", is_flag=True, help="One JSON object on standard output.")(verb)


def history_option(verb: Verb) -> Verb:
    """`--history FILE`."""
    return click.option(
        "--history", metavar="FILE", type=click.Path(), help="Write what happened, for 'viewkeeper check'."
    )(verb)


def open_to_read(path: str, *, quiet: bool) -> "Warehouse":
    """The warehouse for a verb that changes nothing: no lock, so it works beside a writer."""
    return _open(path, quiet, read_only=True)


def open_to_write(path: str, *, quiet: bool) -> "Warehouse":
    """The warehouse for a verb that writes; no other process may be writing."""
    return _open(path, quiet, create=False, compaction=None)


def open_to_maintain(path: str, *, quiet: bool, create: bool = False) -> "Warehouse":
    """The warehouse for a verb that works on sources, however much there is in them; compaction is on."""
    return _open(path, quiet, brief=False, create=create)


def nothing_but_halted(warehouse: "Warehouse") -> bool:
    """Whether every view is halted; UsageError if there is none that changes could reach."""
    from viewkeeper.errors import UsageError

    views = warehouse.maintained
    if not views:
        raise UsageError(
            "there are no views over sources",
            "viewkeeper add-source, then viewkeeper create-view; or viewkeeper apply, in the folder of a project",
        )
    return all(views.values())


def _open(path: str, quiet: bool, *, brief: bool = True, **how: Any) -> "Warehouse":
    from viewkeeper.errors import NotAWarehouse
    from viewkeeper.warehouse import Warehouse

    def start() -> Any:
        rows = sum(view.rows + view.pending_rows for view in warehouse.status().views)
        return start_spark(quiet=quiet, brief=brief and rows < MANY_ROWS)

    try:
        warehouse = Warehouse.open(path, start, source_urls=_urls_of_project, **how)
    except NotAWarehouse as error:
        if how.get("create"):
            raise
        from viewkeeper.project.finding import find_project_file

        apply = "'viewkeeper apply' makes that of the project; or " if find_project_file() else ""
        raise NotAWarehouse(error.detail, f"{apply}name the folder of one with -w, or in {VARIABLE}") from error
    if not how.get("read_only"):
        writing_to(warehouse.path)
    return warehouse


def _urls_of_project() -> dict[str, str]:
    """The sources of the project that the current folder is in, if it is in one that can be read."""
    from viewkeeper.errors import ViewkeeperError
    from viewkeeper.project.finding import find_project_file
    from viewkeeper.project.project import Project

    file = find_project_file()
    try:
        return {} if file is None else Project.load(file).source_urls()
    except ViewkeeperError:  # what is wrong with it is for the verbs of projects to say
        return {}


def start_spark(*, quiet: bool, brief: bool) -> Any:
    """The session of this process; says so if it has to be started, for that takes seconds."""
    from viewkeeper.lake.tables.spark_session import BRIEF, local_session, running_session

    with announced("starting Spark ...", quiet=quiet or running_session() is not None):
        return local_session(settings=BRIEF if brief else {}, quiet=True)
