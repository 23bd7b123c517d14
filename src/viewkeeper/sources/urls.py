"""The URL of a source, with and without its password.

    postgresql://ann:${SHOP_PASSWORD}@db/shop      ${...} is taken from the environment whenever the source is opened
    postgresql://${SHOP_HOST:-localhost}/shop      and has a default here
    ${SHOP_URL}                                    at the beginning it may be a whole URL
    postgresql://ann:secret@db/shop                the password is used, and not stored
    postgresql://ann@db/shop                       the password is VIEWKEEPER_PASSWORD_SHOP, if that is set

What is stored or shown is always `shown`. A default is written down for everyone to see, so it is no password.
"""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from urllib.parse import SplitResult, parse_qsl, quote, urlencode, urlsplit

from viewkeeper.errors import BadSourceUrl, SourceError
from viewkeeper.sources.variables import Reference, references, replaced

_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_MASK = "zqvk{}zq"
"""a word that may stand in every part of a URL"""
_SECRET = ("password", "sslpassword", "passwd")
_LIBPQ = ("postgresql", "postgres")
"""kinds of sources whose driver reads variables of its own"""
_PATHS = ("sqlite", "files", "delta")
"""kinds of sources whose URL is a path, and has no user"""


def shown(url: str) -> str:
    """The URL without its password. References to the environment stay. Of what cannot be taken apart safely nothing is
    shown but how it begins."""
    masks = {_MASK.format(index): text for index, text in enumerate(_references(url))}
    for mask, text in masks.items():
        url = url.replace(text, mask)
    hidden = _without_password(url, {mask for mask, text in masks.items() if _VARIABLE.fullmatch(text)})
    for mask, text in masks.items():
        hidden = hidden.replace(mask, text)
    return hidden


def _references(url: str) -> list[str]:
    """As they are written, each once."""
    written = [f"${{{one.name}" + ("}" if one.default is None else f":-{one.default}}}") for one in references(url)]
    return list(dict.fromkeys(written))


def _without_password(url: str, allowed: set[str]) -> str:
    """Not without one that is a reference."""
    scheme, separator, _ = url.partition("://")
    if not separator:
        # A reference to a whole URL; or something is missing, and what is a password cannot be told.
        start, mark, query = url.partition("?")
        return f"{start.partition(':')[0]}:..." if "@" in start else f"{start}{mark}{_without_secrets(query, allowed)}"
    if is_ambiguous(url):
        return f"{scheme}://..."
    parts = _split(url)
    user, separator, host = parts.netloc.rpartition("@")
    name, _, password = user.partition(":")
    if password and password not in allowed:
        user = name
    query = _without_secrets(parts.query, allowed)
    return _joined(parts._replace(netloc=f"{user}{separator}{host}", query=query))


def _without_secrets(query: str, allowed: set[str]) -> str:
    options = parse_qsl(query, keep_blank_values=True)
    if not any(option in _SECRET and value not in allowed for option, value in options):
        return query
    return urlencode([(o, v) for o, v in options if o not in _SECRET or v in allowed], safe="${}/,")


def resolved(name: str, url: str, environment: Mapping[str, str]) -> str:
    """The URL to connect with: references replaced, and the password of the environment put in if it has none."""

    def value(reference: Reference) -> str:
        found = reference.value(environment)
        if found is None:
            raise BadSourceUrl(
                f"the URL of source {name} refers to ${{{reference.name}}}, and there is no such environment variable",
                f"set {reference.name}, or write the URL without it",
            )
        # What a URL begins with is a URL, or a part with a scheme; elsewhere it is a name or a password.
        return found if reference.start == 0 else quote(found, safe="")

    url = replaced(url, value)
    if is_ambiguous(url):
        raise BadSourceUrl(
            f"the URL of source {name} has a user or a password with characters that mean something else in a URL",
            "write %23 for #, %3F for ?, %2F for / and %40 for @; or leave the password out, and set "
            f"{_password_variable(name)}",
        )
    parts = _split(url)
    user, separator, host = parts.netloc.rpartition("@")
    secret = environment.get(_password_variable(name))
    if separator and ":" not in user and secret is not None:
        url = _joined(parts._replace(netloc=f"{user}:{quote(secret, safe='')}@{host}"))
    return url


def taken_variables(name: str, url: str, environment: Mapping[str, str]) -> list[str]:
    """The variables whose values go to where a URL leads when it is opened: those that it names, and passwords that are
    taken for it without being named."""
    named = [one.name for one in references(url)]
    scheme, _, rest = url.partition("://")
    user, separator, _ = rest.partition("/")[0].rpartition("@")
    if url.startswith("${") or (separator and ":" not in user):
        named.append(_password_variable(name))
    if scheme in _LIBPQ and not (separator and ":" in user):
        named.append("PGPASSWORD")
    return [one for one in dict.fromkeys(named) if environment.get(one)]


def host_of(url: str) -> str:
    """Where a URL leads, as it is written there: its host, or what stands for it."""
    rest = url.partition("://")[2]
    return rest.partition("/")[0].rpartition("@")[2].partition("?")[0] or rest.partition("?")[0] or url


def is_ambiguous(url: str) -> bool:
    """Whether a #, ? or / stands in front of the @ behind a user: a part of the password, to some who read it."""
    scheme, _, rest = url.partition("://")
    if scheme in _PATHS:
        return False
    user = rest.partition("/")[0].rpartition("@")[0]
    return "#" in user or "?" in user or "@" in rest.partition("/")[2].partition("?")[0]


def _split(url: str) -> SplitResult:
    try:
        return urlsplit(url)
    except ValueError as error:
        raise BadSourceUrl(
            f"this is no URL: {error}", "an address of IPv6 stands in brackets: postgresql://[::1]/shop"
        ) from None


def _password_variable(name: str) -> str:
    return f"VIEWKEEPER_PASSWORD_{re.sub('[^A-Z0-9]', '_', name.upper())}"


@contextmanager
def naming_variables(name: str, url: str, environment: Mapping[str, str]) -> Iterator[None]:
    """A hint that speaks of the URL also names the variables that it is made with: one may hold what is wrong."""
    try:
        yield
    except SourceError as error:
        used = dict.fromkeys(one.name for one in references(url))
        if not used and _password_variable(name) in environment:
            used = {_password_variable(name): None}
        if used and "URL" in error.hint:
            error.hint += f"; the URL takes {', '.join(used)} from the environment"
        raise


def _joined(parts: SplitResult) -> str:
    """`urlunsplit` leaves out the slashes before an empty host."""
    options = (f"?{parts.query}" if parts.query else "") + (f"#{parts.fragment}" if parts.fragment else "")
    return f"{parts.scheme}://{parts.netloc}{parts.path}{options}"
