"""Builds the documentation as a site: `python docs/build_site.py` writes site/, and fails on a link that leads nowhere.

    docs/*.md  ──▶  build/pages/*.md  ──▶  site/*.html

On a code host a page links to the code by its path, `../src/viewkeeper/...`. A site has no such files. So what is
linked outside docs/ is put beside the pages under code/, as pages with a listing, and the links lead there.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
CONFIGURATION = "mkdocs.yml"
STAGED = Path("build/pages")
_LISTED = {".md", ".svg", ".json"}
_FENCED = re.compile(r"^( *)```.*?^\1```", flags=re.DOTALL | re.MULTILINE)
_LINK = re.compile(r"(?<=\]\()([^)\s#]+)((?:#[^)\s]*)?)(?=\))")


def stage(folder: Path) -> None:
    """All pages and what they link to, below `folder`."""
    waiting = [page for page in sorted(DOCS.rglob("*")) if page.suffix in _LISTED]
    done: set[Path] = set()
    while waiting:
        original = waiting.pop()
        if original in done:
            continue
        done.add(original)
        target = folder / staged(original)
        target.parent.mkdir(parents=True, exist_ok=True)
        if original.suffix in _LISTED - {".md"} and original.is_relative_to(DOCS):
            shutil.copyfile(original, target)
            continue
        text, linked = page_of(original)
        target.write_text(text, encoding="utf-8")
        waiting += linked


def staged(original: Path) -> Path:
    """Where a file of the project is among the pages."""
    if original.is_relative_to(DOCS) and original != DOCS and original.suffix in _LISTED:
        return original.relative_to(DOCS)
    inside = Path("code") / original.relative_to(ROOT)
    if original.is_dir():
        return inside / "index.md"
    return inside if inside.suffix == ".md" else inside.with_name(f"{inside.name}.md")


def page_of(original: Path) -> tuple[str, list[Path]]:
    """The page that shows a file or a folder, and the files that it links to."""
    if original.suffix == ".md":
        return _relinked(original)
    title = f"---\nsearch:\n  exclude: true\n---\n\n# `{original.relative_to(ROOT)}`\n\n"
    if original.is_dir():
        inside = (one for one in sorted(original.iterdir()) if one.suffix == ".py" or (one / "__init__.py").exists())
        return title + "\n".join(f"- `{one.name}`" for one in inside) + "\n", []
    language = {".py": "python", ".toml": "toml", ".json": "json"}.get(original.suffix, "text")
    return f"{title}~~~~{language}\n{original.read_text(encoding='utf-8')}~~~~\n", []


def _relinked(page: Path) -> tuple[str, list[Path]]:
    linked: list[Path] = []

    def lead(found: re.Match[str]) -> str:
        if re.match(r"[a-z]+:", found[1]):
            return found[0]
        target = Path(os.path.normpath(page.parent / found[1]))
        if not target.is_relative_to(ROOT) or not target.exists():
            return found[0]  # the build says where it is
        linked.append(target)
        return _relative(page, target) + found[2]

    return _outside_listings(page.read_text(encoding="utf-8"), lambda text: _LINK.sub(lead, text)), linked


def _outside_listings(text: str, changed: Callable[[str], str]) -> str:
    parts, place = [], 0
    for listing in _FENCED.finditer(text):
        parts += [changed(text[place : listing.start()]), listing[0]]
        place = listing.end()
    return "".join([*parts, changed(text[place:])])


def _relative(page: Path, target: Path) -> str:
    return Path(os.path.relpath(staged(target), staged(page).parent)).as_posix()


def build(folder: Path) -> Path:
    """The site, below `folder`; CalledProcessError if a page or a link is wrong."""
    if folder != ROOT:
        shutil.copyfile(ROOT / CONFIGURATION, folder / CONFIGURATION)
    shutil.rmtree(folder / STAGED, ignore_errors=True)
    stage(folder / STAGED)
    command = [sys.executable, "-m", "zensical", "build", "--strict", "--clean", "-f", CONFIGURATION]
    subprocess.run(command, cwd=folder, check=True)
    return folder / "site"


def main() -> int:
    try:
        site = build(ROOT)
    except subprocess.CalledProcessError:
        print("the site was not built: a page or a link is wrong, as told above", file=sys.stderr)
        return 1
    print(f"written: {site.relative_to(ROOT)}/index.html")
    return 0


if __name__ == "__main__":
    sys.exit(main())
