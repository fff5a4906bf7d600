"""The lowest versions that pyproject.toml declares, as constraints: ``python -m tests.support.lowest_versions``."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path

from packaging.requirements import Requirement

PROJECT = Path(__file__).resolve().parents[2] / "pyproject.toml"


def lowest_versions(requirements: Iterable[str]) -> Iterator[str]:
    """Yield each requirement's lower bound as a pin, with its marker; extras of this project have none."""
    for requirement in map(Requirement, requirements):
        for bound in requirement.specifier:
            if bound.operator == ">=":
                marker = f"; {requirement.marker}" if requirement.marker else ""
                yield f"{requirement.name}=={bound.version}{marker}"


if __name__ == "__main__":
    project = tomllib.loads(PROJECT.read_text("utf-8"))["project"]
    print(*lowest_versions(chain(project["dependencies"], *project["optional-dependencies"].values())), sep="\n")
