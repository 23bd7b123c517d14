"""The site of the documentation is built without a warning, has every page, and needs no other host."""

import importlib.util
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from page_examples import DOCS, PAGES, ROOT

LOADED = re.compile(
    r"<(?:script|img|iframe|source)\b[^>]*\bsrc=[\"']?([^\"'\s>]+)|<link\b[^>]*\bhref=[\"']?([^\"'\s>]+)"
)


def build_site() -> Any:
    spec = importlib.util.spec_from_file_location("build_site", DOCS / "build_site.py")
    assert spec is not None
    assert spec.loader is not None
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built strictly: a page or an anchor that a link misses is an error."""
    built: Path = build_site().build(tmp_path_factory.mktemp("site"))
    return built


def navigation(part: Any) -> Iterator[str]:
    if isinstance(part, str):
        yield part
    elif isinstance(part, list):
        for one in part:
            yield from navigation(one)
    else:
        for one in part.values():
            yield from navigation(one)


def test_every_page_is_in_the_navigation() -> None:
    configuration = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))
    shown = list(navigation(configuration["nav"]))
    assert sorted(shown) == sorted(page.relative_to(DOCS).as_posix() for page in PAGES)


def test_every_page_is_built(site: Path) -> None:
    pages = [page.relative_to(DOCS).with_suffix(".html") for page in PAGES]
    homes = [page.with_name("index.html") if page.name == "README.html" else page for page in pages]
    assert [str(page) for page in homes if not (site / page).is_file()] == []


def test_links_within_the_site_lead_to_files(site: Path) -> None:
    """Also those that the builder does not look at: to code, to pictures."""
    broken = []
    for page in site.rglob("*.html"):
        if page.name == "404.html":
            continue
        article = page.read_text(encoding="utf-8").partition("<article")[2].partition("</article>")[0]
        for target in re.findall(r"(?:href|src)=\"([^\"#]+)", article):
            if not re.match(r"[a-z]+:", target) and not (page.parent / target).exists():
                broken.append(f"{page.relative_to(site)}: {target}")
    assert broken == []


def test_nothing_is_loaded_from_another_host(site: Path) -> None:
    loaded = {
        target
        for page in site.rglob("*.html")
        for found in LOADED.findall(page.read_text(encoding="utf-8"))
        for target in found
        if re.match(r"(?:https?:)?//", target)
    }
    styles = "".join(style.read_text(encoding="utf-8") for style in site.rglob("*.css"))
    assert loaded == set()
    assert re.findall(r"url\([\"']?https?:[^)]*\)|@import[^;]*https?:[^;]*;", styles) == []
