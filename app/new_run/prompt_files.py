"""Prompt sets that are no benchmark's own: those that come with Rashomon, and the files of a workspace."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from app.store.workspace import Workspace
from benchmarks.base import Benchmark
from benchmarks.errors import SpecError
from benchmarks.prompt_template import SUFFIX, PromptTemplate, find_template, shipped_templates

FOLDER = "prompts"
"""The folder of a workspace whose prompt sets New run offers."""


@dataclass(frozen=True, slots=True)
class PromptChoice:
    """A prompt set to choose: its name in a spec, its template, and why it cannot be used; "" if it can."""

    spec_name: str
    template: PromptTemplate | None
    problem: str = ""


def prompt_choices(benchmark: Benchmark, workspace: Workspace | None) -> Iterator[PromptChoice]:
    """Yield the files of the workspace, then the shipped prompt sets, that are for a benchmark.

    The shipped ones are about an image and a text, so they are for benchmarks that show both.
    """
    if not benchmark.placeholders:
        return
    for path in prompt_files(workspace) if workspace is not None else ():
        try:
            template = find_template(str(path), benchmark.prompt_sets)
            template.check_fits(benchmark.name, benchmark.placeholders)
        except SpecError as error:
            yield PromptChoice(str(path), None, str(error))
        else:
            yield PromptChoice(str(path), template)
    if "text" in benchmark.placeholders:
        for name, template in shipped_templates().items():
            if name not in benchmark.prompt_sets:
                yield PromptChoice(name, template)


def prompt_files(workspace: Workspace) -> list[Path]:
    """Return the prompt sets in a workspace's folder for them."""
    try:
        return sorted(path for path in (workspace.path / FOLDER).glob(f"*{SUFFIX}") if path.is_file())
    except OSError:
        return []
