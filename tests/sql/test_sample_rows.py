"""Rows on which readings of expressions are compared."""

from viewkeeper.sql.sample_rows import sample_rows


def test_operands_of_the_same_types_have_different_rows():
    first, second = (sample_rows(["INT", "STRING"], [], 48, operand=operand) for operand in (0, 1))
    assert first == sample_rows(["INT", "STRING"], [], 48)
    assert sum(one[0] != other[0] for one, other in zip(first, second, strict=True)) > 24
