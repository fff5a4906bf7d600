"""Setups of the papers, ``paper:NAME``: specs that ship with Rashomon, with the source of each value."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.errors import SpecError, did_you_mean

PREFIX = "paper:"

_FOLDER = Path(__file__).resolve().parents[2] / "assets" / "setups"


@dataclass(frozen=True, slots=True)
class Setup:
    """The setup of a benchmark's paper.

    Attributes:
        values: A spec, as its file holds it.
        sources: Where the paper gives each value, or that it is our choice; by the value's key.
        judges: The paper's own judges, in order of preference, which need a key.
        differences: Sentences on what differs from the paper.
        published: The number of instances of each condition that the published data have, as ``published_source`` counts them.
        not_published: Phrases on why the published data lack a condition, by condition.
        shipped: The sources of a build that ships with Rashomon, by name, as folders of its assets; ``shipped_data`` says what
            they are and why, "" where the data are fetched.
    """

    name: str
    values: Mapping[str, Any]
    sources: Mapping[str, str]
    judges: tuple[str, ...]
    differences: tuple[str, ...]
    published: Mapping[str, int]
    published_source: str
    not_published: Mapping[str, str]
    shipped: Mapping[str, str]
    shipped_data: str

    def with_judge(self, ready: Mapping[str, bool]) -> tuple[dict[str, Any], str]:
        """Return the spec with the first of :attr:`judges` that is ``ready``, and a sentence on the judge; "" without one."""
        if not self.judges:
            return dict(self.values), ""
        judge = next((name for name in self.judges if ready[name]), None)
        if judge is not None:
            return {**self.values, "judge": judge}, f"{PREFIX}{self.name}: judged by {judge}, as in the paper."
        instead = self.values["judge"]
        return dict(self.values), (
            f"{PREFIX}{self.name}: judged by {instead}, because there is no key for the paper's judge "
            f"({' or '.join(self.judges)})."
        )


def setup_names() -> list[str]:
    """Return the names of the setups, which are those of the benchmarks."""
    return sorted(path.stem for path in _FOLDER.glob("*.toml"))


def setup_file(spec: Path | None) -> Path | None:
    """Return the file of a setup that a command names in place of a spec, or None; it may not exist."""
    name = "" if spec is None else str(spec)
    return _FOLDER / f"{Path(name.removeprefix(PREFIX)).name}.toml" if name.startswith(PREFIX) else None


def find_setup(name: str) -> Setup:
    """Return the setup ``name``, with or without its prefix. Raises SpecError if there is none."""
    name, names = name.removeprefix(PREFIX), setup_names()
    if name not in names:
        raise SpecError(f"there is no setup {PREFIX}{name}; {did_you_mean(name, names)}")
    values = tomllib.loads((_FOLDER / f"{name}.toml").read_text("utf-8"))
    paper = values.pop("paper")
    data: dict[str, Any] = paper["data"]
    return Setup(
        name,
        values,
        paper["sources"],
        tuple(paper["judges"]),
        tuple(paper["differences"]),
        data["instances"],
        data["source"],
        data.get("lacks", {}),
        data.get("shipped", {}),
        data.get("shipped_data", ""),
    )
