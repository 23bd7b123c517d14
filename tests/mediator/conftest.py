"""Fixtures of the tests of the live mediator."""

import pytest

from viewkeeper.mediator import alignment
from viewkeeper.messages import ViewDelta


@pytest.fixture
def counted_places(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """One entry for every time that an alignment looks at a change."""
    looks: list[int] = []
    real = alignment._places

    def counted(delta: ViewDelta) -> set[alignment.Place]:
        looks.append(1)
        return real(delta)

    monkeypatch.setattr(alignment, "_places", counted)
    return looks
