"""The modules of a project: run, and asked for the views that they register.

    modules: [regions.py, reports.weekly]        a file beside viewkeeper.yml, or a name to import

While a module runs, the folder of the project can be imported from.
"""

import importlib
import importlib.util
import re
import sys
import sysconfig
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from viewkeeper.errors import ProjectError, ViewkeeperError
from viewkeeper.project.decorators import DecoratedView, forget_module, views_of_module
from viewkeeper.project.defaults import create_statement
from viewkeeper.project.places import Place, placed, problem, shown_path
from viewkeeper.project.views import ViewText
from viewkeeper.project.yaml_values import Text

_NAME = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")


def module_views(module: Text, folder: Path) -> list[ViewText]:
    """The views that a module registers, in its order."""
    is_file = module.value.endswith(".py")
    file = folder / module.value
    if is_file and not file.is_file():
        raise problem(module.place, f"there is no file {module.written}", "name a Python file beside viewkeeper.yml")
    if not is_file and not _NAME.fullmatch(module.value):
        raise problem(
            module.place, f"{module.written} names no Python module", "write a file such as views.py, or a.module.name"
        )
    with _importing_from(folder):
        name = _run(file, module.place) if is_file else _imported(module, folder)
        views = views_of_module(name)
    if not views:
        raise problem(
            module.place,
            f"the module {module.written} has no views",
            "put @materialized_view above a function that returns a SELECT",
        )
    return [decorated_text(view) for view in views]


def decorated_text(view: DecoratedView) -> ViewText:
    """The statement of a decorated function."""
    place = Place(Path(view.file), view.line, numbered=False)
    try:
        query: object = view.query()
    except ViewkeeperError as error:
        raise placed(error, place) from error
    except (Exception, SystemExit) as error:
        raise problem(_raised_at(error, place), f"{view.name} fails: {_said(error)}", "fix the function") from error
    if not isinstance(query, str) or not query.strip():
        got = "empty text" if isinstance(query, str) else f"a value of type {type(query).__name__}"
        raise problem(place, f"{view.name} returns {got}, and must return SQL", "return the text of a SELECT")
    if query.lstrip().lower().startswith("create"):
        raise problem(
            place,
            f"{view.name} returns a CREATE, and must return the SELECT alone",
            "the name and the properties of the view are those of @materialized_view(name=..., properties=...)",
        )
    return ViewText(create_statement(view.name, view.properties, query.strip(), view.comment), place)


@contextmanager
def _importing_from(folder: Path) -> Iterator[None]:
    sys.path.insert(0, str(folder))
    importlib.invalidate_caches()
    try:
        yield
    finally:
        sys.path.remove(str(folder))


def _run(file: Path, place: Place) -> str:
    """Run a file as a module of its own, again if it was run before; its name."""
    name = "viewkeeper_project_" + re.sub(r"\W", "_", str(file.resolve()))
    forget_module(name)
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # As an imported one is: what looks its module up, a dataclass for instance, finds it.
    sys.modules[name] = module
    with _explained(place):
        spec.loader.exec_module(module)
    return name


def _imported(module: Text, folder: Path) -> str:
    with _explained(module.place):
        try:
            importlib.import_module(module.value)
        except ModuleNotFoundError as error:
            if error.name is None or not f"{module.value}.".startswith(f"{error.name}."):
                raise  # it is there, and what it imports is not
            raise problem(
                module.place,
                f"there is no module {module.written}",
                f"name a file of {folder}, such as views.py, or a module that can be imported from there",
            ) from None
    return module.value


@contextmanager
def _explained(place: Place) -> Iterator[None]:
    """What is wrong with a module, with its own file and line."""
    try:
        yield
    except ProjectError:
        raise
    except SyntaxError as error:
        at = Place(Path(error.filename), error.lineno or 1) if error.filename else place
        raise problem(at, f"is not Python: {error.msg}", "fix that line") from error
    except (Exception, SystemExit) as error:
        detail = error.detail if isinstance(error, ViewkeeperError) else _said(error)
        at = _raised_at(error, place)
        more = f"; python -X dev {shown_path(at.file)} shows the traceback" if at.file is not None else ""
        raise problem(at, f"the module cannot be run: {detail}", f"fix that line{more}") from error


def _said(error: BaseException) -> str:
    return traceback.format_exception_only(error)[-1].strip()


def _raised_at(error: BaseException, otherwise: Place) -> Place:
    """The innermost line that is not Python's own, installed or ours."""
    frames = traceback.extract_tb(error.__traceback__)
    paths = sysconfig.get_paths()
    own = (str(Path(__file__).parent), paths["stdlib"], paths["purelib"], paths["platlib"], "<frozen")
    theirs = [frame for frame in frames if not frame.filename.startswith(own)]
    return Place(Path(theirs[-1].filename), theirs[-1].lineno or 1) if theirs else otherwise
