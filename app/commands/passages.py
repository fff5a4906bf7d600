"""``rashomon passages``: the examples of a build with 1 to 10 passages, of which one is right."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from app.annotation.review_session import find_build
from app.commands.spinner import counter
from app.commands.vary import many_calls, refuse_base
from app.store.workspace import Workspace
from app.text.escape import clean
from app.text.shell import shell_quote
from benchmarks import number_ranges as ranges
from benchmarks.errors import SpecError, StoreError, StoreFullError
from benchmarks.k_passages.build import MOST_CALLS, Examples, build_design, design_size
from benchmarks.k_passages.design import PassageDesign
from benchmarks.untrusted.safe_files import is_disk_full
from benchmarks.untrusted.typed_paths import typed_path


@dataclass(frozen=True, slots=True)
class PassagesArguments:
    """The options of ``rashomon passages``; ``levels`` are those of each factor as typed, None for the default."""

    levels: Mapping[str, str | None]
    limit: int | None = None
    seed: int = 0
    out: Path | None = None
    replace: bool = False
    dry_run: bool = False
    force: bool = False
    as_json: bool = False


def passages(workspace: Workspace, name: str, arguments: PassagesArguments) -> None:
    """Print the size of a design over the build ``name``, then build it. Raises SpecError for a design that does not fit."""
    design = PassageDesign.parse(arguments.levels)
    ranges.LIMIT.check("--limit", arguments.limit)
    base = find_build(workspace, name)
    examples = Examples(base)
    size = design_size(examples, design, arguments.limit)
    output = sys.stderr if arguments.as_json else sys.stdout
    print(
        f"{size.examples:,} examples in {size.cells:,} settings: {size.calls:,} calls of a model for each run.",
        file=output,
        flush=True,
    )
    if size.calls > MOST_CALLS and arguments.force:
        print(many_calls(size.calls), file=output, flush=True)
    elif size.calls > MOST_CALLS:
        raise SpecError(
            f"{size.calls:,} calls are more than {MOST_CALLS:,}; name fewer levels or a --limit, or add --force."
        )
    if arguments.dry_run:
        if arguments.as_json:
            print(json.dumps(asdict(size), indent=2))
        return
    out = typed_path(arguments.out or workspace.build_folder("k-passages"))
    refuse_base(base, out)
    try:
        with counter(size.examples, "examples") as progress:
            built = build_design(
                base,
                examples,
                design,
                out,
                seed=arguments.seed,
                limit=arguments.limit,
                replace=arguments.replace,
                progress=progress,
            )
    except OSError as error:
        kind = StoreFullError if is_disk_full(error) else StoreError
        raise kind(f"cannot build {out}: {error.strerror}; nothing was written. Fix that and build again.") from error
    if arguments.as_json:
        print(json.dumps({"path": str(built.path), "digest": built.digest, "manifest": built.manifest}, indent=2))
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
