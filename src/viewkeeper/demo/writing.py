"""The process that writes to the databases: python -m viewkeeper.demo.writing

    in      a line with the order as JSON: URLs, seed, seconds; another line when it is to begin; the end stops it
    out     "ready"; at the end one line: for each database, when each of its transactions was committed (`Committed`)

It is a process of its own because the databases are somebody else's, and so that it takes no time from those who keep
the views fresh. One thread per database: transaction k of n is committed k/n of the seconds after the beginning, or as
soon after that as the database allows.
"""

import json
import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from viewkeeper.clock import monotonic, now
from viewkeeper.demo.business import transactions
from viewkeeper.demo.databases import open_database


@dataclass(frozen=True)
class Order:
    """What is to be written where, and over which time."""

    urls: Mapping[str, str]
    seed: int
    seconds: float

    def as_json(self) -> str:
        return json.dumps({"urls": dict(self.urls), "seed": self.seed, "seconds": self.seconds})

    @classmethod
    def of(cls, text: str) -> "Order":
        return cls(**json.loads(text))


@dataclass(frozen=True)
class Committed:
    """When each transaction of each database was committed."""

    began: str
    after: Mapping[str, Sequence[int]]
    """milliseconds since then: short, for what waits in a pipe must fit in there"""

    def as_json(self) -> str:
        return json.dumps({"began": self.began, "after": dict(self.after)})

    @classmethod
    def of(cls, text: str) -> "Committed":
        return cls(**json.loads(text))

    def times(self) -> dict[str, list[datetime]]:
        began = datetime.fromisoformat(self.began)
        return {name: [began + timedelta(milliseconds=one) for one in after] for name, after in self.after.items()}


@dataclass
class Writer:
    """The transactions of one database."""

    name: str
    order: Order

    def __post_init__(self) -> None:
        self.after: list[int] = []
        self.trouble: str | None = None
        self._database = open_database(self.order.urls[self.name])
        self._transactions = transactions(self.name, self.order.seed, self.order.seconds)

    def write(self, begin: float, stop: threading.Event) -> None:
        """Commit one after the other, each at its time, until there are no more or it is told to stop."""
        pause = self.order.seconds / len(self._transactions)
        try:
            for number, transaction in enumerate(self._transactions):
                if stop.wait(max(0.0, begin + number * pause - monotonic())):
                    return
                self._database.carry_out(transaction)
                self.after.append(round((monotonic() - begin) * 1000))
        except Exception as error:
            # Whatever its database says: the one who ordered this is told, and the others write on.
            self.trouble = f"{self.name}: {type(error).__name__}: {error}"
        finally:
            self._database.close()


def _stop_at_the_end(stop: threading.Event) -> None:
    """Whoever ordered this closes the input, or is no more."""
    sys.stdin.read()
    stop.set()


def main() -> int:
    order = Order.of(sys.stdin.readline())
    writers = [Writer(name, order) for name in order.urls]
    print("ready", flush=True)
    stop = threading.Event()
    if not sys.stdin.readline():
        return 0
    began, begin = now().isoformat(), monotonic()
    threads = [threading.Thread(target=writer.write, args=(begin, stop)) for writer in writers]
    for thread in threads:
        thread.start()
    threading.Thread(target=_stop_at_the_end, args=(stop,), daemon=True).start()
    for thread in threads:
        thread.join()
    print(Committed(began, {writer.name: writer.after for writer in writers}).as_json(), flush=True)
    troubles = [writer.trouble for writer in writers if writer.trouble is not None]
    print(*troubles, sep="; ", file=sys.stderr, flush=True)
    return 1 if troubles else 0


if __name__ == "__main__":
    sys.exit(main())
