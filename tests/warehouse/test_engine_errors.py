"""Exceptions of engines are explained for every kind of public member."""

import pyarrow as pa
import pytest

from viewkeeper.errors import EngineFailure
from viewkeeper.lake.engine_errors import explaining_engines


def fail() -> None:
    raise pa.ArrowInvalid("no such column")


@explaining_engines
class Members:
    @classmethod
    def made(cls) -> None:
        fail()

    @staticmethod
    def still() -> None:
        fail()

    @property
    def shown(self) -> None:
        """A property."""
        fail()

    def done(self) -> None:
        fail()


@pytest.mark.parametrize("name", ["made", "still", "shown", "done"])
def test_what_an_engine_raises_is_explained(name: str) -> None:
    with pytest.raises(EngineFailure, match=f"^{name}: Arrow failed: no such column"):
        getattr(Members(), name)()
    assert Members.shown.__doc__ == "A property."
