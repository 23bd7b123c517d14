"""URLs of sources: what is shown and stored of them, and what is connected with."""

import pytest

from viewkeeper.errors import BadSourceUrl, SourceUnfit
from viewkeeper.sources.registry import kind_of
from viewkeeper.sources.urls import naming_variables, resolved, shown

ENVIRONMENT = {
    "SHOP_PASSWORD": "p/@:",
    "SHOP_URL": "postgresql://bo:x@db/shop",
    "VIEWKEEPER_PASSWORD_SHOP": "from outside",
}


@pytest.mark.parametrize(
    ("url", "stored"),
    [
        ("postgresql://ann:secret@db:5432/shop?sslmode=require", "postgresql://ann@db:5432/shop?sslmode=require"),
        ("postgresql://ann:${SHOP_PASSWORD}@db/shop", "postgresql://ann:${SHOP_PASSWORD}@db/shop"),
        ("postgresql:///shop?host=/run/pg&password=secret", "postgresql:///shop?host=/run/pg"),
        ("postgresql:///shop?password=${SHOP_PASSWORD}", "postgresql:///shop?password=${SHOP_PASSWORD}"),
        ("mariadb://ann:se%40cret@/shop?unix_socket=/s", "mariadb://ann@/shop?unix_socket=/s"),
        ("sqlite:///shop.db", "sqlite:///shop.db"),
        ("sqlite:////data/shop.db", "sqlite:////data/shop.db"),
        ("files:///exports?schema.a=id BIGINT, b STRING", "files:///exports?schema.a=id BIGINT, b STRING"),
        ("shop.db", "shop.db"),
        ("${SHOP_URL}", "${SHOP_URL}"),
        ("${KIND:-postgresql}://ann:secret@${HOST:-db:1}/${NAME}", "${KIND:-postgresql}://ann@${HOST:-db:1}/${NAME}"),
        ("postgresql://${USER:-a:b}:${PASSWORD}@db/shop", "postgresql://${USER:-a:b}:${PASSWORD}@db/shop"),
        ("postgresql://ann:${PASSWORD:-secret}@db/shop", "postgresql://ann@db/shop"),
        ("postgresql:///${NAME}?password=${P:-secret}&sslmode=${S}", "postgresql:///${NAME}?sslmode=${S}"),
        ("${SHOP_URL}?password=secret&sslmode=require", "${SHOP_URL}?sslmode=require"),
        ("sqlite:////data/a@b#c?d.db", "sqlite:////data/a@b#c?d.db"),
        ("mariadb://ann@db/shop?unix_socket=/run/@s", "mariadb://ann@db/shop?unix_socket=/run/@s"),
        # Where it begins and ends depends on who reads it: PostgreSQL takes the first two for a password.
        ("postgresql://ann:se#cret@db/shop", "postgresql://..."),
        ("postgresql://ann:se?cret@db/shop", "postgresql://..."),
        ("postgresql://ann:se/cret@db/shop", "postgresql://..."),
        ("postgresql:/ann:secret@db/shop", "postgresql:..."),
    ],
)
def test_no_password_is_shown(url: str, stored: str) -> None:
    assert shown(url) == stored
    assert shown(stored) == stored


@pytest.mark.parametrize(
    ("url", "connected"),
    [
        ("postgresql://ann:${SHOP_PASSWORD}@db/shop", "postgresql://ann:p%2F%40%3A@db/shop"),
        ("postgresql://ann@db/shop", "postgresql://ann:from%20outside@db/shop"),
        ("postgresql://ann:secret@db/shop", "postgresql://ann:secret@db/shop"),
        ("sqlite:///shop.db", "sqlite:///shop.db"),
        ("${SHOP_URL}", "postgresql://bo:x@db/shop"),
        ("${NONE:-mariadb}://ann:x@${NONE:-local host}/shop", "mariadb://ann:x@local%20host/shop"),
        ("sqlite:///$${NONE}.db", "sqlite:///${NONE}.db"),
    ],
)
def test_passwords_come_from_the_environment(url: str, connected: str) -> None:
    assert resolved("shop", url, ENVIRONMENT) == connected


@pytest.mark.parametrize("character", "#?/")
def test_a_password_with_characters_of_a_url_is_refused(character: str) -> None:
    url = f"postgresql://ann:se{character}cret@db/shop"
    with pytest.raises(BadSourceUrl, match="characters that mean something else in a URL") as refused:
        resolved("shop", url, {})
    assert "cret" not in str(refused.value)
    assert "VIEWKEEPER_PASSWORD_SHOP" in refused.value.hint


def test_what_is_no_url_is_refused() -> None:
    with pytest.raises(BadSourceUrl, match="this is no URL"):
        resolved("shop", "postgresql://[::1/shop", {})


def test_a_variable_that_is_not_there_is_named() -> None:
    with pytest.raises(BadSourceUrl, match="NONE"):
        resolved("shop", "postgresql://ann:${NONE}@db/shop", ENVIRONMENT)


@pytest.mark.parametrize(
    ("url", "told"),
    [
        (
            "postgresql://ann:${SHOP_PASSWORD}@${HOST:-db}/shop",
            "; the URL takes SHOP_PASSWORD, HOST from the environment",
        ),
        ("postgresql://ann@db/shop", "; the URL takes VIEWKEEPER_PASSWORD_SHOP from the environment"),
    ],
)
def test_what_is_wrong_may_be_in_a_variable(url: str, told: str) -> None:
    with pytest.raises(SourceUnfit) as refused, naming_variables("shop", url, ENVIRONMENT):
        raise SourceUnfit("the password is wrong", "correct the URL of the source")
    assert refused.value.hint == f"correct the URL of the source{told}"
    assert not any(value in str(refused.value) for value in ENVIRONMENT.values())
    with pytest.raises(SourceUnfit) as refused, naming_variables("other", "postgresql://ann@db/shop", ENVIRONMENT):
        raise SourceUnfit("the password is wrong", "correct the URL of the source")
    assert refused.value.hint == "correct the URL of the source"


def test_kinds() -> None:
    urls = ("sqlite:///a", "postgres://a/b", "mariadb://a/b", "files:///a", "delta:///a", "oracle://a")
    assert [kind_of(url) for url in urls] == ["sqlite", "postgres", "mysql", "files", "delta", "oracle"]


def test_the_kind_behind_a_variable() -> None:
    assert kind_of("${SHOP_URL}", ENVIRONMENT) == "postgres"
    assert kind_of("${NONE}", ENVIRONMENT) == "unknown"
