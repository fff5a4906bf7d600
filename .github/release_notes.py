"""Release notes of a tag: ``python .github/release_notes.py v1.2.3`` prints the section of CHANGELOG.md.

It ends with a sentence and exit code 2 if the tag is not the version of pyproject.toml, or the changelog has no such section.
"""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def release_notes(tag: str, root: Path = ROOT) -> str:
    """Return the section of the tag's version. Raises ValueError."""
    version = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["project"]["version"]
    if tag != f"v{version}":
        raise ValueError(f"the tag {tag} is not v{version}, the version in pyproject.toml; correct one of them.")
    section = re.search(
        rf"^## \[{re.escape(version)}\][^\n]*\n(.*?)(?=^## |\Z)",
        (root / "CHANGELOG.md").read_text("utf-8"),
        re.DOTALL | re.MULTILINE,
    )
    if section is None or not section[1].strip():
        raise ValueError(f"CHANGELOG.md has nothing under [{version}]; rename the section Unreleased.")
    return section[1].strip() + "\n"


def main() -> None:
    """Print the notes of the tag on the command line."""
    try:
        print(release_notes(sys.argv[1]), end="")
    except (IndexError, ValueError) as error:
        print(error, file=sys.stderr)
        sys.exit(2)


if __name__ == "__main__":
    main()
