"""What an engine says, as errors of viewkeeper: for every public method and property of a class."""

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

from viewkeeper.errors import as_viewkeeper_error, is_of_engine

C = TypeVar("C", bound=type)


def explaining_engines(kind: C) -> C:
    """The class, with public methods that raise EngineFailure where Spark, Arrow or Delta Lake raise what is their own.

    The layers below explain what they foresee. This is for the rest, so that no one of them is forgotten. What is lazy,
    such as a DataFrame that is returned, fails later and outside of it.
    """
    for name, member in list(vars(kind).items()):
        if name.startswith("_"):
            continue
        if inspect.isfunction(member):
            setattr(kind, name, _explaining(member))
        elif isinstance(member, classmethod | staticmethod):
            setattr(kind, name, type(member)(_explaining(member.__func__)))
        elif isinstance(member, property) and member.fget is not None:
            setattr(kind, name, member.getter(_explaining(member.fget)))
    return kind


def _explaining(method: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(method)
    def explained(*arguments: Any, **named: Any) -> Any:
        try:
            return method(*arguments, **named)
        except Exception as error:
            if not is_of_engine(error):
                raise
            raise as_viewkeeper_error(error, method.__name__) from error

    return explained
