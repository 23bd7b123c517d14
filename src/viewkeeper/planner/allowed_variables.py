"""Which stored URLs may take values from the environment: those that this user gave, and no others.

    allowed(source, URL)  ⟺  this user added the source with that URL
                           ∨ the project names it
                           ∨ VIEWKEEPER_ALLOW_VARIABLES allows each variable for the source

A warehouse may come from somebody else, whose URL would send a password of ours to a host of theirs. So what is allowed
is noted outside of it, in `~/.config/viewkeeper/allowed/`, one file for each URL: removing it takes the allowance back.
"""

import json
import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

from viewkeeper.clock import unique_id
from viewkeeper.errors import StorageFailure, UsageError, VariableNotAllowed
from viewkeeper.sources.urls import host_of, shown, taken_variables

VARIABLE = "VIEWKEEPER_ALLOW_VARIABLES"
Urls = Callable[[], Mapping[str, str]]
"""URLs of sources, by their names"""


class AllowedVariables:
    """What this user allows to the sources of a warehouse. `also` are URLs that were given in another way, such as by a
    project."""

    def __init__(self, warehouse: str, also: Urls | None = None) -> None:
        self._warehouse, self._also = warehouse, also

    def note(self, source: str, given: str) -> None:
        """The user has given this URL: from now on what it takes is allowed, also a password that was in it."""
        url = shown(given)
        taken = taken_variables(source, url, os.environ)
        if (not taken and url == given) or self._is_noted(source, url):
            return
        file = self._file(source, url)
        temporary = file.with_name(f".{unique_id()}")
        try:
            file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with open(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "w", encoding="utf-8") as opened:
                json.dump(self._noted(source, url), opened)
            os.replace(temporary, file)
        except OSError as error:
            if taken and set(taken) <= _from_environment().get(source, set()):
                return
            raise StorageFailure(
                f"{file.parent}: {error.strerror}; what source {source} may take from the environment is noted there",
                "let XDG_CONFIG_HOME name a folder that can be written, or "
                f"export {VARIABLE}='{_written(source, taken or ['NAME'])}'",
            ) from error
        finally:
            with suppress(OSError):
                temporary.unlink(missing_ok=True)

    def withdraw(self, source: str, url: str) -> None:
        """The source is removed: what was noted of it goes."""
        with suppress(OSError):
            self._file(source, url).unlink(missing_ok=True)

    def check(self, source: str, url: str) -> None:
        """VariableNotAllowed if a stored URL takes what the user has not allowed for it."""
        taken = taken_variables(source, url, os.environ)
        refused = [one for one in taken if one not in _from_environment().get(source, ())]
        if not refused or self._is_noted(source, url) or self._is_given(source, url):
            return
        raise VariableNotAllowed(
            f"source {source} would send the value of {', '.join(refused)} to {host_of(url)}, "
            f"and you have not allowed that: its URL in the warehouse is {url}",
            f"if that is as it should be: viewkeeper add-source {source} '{url}' once more, or "
            f"export {VARIABLE}='{_written(source, refused)}'",
        )

    def _is_given(self, source: str, url: str) -> bool:
        given = self._also().get(source) if self._also is not None else None
        return given is not None and shown(given) == url

    def _is_noted(self, source: str, url: str) -> bool:
        try:
            return bool(json.loads(self._file(source, url).read_bytes()) == self._noted(source, url))
        except (OSError, ValueError):
            return False

    def _noted(self, source: str, url: str) -> dict[str, str]:
        return {"warehouse": self._warehouse, "source": source, "url": url}

    def _file(self, source: str, url: str) -> Path:
        home = os.environ.get("XDG_CONFIG_HOME")
        folder = (Path(home) if home else Path("~/.config").expanduser()) / "viewkeeper" / "allowed"
        return folder / f"{sha256(json.dumps(self._noted(source, url)).encode()).hexdigest()[:32]}.json"


def _from_environment() -> dict[str, set[str]]:
    """`shop=SHOP_HOST,SHOP_PASSWORD crm=CRM_PASSWORD`"""
    found: dict[str, set[str]] = {}
    for word in os.environ.get(VARIABLE, "").split():
        source, separator, names = word.partition("=")
        if not (source and separator and all(names.split(","))):
            raise UsageError(
                f"{VARIABLE} has {word!r}, which allows nothing", "write source=NAME,NAME, and a space between sources"
            )
        found.setdefault(source, set()).update(names.split(","))
    return found


def _written(source: str, names: list[str]) -> str:
    return f"{source}={','.join(names)}"
