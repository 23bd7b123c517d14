"""The modules that groups, streams and compactions import when they need them, imported before their threads start.

    thread 1    import package          holds package, waits for package.part
    thread 2    import package.part     holds package.part, waits for package

Python resolves that by giving one of the two a module that is half initialized: an ImportError in a group, or worse. So
packages whose parts import each other are imported by one thread, which then starts the others. Spark, which most
processes do without, is imported by the first thread that needs it: see `algebra/pyspark_names.py`.
"""

import threading
from collections.abc import Iterable
from contextlib import suppress
from importlib import import_module

from viewkeeper.sources.registry import import_kind, reads_with_spark

MODULES = (
    "pyarrow.acero",
    "pyarrow.compute",
    "pyarrow.dataset",
    "pyarrow.parquet",
    "deltalake",
)

IF_INSTALLED = ("numpy", "pandas")
"""Arrow and Spark look for them when they convert values"""

_importing = threading.Lock()


def import_for_threads() -> None:
    """Import all of them; a tenth of a second, once in a process."""
    with _importing:
        for module in MODULES:
            import_module(module)
        for module in IF_INSTALLED:
            with suppress(ImportError):
                import_module(module)


def import_for_streams(kinds: Iterable[str]) -> None:
    """Import what the streams of these kinds of sources need. Engines only if they are read with them: otherwise these
    are imported while databases are being connected to."""
    kinds = list(kinds)
    import_kinds(kinds)
    if any(map(reads_with_spark, kinds)):
        import_for_threads()


def import_kinds(kinds: Iterable[str]) -> None:
    """Import what these kinds of sources need."""
    with _importing:
        for kind in kinds:
            import_kind(kind)
