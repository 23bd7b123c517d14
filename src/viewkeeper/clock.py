"""The only home of time and randomness.

Everything else takes a `Random` or a time as an argument, so that a run can be repeated exactly from its seed.
The linter bans the clock and random modules everywhere but here.
"""

import random
import secrets
import time
import uuid
from datetime import UTC, datetime

__all__ = ["Random", "fresh_seed", "monotonic", "now", "secret", "seeded", "unique_id"]

Random = random.Random
"""The type of a random generator; make one with `seeded`."""


def seeded(seed: int) -> Random:
    """Return a generator whose whole sequence is fixed by `seed`."""
    return Random(seed)


def fresh_seed() -> int:
    """Return an unpredictable 32-bit seed, for a run that was given none."""
    return secrets.randbits(32)


def now() -> datetime:
    """Return the current time, aware and in UTC."""
    return datetime.now(UTC)


def monotonic() -> float:
    """Return seconds on a clock that never goes back; only differences mean anything."""
    return time.monotonic()


def unique_id() -> str:
    """Return a name that nobody else has: 32 hexadecimal digits."""
    return uuid.uuid4().hex


def secret() -> str:
    """Return a password that cannot be guessed: 64 hexadecimal digits."""
    return secrets.token_hex(32)
