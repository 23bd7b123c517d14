"""Types of Spark, as SQL writes them."""

from typing import Any

_NAMES = {
    "byte": "tinyint",
    "short": "smallint",
    "integer": "int",
    "long": "bigint",
    "timestamp_ltz": "timestamp",
    "calendarinterval": "interval",
}


def type_text(value: Any) -> str:
    """`decimal(15,2)` of a type as Spark's JSON has it."""
    if isinstance(value, str):
        return _NAMES.get(value, value)
    match value["type"]:
        case "array":
            return f"array<{type_text(value['elementType'])}>"
        case "map":
            return f"map<{type_text(value['keyType'])},{type_text(value['valueType'])}>"
        case "struct":
            fields = (f"{quoted(one['name'])}:{type_text(one['type'])}" for one in value["fields"])
            return f"struct<{','.join(fields)}>"
        case "udt":
            return type_text(value["sqlType"])
    raise ValueError(f"a type that Spark's JSON is not known to have: {value}")


def quoted(name: str) -> str:
    """An identifier in backquotes, whatever it holds."""
    return "`" + name.replace("`", "``") + "`"
