"""A retail chain: the tables of its three databases, and what is in them at first, a function of the seed.

    shop        sales(sale_id, store_id, item_id, customer_id, date, qty, price), stores(store_id, city, region)
    customers   people(customer_id, name, city)
    catalogue   items(item_id, name, category, price)

The tables of sales and stores are those of the summary-delta paper, `pos` and `stores`. Columns have types that all
three databases know; dates and prices are text until a database has read them.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta

from viewkeeper.clock import Random, seeded

Value = int | str
Row = tuple[Value, ...]

SHOP, CUSTOMERS, CATALOGUE = "shop", "customers", "catalogue"

REGIONS = {
    "Basel": "North",
    "Bern": "West",
    "Chur": "East",
    "Genf": "West",
    "Lugano": "South",
    "Luzern": "North",
    "Winterthur": "East",
    "Zürich": "North",
}
"""City -> region: a city is in one region, whatever happens to its stores."""
CITIES = tuple(REGIONS)
CATEGORIES = ("bakery", "books", "clothes", "drinks", "garden", "kitchen", "office", "toys")
FIRST_NAMES = ("Ann", "Beat", "Carla", "David", "Elena", "Felix", "Greta", "Hugo", "Ines", "Jan", "Kim", "Lea")
LAST_NAMES = ("Bauer", "Egli", "Frei", "Huber", "Keller", "Meier", "Roth", "Suter", "Vogel", "Weber", "Zbinden")
FIRST_DAY, DAYS = date(2026, 1, 1), 30
TODAY = str(FIRST_DAY + timedelta(DAYS))
"""when the new sales are made"""

STORES, ITEMS, PEOPLE, SALES = 10, 120, 1_000, 30_000


@dataclass(frozen=True)
class Table:
    """A table: its columns with their types, the first of which is the key."""

    name: str
    columns: Mapping[str, str]

    @property
    def key(self) -> str:
        return next(iter(self.columns))

    @property
    def create(self) -> str:
        columns = ", ".join(f"{name} {type}" for name, type in self.columns.items())
        return f"CREATE TABLE {self.name} ({columns}, PRIMARY KEY ({self.key}))"


_NUMBER, _TEXT, _MONEY = "INTEGER NOT NULL", "VARCHAR(40) NOT NULL", "DECIMAL(8, 2) NOT NULL"
TABLES: Mapping[str, tuple[Table, ...]] = {
    SHOP: (
        Table("stores", {"store_id": _NUMBER, "city": _TEXT, "region": _TEXT}),
        Table(
            "sales",
            {
                "sale_id": _NUMBER,
                "store_id": _NUMBER,
                "item_id": _NUMBER,
                "customer_id": _NUMBER,
                "date": "DATE NOT NULL",
                "qty": _NUMBER,
                "price": _MONEY,
            },
        ),
    ),
    CUSTOMERS: (Table("people", {"customer_id": _NUMBER, "name": _TEXT, "city": _TEXT}),),
    CATALOGUE: (Table("items", {"item_id": _NUMBER, "name": _TEXT, "category": _TEXT, "price": _MONEY}),),
}
HIERARCHIES: Mapping[str, Mapping[str, Sequence[str]]] = {SHOP: {"stores": ("store_id", "city", "region")}}


def table(database: str, name: str) -> Table:
    """A table by its name."""
    return next(one for one in TABLES[database] if one.name == name)


def first_rows(database: str, seed: int) -> dict[str, list[Row]]:
    """What is in each table of a database at first."""
    random = seeded(seed)
    if database == CUSTOMERS:
        return {"people": [person(number, random) for number in range(1, PEOPLE + 1)]}
    if database == CATALOGUE:
        return {"items": [item(number, random) for number in range(1, ITEMS + 1)]}
    stores = [store(number, CITIES[number % len(CITIES)]) for number in range(1, STORES + 1)]
    return {"stores": stores, "sales": list(_first_sales(random))}


def _first_sales(random: Random) -> Iterator[Row]:
    days = [str(FIRST_DAY + timedelta(day)) for day in range(DAYS)]
    for number in range(1, SALES + 1):
        yield sale(number, random.randint(1, STORES), random.randint(1, PEOPLE), ITEMS, random.choice(days), random)


# --- one row ---


def store(number: int, city: str) -> Row:
    return (number, city, REGIONS[city])


def person(number: int, random: Random) -> Row:
    return (number, f"{random.choice(FIRST_NAMES)} {random.choice(LAST_NAMES)}", random.choice(CITIES))


def item(number: int, random: Random) -> Row:
    category = random.choice(CATEGORIES)
    return (number, f"{category} {number}", category, price(random))


def sale(number: int, store: int, customer: int, items: int, day: str, random: Random) -> Row:
    """Somebody buys one of the first so many items."""
    return (number, store, random.randint(1, items), customer, day, random.randint(1, 5), price(random))


def price(random: Random) -> str:
    return f"{random.randint(1, 99)}.{random.randrange(0, 100, 5):02d}"
