"""What a shell completes besides verbs and options: views, sources and folders."""

from pathlib import Path

import click
from click.shell_completion import CompletionItem


def complete_views(context: click.Context, _: click.Parameter, begun: str) -> list[CompletionItem]:
    """The views and families of the warehouse that the line names, as far as it is typed."""
    from viewkeeper.planner.known_names import view_names

    given = context.params.get("views") or ()
    return [CompletionItem(name) for name in view_names(_warehouse(context)) if _fits(name, begun, given)]


def complete_sources(context: click.Context, _: click.Parameter, begun: str) -> list[CompletionItem]:
    """The sources of the warehouse."""
    from viewkeeper.planner.known_names import source_names

    return [CompletionItem(name) for name in source_names(_warehouse(context)) if name.startswith(begun)]


def complete_folders(_: click.Context, __: click.Parameter, begun: str) -> list[CompletionItem]:
    """Folders, by the shell itself."""
    return [CompletionItem(begun, type="dir")]


def _fits(name: str, begun: str, given: tuple[str, ...]) -> bool:
    return name.startswith(begun) and name not in given


def _warehouse(context: click.Context) -> Path:
    return Path(str(context.params.get("path") or ".")).expanduser()
