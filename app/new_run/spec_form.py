"""The form of a spec: validation of its fields, and the spec as a command line and as a file."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import tomli_w

from app.engine.run_plan import CheckedSpec, check_spec, plan_run, without_none
from app.engine.runs_to_resume import command_runs
from app.run_spec import SECTIONS, BatchSpec, validation_problems, with_overrides
from app.store.workspace import Workspace
from app.text.shell_quoting import shell_quote
from benchmarks.errors import SpecError
from benchmarks.number_ranges import TYPED
from benchmarks.untrusted.safe_files import check_file, open_write, replace_file
from benchmarks.untrusted.typed_paths import typed_path


def read_form(typed: Mapping[str, Any]) -> tuple[BatchSpec | None, dict[str, str]]:
    """Return the spec of a form, or None if a field is wrong, and an error sentence for each wrong field.

    ``typed`` maps the keys of a spec and of its sections to what was typed or chosen: text, lists of names, and a mapping for
    ``strata``. Empty fields are unset. Neither data nor models are checked.
    """
    fields = {key: value.strip() if isinstance(value, str) else value for key, value in typed.items()}
    fields = {key: value for key, value in fields.items() if _is_set(value)}
    errors: dict[str, str] = {}
    if "data" in fields:
        try:
            fields["data"] = str(typed_path(fields["data"]))
        except SpecError as error:
            errors["data"] = str(error)
    values = with_overrides(
        {}, {key: list(value) if isinstance(value, tuple) else value for key, value in fields.items()}
    )
    for key, problem in validation_problems(BatchSpec, values).items():
        errors.setdefault(_field(key), f"{problem}.")
    if errors:
        return None, errors
    spec = BatchSpec.model_validate(values, context=TYPED)
    for key, sentence in spec.mismatches():
        errors.setdefault(key, sentence)
    try:
        spec.api.remote_options(None)
    except SpecError as error:
        errors["cost_ceiling"] = str(error)
    return (None if errors else spec), errors


def _is_set(value: Any) -> bool:
    """Return whether a field is set; 0 is a value."""
    return value is not None and value is not False and value not in ("", [], (), {})


def _field(key: str) -> str:
    section, _, rest = key.partition(".")
    return rest.partition(".")[0] if section in SECTIONS and rest else section


def check_runs(workspace: Workspace, spec: BatchSpec) -> list[CheckedSpec]:
    """Check the runs of a spec as ``rashomon --batch --dry-run`` does. Raises the same RashomonErrors.

    This reads the build and, the first time, the model's weights, so call it from a thread.
    """
    return [check_spec(workspace, run) for run in command_runs(workspace, spec)]


def prepare_job(workspace: Workspace, spec: BatchSpec) -> tuple[Path, list[Path]]:
    """Plan the runs of a spec and write it to a file for a new process; return the file and the runs' folders.

    Raises a RashomonError if a run cannot be planned; then none is.
    """
    checked = check_runs(workspace, spec)
    plans = [plan_run(workspace, run) for run in checked]
    file = workspace.path / "jobs" / f"{plans[0].name}.toml"
    save_spec(spec, file, replace=True)
    return file, [run.folder for run in plans]


# --- the spec in other forms ----------------------------------------------------------------------------


def command_line(workspace: Workspace, spec: BatchSpec) -> str:
    """Return the command that runs ``spec``, quoted for a shell. ``rashomon --batch`` reads the same spec from it.

    Raises SpecError for a value that no command line can hold.
    """
    return " ".join(map(shell_quote, (*_program(workspace), "--batch", *_options(spec))))


def _program(workspace: Workspace) -> list[str]:
    default = Workspace.find().path == workspace.path
    return ["rashomon"] if default else ["rashomon", "--workspace", str(workspace.path)]


def _options(spec: BatchSpec) -> Iterator[str]:
    values = spec.model_dump(mode="json", exclude_unset=True)
    flat = {**values, **{key: value for name in SECTIONS for key, value in values.get(name, {}).items()}}
    for key, value in flat.items():
        option = f"--{key.replace('_', '-')}"
        if key == "prompt":
            raise SpecError("a command line cannot hold the content of a prompt set; save the spec as a file.")
        if key in SECTIONS or not _is_set(value):
            continue
        if value is True:
            yield option
        elif key == "strata":
            for name, choice in value.items():
                if "=" in name:
                    raise SpecError(f"a command line cannot hold the stratum {name!r}; save the spec as a file.")
                yield from _option(option, f"{name}={','.join(map(_escaped, choice))}")
        elif key == "conditions":
            yield from _option(option, ",".join(map(_escaped, value)))
        else:
            for item in value if isinstance(value, list) else [value]:
                yield from _option(option, str(item))


def _option(option: str, value: str) -> Iterator[str]:
    try:
        possible = b"\0" not in os.fsencode(value)
    except UnicodeEncodeError:
        possible = False
    if not possible:
        raise SpecError(
            f"a command line cannot hold the value of {option}, because it contains a NUL or half of a surrogate pair; change it."
        )
    if value.startswith("-"):
        yield f"{option}={value}"
    else:
        yield option
        yield value


def _escaped(word: str) -> str:
    """Escape a word for a comma-separated list; see :func:`app.cli.cli_options.split_commas`."""
    core = word.strip()
    if not core:
        return "".join(f"\\{character}" for character in word)
    head, tail = word.split(core, 1)
    around = ("".join(f"\\{character}" for character in end) for end in (head, tail))
    return re.sub(r"([\\,])", r"\\\1", core).join(around)


def to_toml(spec: BatchSpec) -> str:
    """Return ``spec`` as TOML that ``rashomon --batch`` reads back equal. Raises SpecError for text that is not valid Unicode."""
    text = tomli_w.dumps(without_none(spec.model_dump(mode="json", exclude_unset=True)))
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise SpecError("the spec contains half of a surrogate pair, which a file cannot hold; remove it.") from error
    return text


def save_spec(spec: BatchSpec, path: Path, *, replace: bool = False) -> None:
    """Write ``spec`` to the file ``path``. Raises SpecError if it cannot be written, or exists and ``replace`` is False."""
    text = to_toml(spec)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if replace:
            check_file(path.parent, path.name, write=True)
            replace_file(path.parent, path.name, text.encode("utf-8"))
        else:
            with open_write(path.parent, path.name, new=True) as stream:
                stream.write(text.encode("utf-8"))
    except FileExistsError as error:
        raise SpecError(f"{path} exists already; name another file.") from error
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not a valid file name"
        raise SpecError(f"cannot write {path}: {reason}; name another file.") from error
