"""The pinned versions: every declared package, within its bounds, from wherever pip is set up to look."""

from __future__ import annotations

import re
import tomllib
from itertools import chain

import pytest
from packaging.requirements import Requirement

from tests.support.command import ROOT
from tests.support.lowest_versions import lowest_versions

PINS = [
    Requirement(line) for line in (ROOT / "constraints.txt").read_text("utf-8").splitlines() if not line.startswith("#")
]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
EXTRAS = PROJECT["optional-dependencies"]
DECLARED = [
    Requirement(line)
    for line in chain(
        PROJECT["dependencies"],
        *(EXTRAS[extra] for extra in ("api", "keychain", "ocr", "pdf", "serve", "shapes", "video", "wordnet", "test")),
    )
    if not line.startswith("rashomon")
]


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


@pytest.mark.parametrize("declared", DECLARED, ids=str)
def test_every_declared_package_is_pinned_within_its_bounds(declared: Requirement) -> None:
    (pin,) = [pin for pin in PINS if normal(pin.name) == normal(declared.name)]
    (version,) = pin.specifier
    assert declared.specifier.contains(version.version)


def test_pins_are_exact_versions_without_locations() -> None:
    assert len(PINS) > 100
    for pin in PINS:
        assert pin.url is None
        assert [version.operator for version in pin.specifier] == ["=="]


def test_every_requirement_has_a_lowest_version() -> None:
    lowest = [Requirement(line) for line in lowest_versions(map(str, DECLARED))]
    assert [pin.name for pin in lowest] == [declared.name for declared in DECLARED]
    for pin, declared in zip(lowest, DECLARED, strict=True):
        (version,) = pin.specifier
        assert declared.specifier.contains(version.version)
        assert pin.marker == declared.marker
