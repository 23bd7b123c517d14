"""What is different between two definitions of a view, in plain words."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from viewkeeper.planner.canonical import Meaning, Parsed, meaning, properties_of


@dataclass(frozen=True)
class Differences:
    """What sets a new definition apart from the present one."""

    query: tuple[str, ...]
    """in the SELECT: rows or columns will be others"""
    properties: Mapping[str, str]
    """by name"""

    @property
    def none(self) -> bool:
        return not self.query and not self.properties


def differences(old: Parsed, new: Parsed) -> Differences:
    """All of them. Layout, comments, case, aliases and the order of conditions do not change the meaning."""
    return Differences(_query(meaning(old), meaning(new)), _properties(old, new))


def _query(old: Meaning, new: Meaning) -> tuple[str, ...]:
    if old.kind != new.kind:
        # The same expression is another thing there; which columns there are is worth knowing all the same.
        return (f"it is {old.kind}, and is to be {new.kind}", *_new_and_gone(old.columns, new.columns))
    found = [*_columns(old.columns, new.columns)]
    if old.tables != new.tables:
        found.append(f"it is over {', '.join(new.tables)}, and was over {', '.join(old.tables)}")
    elif old.joins != new.joins:
        found.append("its tables are joined in another way")
    if old.tables == new.tables and old.conditions != new.conditions:
        found.append("the conditions of its joins or of WHERE differ")
    if old.groups != new.groups:
        found.append("it groups by something else")
    if old.having != new.having:
        found.append("HAVING is another")
    return tuple(found)


def _columns(old: Mapping[str, tuple[str, object]], new: Mapping[str, tuple[str, object]]) -> list[str]:
    found = _new_and_gone(old, new)
    for name in new:
        if name in old and old[name][1] != new[name][1]:
            before, after = old[name][0], new[name][0]
            told = f"{after}, and was {before}" if before != after else f"{after} of other tables or types"
            found.append(f"the column {name} is {told}")
    if not found and list(old) != list(new):
        found.append("its columns are in another order")
    return found


def _new_and_gone(old: Collection[str], new: Collection[str]) -> list[str]:
    found = [f"the column {name} is new" for name in new if name not in old]
    return found + [f"the column {name} is gone" for name in old if name not in new]


def _properties(old: Parsed, new: Parsed) -> dict[str, str]:
    before, after = properties_of(old), properties_of(new)
    was, now = dict(old.properties), dict(new.properties)
    return {
        name: f"the property {name} is {_value(now, name)}, and was {_value(was, name)}"
        for name in sorted({*before, *after})
        if before.get(name) != after.get(name)
    }


def _value(properties: Mapping[str, str], name: str) -> str:
    return repr(properties[name]) if name in properties else "not set"
