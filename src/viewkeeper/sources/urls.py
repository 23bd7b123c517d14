"""The URL of a source, with and without its password.

    postgresql://ann:${SHOP_PASSWORD}@db/shop      ${...} is taken from the environment whenever the source is opened
    postgresql://ann:secret@db/shop                the password is used, and not stored
    postgresql://ann@db/shop                       the password is VIEWKEEPER_PASSWORD_SHOP, if that is set

What is stored or shown is always `shown`.
"""

import re
from collections.abc import Mapping
from urllib.parse import SplitResult, parse_qsl, quote, urlencode, urlsplit

from viewkeeper.errors import BadSourceUrl

_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_SECRET = ("password", "sslpassword", "passwd")


def shown(url: str) -> str:
    """The URL without its password. References to the environment stay."""
    parts = urlsplit(url)
    if "://" not in url:
        return url
    user, separator, host = parts.netloc.rpartition("@")
    name, _, password = user.partition(":")
    if password and not _VARIABLE.fullmatch(password):
        user = name
    query = parts.query
    options = parse_qsl(query, keep_blank_values=True)
    if any(option in _SECRET and not _VARIABLE.fullmatch(value) for option, value in options):
        query = urlencode([(o, v) for o, v in options if o not in _SECRET or _VARIABLE.fullmatch(v)], safe="${}/,")
    return _joined(parts._replace(netloc=f"{user}{separator}{host}", query=query))


def resolved(name: str, url: str, environment: Mapping[str, str]) -> str:
    """The URL to connect with: references replaced, and the password of the environment put in if it has none."""

    def value(match: re.Match[str]) -> str:
        variable = match.group(1)
        if variable not in environment:
            raise BadSourceUrl(
                f"the URL of source {name} refers to ${{{variable}}}, and there is no such environment variable",
                f"set {variable}, or write the URL without it",
            )
        return quote(environment[variable], safe="")

    url = _VARIABLE.sub(value, url)
    parts = urlsplit(url)
    user, separator, host = parts.netloc.rpartition("@")
    secret = environment.get(f"VIEWKEEPER_PASSWORD_{re.sub('[^A-Z0-9]', '_', name.upper())}")
    if separator and ":" not in user and secret is not None:
        url = _joined(parts._replace(netloc=f"{user}:{quote(secret, safe='')}@{host}"))
    return url


def _joined(parts: SplitResult) -> str:
    """`urlunsplit` leaves out the slashes before an empty host."""
    options = (f"?{parts.query}" if parts.query else "") + (f"#{parts.fragment}" if parts.fragment else "")
    return f"{parts.scheme}://{parts.netloc}{parts.path}{options}"
