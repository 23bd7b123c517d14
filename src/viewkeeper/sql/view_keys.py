"""The key of a select-project-join view.

    key(R)  is a key of  R ⋈ S_1 ⋈ ... ⋈ S_n     if from R every S_i is reached by equalities to its whole key

Then a row of R finds at most one row of each S_i: a foreign key, or a chain of them, as from a fact table over its
dimension tables to theirs.
"""

from viewkeeper.sql.view import Operand, View


def key_of_view(view: View) -> tuple[str, ...] | None:
    """The output columns that no two rows of the view share, or None if the declared keys do not give any."""
    shown: dict[str, str] = {}
    for column in view.output:
        if (flat := column.expression.is_column) is not None:
            shown.setdefault(flat, column.name)
    for operand in view.operands:
        if operand.key and all(column in shown for column in operand.key) and _reaches_all(view, operand):
            return tuple(shown[column] for column in operand.key)
    return None


def _reaches_all(view: View, start: Operand) -> bool:
    """Whether a row of `start` decides on the row of every other operand."""
    equalities = [pair for condition in view.conditions if (pair := condition.equality) is not None]
    decided: set[str] = set()
    grown = set(start.columns)
    while grown > decided:
        decided = grown
        grown = decided.union(*(pair for pair in equalities if decided.intersection(pair)))
        grown = grown.union(*(operand.columns for operand in view.operands if _within(operand.key, grown)))
    return all(operand.index == start.index or _within(operand.key, decided) for operand in view.operands)


def _within(key: tuple[str, ...] | None, columns: set[str]) -> bool:
    return key is not None and columns.issuperset(key)
