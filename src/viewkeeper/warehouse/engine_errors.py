"""What an engine says, as errors of viewkeeper: for every public method of a class."""

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

from viewkeeper.errors import as_viewkeeper_error, is_of_engine

C = TypeVar("C", bound=type)


def explaining_engines(kind: C) -> C:
    """The class, with public methods that raise EngineFailure where Spark, Arrow or Delta Lake raise what is their own.

    The layers below explain what they foresee. This is for the rest, so that no one of them is forgotten.
    """
    for name, method in vars(kind).items():
        if inspect.isfunction(method) and not name.startswith("_"):
            setattr(kind, name, _explaining(method))
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
