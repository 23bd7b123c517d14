"""Fills the generated parts of the documentation from the program itself.

A generated part stands between two comments; the first one holds the command whose output it is:

    <!-- generated: viewkeeper simulate --example strobe-1 --trace -->
    <!-- end -->

`python docs/regenerate.py` rewrites them, and the pictures; with `--check` it only says which are out of date, and
exits with 1.
"""

import re
import shlex
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PART = re.compile(r"(<!-- generated: (?P<command>.+?) -->\n).*?(<!-- end -->)", re.DOTALL)


def output_of(command: str) -> str:
    """What a command prints; `viewkeeper` and `python` are the ones of this environment."""
    words = shlex.split(command)
    here = {"viewkeeper": [sys.executable, "-m", "viewkeeper.cli.main"], "python": [sys.executable]}
    done = subprocess.run(here[words[0]] + words[1:], cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout.rstrip()


def regenerated(text: str) -> str:
    """A page with its generated parts recreated: what a script writes is Markdown, anything else a listing."""

    def fill(part: re.Match[str]) -> str:
        shown = output_of(part["command"])
        body = shown if part["command"].startswith("python ") else f"```text\n{shown}\n```"
        return f"{part[1]}\n{body}\n\n{part[3]}"

    return PART.sub(fill, text)


def stale_pictures() -> list[Path]:
    """Those that are not as they would be drawn now; they are drawn."""
    import latency_pictures
    import level_pictures
    import package_pictures

    drawn = {level_pictures.FOLDER / file: level_pictures.picture(one) for file, one in level_pictures.PICTURES.items()}
    drawn |= {latency_pictures.FOLDER / file: latency_pictures.picture(file) for file in latency_pictures.PICTURES}
    drawn[package_pictures.FOLDER / package_pictures.FILE] = package_pictures.picture()
    stale = [file for file, svg in drawn.items() if not file.exists() or file.read_text(encoding="utf-8") != svg]
    if "--check" not in sys.argv:
        for file in stale:
            file.write_text(drawn[file], encoding="utf-8")
    return [file.relative_to(ROOT) for file in stale]


def main() -> int:
    stale = stale_pictures()
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        text = page.read_text(encoding="utf-8")
        if (new := regenerated(text)) != text:
            stale.append(page.relative_to(ROOT))
            if "--check" not in sys.argv:
                page.write_text(new, encoding="utf-8")
    print("\n".join(f"out of date: {page}" if "--check" in sys.argv else f"written: {page}" for page in stale))
    return int(bool(stale) and "--check" in sys.argv)


if __name__ == "__main__":
    sys.exit(main())
