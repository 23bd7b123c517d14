"""Every kind of source, by the scheme of its URL. What a kind needs is imported when one is opened."""

import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from viewkeeper.errors import BadSourceUrl, SourceUnfit, did_you_mean
from viewkeeper.sources.base import Request, Source
from viewkeeper.sources.variables import replaced

SparkSession = Any


@dataclass(frozen=True)
class Kind:
    """Where a kind of source lives, what it is called, and the extra of the package that brings its driver."""

    module: str
    name: str
    extra: str | None = None
    reads_with_spark: bool = False
    keeps_notes: bool = False
    """whether it is given a folder of the warehouse"""


KINDS = {
    "sqlite": Kind("sqlite.source", "SqliteSource", keeps_notes=True),
    "postgresql": Kind("postgres.source", "PostgresSource", "postgres", keeps_notes=True),
    "postgres": Kind("postgres.source", "PostgresSource", "postgres", keeps_notes=True),
    "mysql": Kind("mysql.source", "MySqlSource", "mysql"),
    "mariadb": Kind("mysql.source", "MySqlSource", "mysql"),
    "files": Kind("files.source", "FilesSource", reads_with_spark=True),
    "delta": Kind("delta.source", "DeltaSource", reads_with_spark=True),
}


def kind_of(url: str, environment: Mapping[str, str] = os.environ) -> str:
    """What a URL names, in one word; `unknown` if it begins with a variable that is not set now."""
    begins = replaced(url, lambda reference: reference.value(environment) or "unknown://")
    scheme, separator, _ = begins.partition("://")
    if not separator:
        return ""
    if scheme in KINDS:
        return KINDS[scheme].module.partition(".")[0]
    return "unknown" if url.startswith("${") else scheme  # a value of the environment is not shown


def _unknown_kind(request: Request, scheme: str) -> BadSourceUrl:
    known = f"a URL begins with one of {', '.join(f'{one}://' for one in KINDS)}"
    if scheme:
        return BadSourceUrl(
            f"source {request.name}: there is no kind of source {scheme!r}", did_you_mean(scheme, KINDS) + known
        )
    # What was given is shown only if it is surely no password.
    file = f"for a SQLite database write sqlite:///{request.url}; " if Path(request.url).is_file() else ""
    return BadSourceUrl(f"source {request.name}: what was given is a URL without a scheme", file + known)


def import_kind(kind: str) -> None:
    """Import what a kind of source needs, as `kind_of` names it. What is not installed is told when one is opened."""
    if any(one.module == f"{kind}.source" for one in KINDS.values()):
        with suppress(ModuleNotFoundError):
            import_module(f"viewkeeper.sources.{kind}.source")


def reads_with_spark(kind: str) -> bool:
    """Whether sources of a kind, as `kind_of` names it, are read with Spark; one that is not known may be."""
    known = [one for one in KINDS.values() if one.module == f"{kind}.source"]
    return not known or any(one.reads_with_spark for one in known)


def open_source(request: Request, spark: Callable[[], SparkSession], workspace: Path) -> Source:
    """The source of a URL; `workspace` is a folder in which it may keep copies or notes, if its kind needs them."""
    scheme = urlsplit(request.url).scheme
    kind = KINDS.get(scheme)
    if kind is None:
        raise _unknown_kind(request, scheme)
    try:
        made = getattr(import_module(f"viewkeeper.sources.{kind.module}"), kind.name)
    except ModuleNotFoundError as error:
        if kind.extra is None:
            raise
        raise SourceUnfit(
            f"source {request.name}: the driver for {scheme} is not installed ({error.name})",
            f"pip install 'viewkeeper[{kind.extra}]'",
        ) from None
    source: Source
    if kind.reads_with_spark:
        source = made(request, spark, workspace)
    else:
        source = made(request, workspace) if kind.keeps_notes else made(request)
    return source
