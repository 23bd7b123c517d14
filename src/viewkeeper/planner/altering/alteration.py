"""What changing a view's definition amounts to.

create     there is no such view
keep       the definition means what the present one means: nothing is done
alter      only how it is kept is different: its rows stay, and no source is read
reload     its rows, its columns or what is stored for it are different: it is recreated, and swapped by one commit
"""

from dataclasses import dataclass
from typing import Literal

Kind = Literal["create", "keep", "alter", "reload"]


@dataclass(frozen=True)
class Alteration:
    """What is done to a view to make it what a definition says."""

    view: str
    kind: Kind
    reasons: tuple[str, ...] = ()
    """what is different, in plain words; none if it is kept"""
    dependants: tuple[str, ...] = ()
    """the views and summaries that read it: they are recreated with it, in the same commit"""
