"""``rashomon passages``: the examples of a build with 1 to 10 passages, of which one is right."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from app.annotation.review_session import find_build
from app.commands.building.build_command import built_benchmark, disk_errors
from app.commands.building.vary_command import DesignArguments, announce, refuse_base
from app.commands.terminal.spinner import counter
from app.json_output.json_envelope import print_json
from app.store.workspace import Workspace
from app.text.shell_quoting import shell_quote
from app.text.text_escaping import clean
from benchmarks import number_ranges as ranges
from benchmarks.k_passages.k_passages_build import MOST_CALLS, Examples, build_design, design_size
from benchmarks.k_passages.k_passages_design import PassageDesign
from benchmarks.untrusted.typed_paths import typed_path


@dataclass(frozen=True, slots=True, kw_only=True)
class PassagesArguments(DesignArguments):
    """The options of ``rashomon passages``; ``levels`` are those of each factor as typed, None for the default."""

    levels: Mapping[str, str | None]


def passages(workspace: Workspace, name: str, arguments: PassagesArguments) -> None:
    """Print the size of a design over the build ``name``, then build it. Raises SpecError for a design that does not fit."""
    design = PassageDesign.parse(arguments.levels)
    ranges.LIMIT.check("--limit", arguments.limit)
    base = find_build(workspace, name)
    examples = Examples(base)
    size = design_size(examples, design, arguments.limit)
    sentence = f"{size.examples:,} examples in {size.cells:,} settings: {size.calls:,} calls of a model for each run."
    if not announce("passages", size, sentence, arguments, MOST_CALLS, " or a --limit"):
        return
    out = typed_path(arguments.out or workspace.build_folder("k-passages"))
    refuse_base(base, out)
    seed, limit, replace = arguments.seed, arguments.limit, arguments.replace
    with disk_errors(out), counter(size.examples, "examples") as progress:
        built = build_design(base, examples, design, out, seed=seed, limit=limit, replace=replace, progress=progress)
    if arguments.as_json:
        print_json("passages", built_benchmark(workspace, built))
        return
    facts = built.manifest
    left_out, used = facts["examples"]["left out"], facts["examples"]["used"]
    print(
        f"built {clean(str(built.path))}: {facts['calls']:,} instances, {facts['media']:,} media"
        + f"; left out: {left_out:,} of {left_out + used:,} examples, see skipped.jsonl" * bool(left_out)
    )
    print(f"  digest: {built.digest}")
    data = f" --data {shell_quote(str(built.path))}" if arguments.out else ""
    print(f"run it with `{clean(f'{workspace.command()} --batch --benchmark k-passages{data} --model MODEL')}`.")
