"""Values are read as their declared type holds them."""

import datetime
from decimal import Decimal

import pytest

from viewkeeper.checker.json_input import Node
from viewkeeper.checker.values import decode
from viewkeeper.errors import HistoryError

NOON = datetime.datetime(2024, 3, 1, 12, tzinfo=datetime.UTC)


@pytest.mark.parametrize(
    ("value", "type", "expected"),
    [
        (127, "TINYINT", 127),
        ("999.99", "DECIMAL(5, 2)", Decimal("999.99")),
        ("0", "DECIMAL(2, 2)", Decimal(0)),
        ("100", "DECIMAL(3, 0)", Decimal(100)),
        (0.5, "FLOAT", 0.5),
        (0.1, "FLOAT", 0.10000000149011612),
        (0.1, "DOUBLE", 0.1),
        ("2024-03-01 12:00:00", "TIMESTAMP", NOON),
        ("2024-03-01T12:00:00Z", "TIMESTAMP", NOON),
        ("2024-03-01T14:00:00+02:00", "TIMESTAMP", NOON),
        ("2024-03-01T12:00:00", "TIMESTAMP_NTZ", NOON.replace(tzinfo=None)),
    ],
)
def test_value(value, type, expected):
    assert decode(Node(value, "place"), type) == expected


@pytest.mark.parametrize(
    ("value", "type"),
    [
        (300, "TINYINT"),
        (2**63, "BIGINT"),
        ("1.234", "DECIMAL(5, 2)"),
        ("1000", "DECIMAL(5, 2)"),
        (1e300, "FLOAT"),
        ("2024-03-01T12:00:00Z", "TIMESTAMP_NTZ"),
        ("\ud800", "STRING"),
    ],
)
def test_a_value_that_its_type_cannot_hold_is_refused_with_its_place(value, type):
    with pytest.raises(HistoryError, match="place"):
        decode(Node(value, "place"), type)
