"""What a project says, from viewkeeper.yml or from Python: one reading, and the same checks, for both."""

import glob
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from viewkeeper.errors import ViewkeeperError
from viewkeeper.project.cubes import ProjectCube, read_cubes
from viewkeeper.project.defaults import Defaults, read_defaults
from viewkeeper.project.finding import WAREHOUSE
from viewkeeper.project.modules import module_views
from viewkeeper.project.places import Place, placed, problem
from viewkeeper.project.sources import ProjectSource, read_sources
from viewkeeper.project.views import ProjectView, Read, ViewText, check_read, in_order, read_view
from viewkeeper.project.yaml_values import Text, Value
from viewkeeper.sql.statements import first_line, statements

FIELDS = (WAREHOUSE, "sources", "views", "modules", "defaults", "cubes")
VIEW_FILES = "*.sql"
DEFAULT_VIEWS = "views"


@dataclass(frozen=True)
class Content:
    """A project that has been read."""

    warehouse: Path
    sources: dict[str, ProjectSource]
    views: tuple[ProjectView, ...]
    """each after those that it reads"""
    cubes: dict[str, ProjectCube]


def read_content(value: Value, folder: Path, given: Sequence[ViewText] = (), *, files: bool = True) -> Content:
    """The content of a project in a folder; `given` are views from elsewhere, with `files` there are files of views."""
    fields = value.fields(FIELDS)
    warehouse = fields[WAREHOUSE].text() if WAREHOUSE in fields else Text(WAREHOUSE, WAREHOUSE, value.place)
    if "://" in warehouse.value:
        raise problem(warehouse.place, "the warehouse must be a folder, and is a URL", "name a folder")
    sources = read_sources(fields["sources"], folder) if "sources" in fields else {}
    defaults = read_defaults(fields["defaults"]) if "defaults" in fields else Defaults()
    cubes = read_cubes(fields["cubes"]) if "cubes" in fields else {}
    texts = [*given]
    for file in _view_files(fields.get("views"), folder) if files else ():
        texts += file_views(file)
    for module in fields["modules"].texts() if "modules" in fields else ():
        texts += module_views(module, folder)
    # Who has dropped the last one says so: an empty folder may as well be a mistake.
    if not texts and not cubes and not ("views" in fields and not fields["views"].texts()):
        raise value.problem("the project has no views", _write_one_into(DEFAULT_VIEWS))
    tables = {name: source.tables for name, source in sources.items()}
    views = in_order([read_view(text, defaults) for text in texts], tables)
    for cube in cubes.values():
        check_read(
            f"the cube {cube.name}", Read(cube.fact.lower(), cube.place), {one.name: one for one in views}, tables
        )
    return Content(folder / Path(warehouse.value).expanduser(), sources, views, cubes)


def _view_files(value: Value | None, folder: Path) -> list[Path]:
    """The files that `views` names: folders, files and patterns; each once, in the order of their names."""
    if value is None:
        return sorted((folder / DEFAULT_VIEWS).glob(VIEW_FILES))
    found: dict[Path, None] = {}
    for text in value.texts():
        named = folder / Path(text.value).expanduser()
        if named.is_dir():
            files = sorted(named.glob(VIEW_FILES))
        elif named.is_file():
            files = [named]
        else:
            pattern = glob.escape(str(folder)) + "/" + text.value
            files = sorted(path for path in map(Path, glob.glob(pattern, recursive=True)) if path.is_file())
        if not files:
            raise _nothing_there(text, named)
        found |= dict.fromkeys(files)
    return list(found)


def _write_one_into(folder: str) -> str:
    where = f"{folder.rstrip('/')}/NAME.sql"
    return f"write CREATE MATERIALIZED VIEW ... into {where}, or views: [] if the project is to have none"


def _nothing_there(text: Text, named: Path) -> ViewkeeperError:
    if named.is_dir():
        return problem(text.place, f"the folder {text.written} has no file {VIEW_FILES}", _write_one_into(text.written))
    what = "no file matches" if glob.has_magic(text.value) else "there is no folder or file"
    return problem(text.place, f"{what} {text.written}", "name a folder, a file, or a pattern such as views/*.sql")


def file_views(file: Path) -> list[ViewText]:
    """The statements of a file."""
    try:
        text = file.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise problem(Place(file), f"it cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise problem(Place(file), "the file is not UTF-8 text", "save it as UTF-8") from error
    return texts_of(text, Place(file))


def texts_of(text: str, place: Place) -> list[ViewText]:
    """The statements of a text that begins at a place."""
    try:
        found = statements(text)
    except ViewkeeperError as error:
        raise placed(error, place) from error
    if not found:
        raise problem(place, "there is no view in it", "write CREATE MATERIALIZED VIEW name AS SELECT ...")
    return [ViewText(sql, place.at(first_line(sql))) for sql in found]
