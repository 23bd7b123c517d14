"""Views in Python, in the manner of `pyspark.pipelines`: a function that returns a SELECT.

    from viewkeeper import materialized_view

    @materialized_view
    def big_orders():
        return "SELECT id, amount FROM shop.orders WHERE amount > 100"

    @materialized_view(name="by_city", properties={"refresh": "manual"}, comment="for the weekly mail")
    def cities(): ...

A module of such functions is named under `modules:` in viewkeeper.yml; or the functions are given to `Project(views=)`.
The function itself stays as it is. It is called when the project is loaded.
"""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar, overload

from viewkeeper.errors import UsageError

Query = Callable[[], str]
Function = TypeVar("Function", bound=Query)

_ATTRIBUTE = "__materialized_view__"


@dataclass(frozen=True)
class DecoratedView:
    """A function that returns the SELECT of a view, and what was said of the view."""

    name: str
    query: Query
    properties: Mapping[str, str] = field(default_factory=dict)
    comment: str | None = None

    @property
    def file(self) -> str:
        return self.query.__code__.co_filename

    @property
    def line(self) -> int:
        return self.query.__code__.co_firstlineno


_registered: dict[str, list[DecoratedView]] = {}
"""by module, in the order in which they were decorated"""


@overload
def materialized_view(function: Function, /) -> Function: ...


@overload
def materialized_view(
    *, name: str | None = None, properties: Mapping[str, str | int] | None = None, comment: str | None = None
) -> Callable[[Function], Function]: ...


def materialized_view(
    function: Function | None = None,
    /,
    *,
    name: str | None = None,
    properties: Mapping[str, str | int] | None = None,
    comment: str | None = None,
) -> Function | Callable[[Function], Function]:
    """Make the SELECT that a function returns a view of a project.

    It is called like the function, or `name`. `properties` are those of TBLPROPERTIES.
    """

    def register(function: Function) -> Function:
        if not inspect.isfunction(function):
            raise UsageError(
                f"@materialized_view is for a function that returns SQL, and this is {type(function).__name__}",
                "write @materialized_view, or @materialized_view(name=..., properties=..., comment=...), above a def",
            )
        told = {key: str(value) for key, value in (properties or {}).items()}
        view = DecoratedView(name or function.__name__, function, told, comment)
        setattr(function, _ATTRIBUTE, view)
        _registered.setdefault(function.__module__, []).append(view)
        return function

    return register if function is None else register(function)


def views_of_module(module: str) -> tuple[DecoratedView, ...]:
    """What a module has registered."""
    return tuple(_registered.get(module, ()))


def forget_module(module: str) -> None:
    """Before a module is run again."""
    _registered.pop(module, None)


def decorated(function: object) -> DecoratedView | None:
    """The view of a function, if it was decorated."""
    found = getattr(function, _ATTRIBUTE, None)
    return found if isinstance(found, DecoratedView) else None
