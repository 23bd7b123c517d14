"""What to simulate. Everything else follows from the seed."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from viewkeeper.algorithms.registry import Algorithm, Transactions, algorithm
from viewkeeper.clock import seeded
from viewkeeper.errors import UsageError
from viewkeeper.sources.multi_relation import BATCH

FLAGS = (
    "multi_relation", "keyless", "self_join", "out_of_order", "whole_transactions", "crossing", "repeats", "mediator",
    "merge", "key_information",
)  # fmt: skip
_RANGES = (
    ("relations", 1, 12), ("updates", 0, 100_000), ("seed", 0, 2**63), ("wrapper_batch", 1, BATCH), ("views", 1, 12),
    ("restarts", 0, 1_000), ("without_quiet", 1, 100_000),
)  # fmt: skip


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


@dataclass(frozen=True)
class Scenario:
    """One simulated run; equal scenarios give equal runs, to the last message."""

    algorithm: str
    seed: int
    relations: int = 3
    updates: int = 12
    transactions: Transactions = Transactions.SINGLE
    sources: int | None = None
    """by default one per relation; one in all for an algorithm that needs that; two relations each for the wrapper"""
    multi_relation: bool = False
    keyless: bool = False
    self_join: bool = False
    out_of_order: bool = False
    whole_transactions: bool = False
    """one site reports each global transaction in full"""
    crossing: bool = False
    """the parts of global transactions commit one by one, and their orders may cross"""
    repeats: bool = False
    """ids of global transactions are used again, and a source may have two parts of one"""
    joint_queries: bool = False
    """the relations of a source are queried together, and there is no wrapper: a worked example alone has this"""
    wrapper_batch: int = BATCH
    """updates that the multi-relation wrapper sweeps together, at most; the paper has one"""
    mediator: bool = False
    """a group of the live mediator maintains the views, with everything that it does to ask less"""
    views: int = 1
    merge: bool = False
    """captures deliver several commits of a source as one transaction"""
    restarts: int = 0
    without_quiet: int | None = None
    """transactions after which algorithms that wait for quiet give way to one that does not"""
    key_information: bool = False
    """the view answers what it can, as it always does under the live mediator; it shows most columns, so that it can"""
    options: tuple[tuple[str, int | bool], ...] = field(default=())
    """options of the algorithm; a dict does too"""

    def __post_init__(self) -> None:
        try:
            object.__setattr__(self, "transactions", Transactions(self.transactions))
            object.__setattr__(self, "options", tuple(dict(self.options).items()))
        except ValueError:
            kinds = ", ".join(Transactions)
            raise UsageError(f"there are no {self.transactions} transactions", f"choose one of {kinds}") from None
        for name, least, most in _RANGES:
            value = getattr(self, name)
            if value is not None and not least <= value <= most:
                raise UsageError(f"{_flag(name)} {value} is out of range", f"choose from {least} to {most}")
        if self.sources is not None and not 1 <= self.sources <= self.relations:
            raise UsageError(
                f"--sources {self.sources} does not fit {self.relations} relations",
                f"choose from 1 to {self.relations}",
            )
        if self.transactions is not Transactions.GLOBAL:
            for flag in ("whole_transactions", "crossing", "repeats"):
                if getattr(self, flag):
                    raise UsageError(f"{_flag(flag)} is about global transactions", "add --transactions global")
        if self.whole_transactions and (self.multi_relation or self.out_of_order or self.crossing):
            raise UsageError(
                "--whole-transactions does not go with --multi-relation, --out-of-order or --crossing",
                "leave one of them out",
            )
        if self.multi_relation and self.out_of_order:
            raise UsageError("--out-of-order breaks the order that --multi-relation rests on", "leave one of them out")
        if self.key_information and self.out_of_order:
            raise UsageError("--out-of-order breaks the order that --key-information rests on", "leave one of them out")
        if self.live and dict(self.options).get("interval"):
            raise UsageError("the live mediator measures an interval in seconds, and a run has none", "leave it out")
        if self.wrapper_batch != BATCH and not self.multi_relation:
            raise UsageError("--wrapper-batch is about the multi-relation wrapper", "add --multi-relation")
        for flag in ("multi_relation", "out_of_order", "whole_transactions") if self.live else ():
            if getattr(self, flag):
                raise UsageError(
                    f"{_flag(flag)} does not go with {_flag(self._asks_for_mediator)}: the live mediator decides itself"
                    " which sources have a wrapper, and puts every answer in its place",
                    "leave one of them out",
                )

    @property
    def live(self) -> bool:
        """Whether a group of the live mediator maintains the views."""
        return bool(self._asks_for_mediator)

    @property
    def _asks_for_mediator(self) -> str:
        """The first that needs it, if there is one."""
        asked = {
            "mediator": self.mediator,
            "views": self.views > 1,
            "merge": self.merge,
            "repeats": self.repeats,
            "restarts": self.restarts > 0,
            "without_quiet": self.without_quiet is not None,
        }
        return next((name for name, is_asked in asked.items() if is_asked), "")

    @classmethod
    def varied(cls, name: str, transactions: Transactions, seed: int) -> "Scenario":
        """A scenario for soaking: two to four relations, and by turns whatever else the algorithm serves."""
        chosen = algorithm(name)
        features: dict[str, Any] = {"relations": 2 + seed // 2 % 3, "self_join": seed % 5 == 0}
        features["key_information"] = chosen.needs_keys and seed % 2 == 1
        features["keyless"] = not chosen.needs_keys and seed % 3 == 1
        if chosen.over_wrapper and seed % 4 == 3:
            features |= {"multi_relation": True, "wrapper_batch": (BATCH, 1, 2)[seed // 4 % 3]}
        elif not chosen.one_source and seed % 7 == 2:
            features["sources"] = 2
        if transactions is Transactions.GLOBAL and not features.get("multi_relation"):
            features["crossing"] = seed % 4 == 0
            features["whole_transactions"] = seed % 4 == 1
        return cls._with_options(name, transactions, seed, features)

    @classmethod
    def varied_live(cls, name: str, transactions: Transactions, seed: int) -> "Scenario":
        """The same over the live mediator: one to three views over some of the relations each, captures that merge,
        restarts, in all combinations."""
        chosen, dice = algorithm(name), seeded(seed)
        features: dict[str, Any] = {
            "mediator": True,
            "relations": dice.randint(2, 4),
            "views": dice.choice((1, 2, 2, 3)),
            "merge": dice.random() < 0.5,
            "restarts": dice.choice((0, 0, 1, 2)),
            "keyless": not chosen.needs_keys and dice.random() < 0.3,
            "self_join": dice.random() < 0.15,
        }
        if not chosen.one_source:
            features["sources"] = dice.randint(min(2, features["relations"]), features["relations"])
        if transactions is Transactions.GLOBAL:
            features |= {"crossing": dice.random() < 0.4, "repeats": dice.random() < 0.4}
        if dice.random() < 0.25:
            features["without_quiet"] = dice.randint(1, 4)
        features["key_information"] = chosen.needs_keys and dice.random() < 0.5
        return cls._with_options(name, transactions, seed, features)

    @classmethod
    def _with_options(cls, name: str, transactions: Transactions, seed: int, features: dict[str, Any]) -> "Scenario":
        chosen = algorithm(name)
        # Fewer where each costs more: ECA's queries grow with interference, a global transaction has several parts.
        updates = 8 if chosen.one_source or transactions is Transactions.GLOBAL else 12
        choices: dict[str, tuple[int | bool, ...]] = {
            "batch": (64, 1, 2, 3), "window": (64, 1, 2), "period": (8, 1, 2, 3), "updates": (64, 1, 2, 3),
            "grouped": (True, False), "share": (False, True),
            "interval": (0,) if features.get("mediator") else (0, 2, 5),
        }  # fmt: skip
        options = tuple(
            (option, choices[option][seed // 3 % len(choices[option])]) for option in sorted(chosen.options)
        )
        return cls(algorithm=name, seed=seed, updates=updates, transactions=transactions, options=options, **features)

    @property
    def source_count(self) -> int:
        if self.sources is not None:
            return self.sources
        if algorithm(self.algorithm).one_source:
            return 1
        return (self.relations + 1) // 2 if self.multi_relation else self.relations

    def command(self) -> str:
        """The command that repeats this run."""
        words = [
            f"viewkeeper simulate --algorithm {self.algorithm} --relations {self.relations} --updates {self.updates}",
            f"--transactions {self.transactions} --seed {self.seed}",
        ]
        for name in ("sources", "without_quiet"):
            if getattr(self, name) is not None:
                words.append(f"{_flag(name)} {getattr(self, name)}")
        for name, default in (("wrapper_batch", BATCH), ("views", 1), ("restarts", 0)):
            if getattr(self, name) != default:
                words.append(f"{_flag(name)} {getattr(self, name)}")
        words += [_flag(name) for name in FLAGS if getattr(self, name)]
        words += [f"--option {name}={str(value).lower()}" for name, value in self.options]
        return " ".join(words)


def parse_options(chosen: Algorithm, words: Iterable[str]) -> dict[str, int | bool]:
    """`NAME=VALUE` words as options of an algorithm."""
    options: dict[str, int | bool] = {}
    for word in words:
        name, _, value = word.partition("=")
        if name not in chosen.options:
            known = ", ".join(f"{name}={default}" for name, default in chosen.options.items()) or "none"
            raise UsageError(f"{chosen.name} has no option {name!r}", f"its options and their defaults: {known}")
        if isinstance(chosen.options[name], bool):
            if value not in ("true", "false"):
                raise UsageError(
                    f"--option {word}: {value!r} is neither true nor false",
                    f"write --option {name}=true or {name}=false",
                )
            options[name] = value == "true"
        elif value.isascii() and value.isdigit():
            options[name] = int(value)
        else:
            raise UsageError(f"--option {word}: {value!r} is not a whole number above 0", f"write --option {name}=8")
    return options
