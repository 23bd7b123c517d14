"""What happens at the chain: for each database a sequence of transactions, a function of the seed and of nothing else.

    shop        a receipt of some sales, a sale returned, a sale corrected, a store that opens with its first sales, one
                that moves
    customers   somebody signs up, moves, leaves
    catalogue   an item is listed, changes its price or its category, is no longer listed

No database looks at another one. So the shop sells what the catalogue does not have yet, to people who have not signed
up yet: such a sale is in a join when the other side is there, whichever comes first.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count

from viewkeeper.clock import Random, seeded
from viewkeeper.demo import retail
from viewkeeper.demo.retail import CATALOGUE, CITIES, CUSTOMERS, SHOP, Row, Table, Value

PER_SECOND = {SHOP: 4, CUSTOMERS: 1, CATALOGUE: 1}
"""transactions of each database"""


@dataclass(frozen=True)
class Insert:
    """A new row."""

    table: Table
    row: Row

    def statement(self, mark: str) -> tuple[str, Row]:
        """SQL with `mark` for each value, and the values."""
        marks = ", ".join([mark] * len(self.row))
        return f"INSERT INTO {self.table.name} VALUES ({marks})", self.row


@dataclass(frozen=True)
class Update:
    """Other values for some columns of the row with this key."""

    table: Table
    key: int
    values: dict[str, Value]

    def statement(self, mark: str) -> tuple[str, Row]:
        columns = ", ".join(f"{column} = {mark}" for column in self.values)
        return f"UPDATE {self.table.name} SET {columns} WHERE {self.table.key} = {mark}", (
            *self.values.values(),
            self.key,
        )


@dataclass(frozen=True)
class Delete:
    """The row with this key goes."""

    table: Table
    key: int

    def statement(self, mark: str) -> tuple[str, Row]:
        return f"DELETE FROM {self.table.name} WHERE {self.table.key} = {mark}", (self.key,)


Change = Insert | Update | Delete
Transaction = tuple[Change, ...]


def transactions(database: str, seed: int, seconds: float) -> list[Transaction]:
    """The transactions of a database, in order: as many as it makes in so many seconds, at least five."""
    happens = _HAPPENS[database](seeded(seed + 1), seed)
    return [next(happens) for _ in range(max(5, round(PER_SECOND[database] * seconds)))]


class _Keys:
    """The keys of a table that are there, and those that come next."""

    def __init__(self, number: int) -> None:
        self._there = list(range(1, number + 1))
        self._next = count(number + 1)

    def new(self) -> int:
        self._there.append(next(self._next))
        return self._there[-1]

    def some(self, random: Random) -> int:
        return random.choice(self._there)

    def gone(self, random: Random) -> int:
        """One that is deleted."""
        place = random.randrange(len(self._there))
        self._there[place], self._there[-1] = self._there[-1], self._there[place]
        return self._there.pop()


def _shop(random: Random, seed: int) -> Iterator[Transaction]:
    stores, sales = retail.table(SHOP, "stores"), retail.table(SHOP, "sales")
    store_keys, sale_keys = _Keys(retail.STORES), _Keys(retail.SALES)

    def receipt(store: int, now: int) -> list[Change]:
        # Items and people that the other databases come to know at about this time.
        customer = random.randint(1, retail.PEOPLE + now // 4)
        return [
            Insert(
                sales,
                retail.sale(sale_keys.new(), store, customer, retail.ITEMS + now // 6, retail.TODAY, random),
            )
            for _ in range(random.randint(1, 4))
        ]

    for now in count():
        kind = random.random()
        if kind < 0.55:
            yield tuple(receipt(store_keys.some(random), now))
        elif kind < 0.75:
            yield (Delete(sales, sale_keys.gone(random)),)
        elif kind < 0.92:
            yield (Update(sales, sale_keys.some(random), {"qty": random.randint(1, 9)}),)
        elif kind < 0.96:
            opened = store_keys.new()
            first = Insert(stores, retail.store(opened, random.choice(CITIES)))
            yield (first, *receipt(opened, now))
        else:
            city = random.choice(CITIES)
            yield (Update(stores, store_keys.some(random), {"city": city, "region": retail.REGIONS[city]}),)


def _customers(random: Random, seed: int) -> Iterator[Transaction]:
    people = retail.table(CUSTOMERS, "people")
    keys = _Keys(retail.PEOPLE)
    homes = {row[0]: row[2] for row in retail.first_rows(CUSTOMERS, seed)["people"]}
    while True:
        kind = random.random()
        if kind < 0.5:
            row = retail.person(keys.new(), random)
            homes[row[0]] = row[2]
            yield (Insert(people, row),)
        elif kind < 0.8:
            # Elsewhere: an update that changes nothing is none to MariaDB.
            moved = keys.some(random)
            homes[moved] = random.choice([city for city in CITIES if city != homes[moved]])
            yield (Update(people, moved, {"city": homes[moved]}),)
        else:
            yield (Delete(people, keys.gone(random)),)


def _catalogue(random: Random, seed: int) -> Iterator[Transaction]:
    items = retail.table(CATALOGUE, "items")
    keys = _Keys(retail.ITEMS)
    while True:
        kind = random.random()
        if kind < 0.5:
            yield (Insert(items, retail.item(keys.new(), random)),)
        elif kind < 0.7:
            yield (Update(items, keys.some(random), {"price": retail.price(random)}),)
        elif kind < 0.85:
            yield (Update(items, keys.some(random), {"category": random.choice(retail.CATEGORIES)}),)
        else:
            yield (Delete(items, keys.gone(random)),)


_HAPPENS: dict[str, Callable[[Random, int], Iterator[Transaction]]] = {
    SHOP: _shop,
    CUSTOMERS: _customers,
    CATALOGUE: _catalogue,
}
