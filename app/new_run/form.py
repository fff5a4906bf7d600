"""A spec as it is typed into a form: what is wrong with each field, and the spec as a command line and as a file."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import tomli_w

from app.engine.plan import CheckedSpec, check, plan, without_none
from app.run_spec import SECTIONS, BatchSpec, problems, with_said
from app.store.workspace import Workspace
from app.system.paths import typed_path
from app.text.escape import clean
from benchmarks.errors import SpecError
from benchmarks.untrusted.safe_files import check_file, open_write, replace_file


def read(typed: Mapping[str, Any]) -> tuple[BatchSpec | None, dict[str, str]]:
    """The spec of a form, None while anything is wrong, and what is wrong with each field in a sentence.

    ``typed`` maps the keys of a spec, those of its sections beside the others, to what was typed or chosen: text, lists of
    words, a mapping for ``strata``. What is empty is not said. Nothing but this is looked at: neither data nor models.
    """
    said = {key: value.strip() if isinstance(value, str) else value for key, value in typed.items()}
    said = {key: value for key, value in said.items() if _says(value)}
    wrong: dict[str, str] = {}
    if "data" in said:
        try:
            said["data"] = str(typed_path(said["data"]))
        except SpecError as error:
            wrong["data"] = str(error)
    values = with_said({}, {key: list(value) if isinstance(value, tuple) else value for key, value in said.items()})
    for key, told in problems(BatchSpec, values).items():
        wrong.setdefault(_field(key), f"{told}.")
    if wrong:
        return None, wrong
    spec = BatchSpec.model_validate(values)
    for key, sentence in spec.mismatches():
        wrong.setdefault(key, sentence)
    try:
        spec.api.terms(None)
    except SpecError as error:
        wrong["cost_ceiling"] = str(error)
    return (None if wrong else spec), wrong


def _says(value: Any) -> bool:
    """Whether a value says anything: 0 does."""
    return value is not None and value is not False and value not in ("", [], (), {})


def _field(key: str) -> str:
    section, _, rest = key.partition(".")
    return rest.partition(".")[0] if section in SECTIONS and rest else section


def examine(workspace: Workspace, spec: BatchSpec) -> list[CheckedSpec]:
    """The runs of a spec, each checked as ``rashomon --batch --dry-run`` checks them. Raises a RashomonError as that does.

    It reads the build and, the first time, the model's weights: for a thread of its own.
    """
    return [check(workspace, run) for run in spec.runs()]


def begin(workspace: Workspace, spec: BatchSpec) -> tuple[Path, list[Path]]:
    """Plan the runs of a spec, and write it where a process can be started on it: the file, and the runs' folders.

    Raises a RashomonError where a run cannot be planned; then none is.
    """
    checked = examine(workspace, spec)
    planned = [plan(workspace, run) for run in checked]
    file = workspace.path / "jobs" / f"{planned[0].name}.toml"
    save(spec, file, replace=True)
    return file, [run.folder for run in planned]


# --- the spec in other forms ----------------------------------------------------------------------------


def command_line(workspace: Workspace, spec: BatchSpec) -> str:
    """The command that runs ``spec``, quoted for a shell: ``rashomon --batch`` reads from it the spec that it is of.

    Raises SpecError for what no command line can say.
    """
    return " ".join(map(quoted, (*_called(workspace), "--batch", *_options(spec))))


def _called(workspace: Workspace) -> list[str]:
    usual = Workspace.find().path == workspace.path
    return ["rashomon"] if usual else ["rashomon", "--workspace", str(workspace.path)]


def _options(spec: BatchSpec) -> Iterator[str]:
    values = spec.model_dump(mode="json", exclude_unset=True)
    flat = {**values, **{key: value for name in SECTIONS for key, value in values.get(name, {}).items()}}
    for key, value in flat.items():
        option = f"--{key.replace('_', '-')}"
        if key in SECTIONS or not _says(value):
            continue
        if value is True:
            yield option
        elif key == "strata":
            for name, chosen in value.items():
                if "=" in name:
                    raise SpecError(f"no command line can say the stratum {name!r}; save the spec as a file.")
                yield from _option(option, f"{name}={','.join(map(_escaped, chosen))}")
        elif key == "conditions":
            yield from _option(option, ",".join(map(_escaped, value)))
        else:
            for word in value if isinstance(value, list) else [value]:
                yield from _option(option, str(word))


def _option(option: str, value: str) -> Iterator[str]:
    try:
        possible = b"\0" not in os.fsencode(value)
    except UnicodeEncodeError:
        possible = False
    if not possible:
        raise SpecError(f"no command line can say the value of {option}; it holds a NUL or half a character.")
    if value.startswith("-"):
        yield f"{option}={value}"
    else:
        yield option
        yield value


def _escaped(word: str) -> str:
    """A word as it stands between commas: see ``app.cli.options``."""
    core = word.strip()
    if not core:
        return "".join(f"\\{character}" for character in word)
    head, tail = word.split(core, 1)
    around = ("".join(f"\\{character}" for character in end) for end in (head, tail))
    return re.sub(r"([\\,])", r"\\\1", core).join(around)


def quoted(word: str) -> str:
    """``word`` for bash or zsh: plain where it can be, else quoted; as ``$'...'`` where it holds what could steer a terminal."""
    if clean(word) == word:
        return shlex.quote(word)
    raw = os.fsencode(word)
    plain = (chr(byte) if 0x20 <= byte < 0x7F and chr(byte) not in "'\\" else f"\\{byte:03o}" for byte in raw)
    return f"$'{''.join(plain)}'"


def to_toml(spec: BatchSpec) -> str:
    """``spec`` as a file that ``rashomon --batch`` reads back equal. Raises SpecError for what no such file can hold."""
    text = tomli_w.dumps(without_none(spec.model_dump(mode="json", exclude_unset=True)))
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise SpecError("the spec holds characters that are no text, so that no file can hold it.") from error
    return text


def save(spec: BatchSpec, path: Path, *, replace: bool = False) -> None:
    """Write ``spec`` to the file ``path``. Raises SpecError where it is there, unless ``replace``, or cannot be written."""
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
        raise SpecError(f"{path} is there already; name another file.") from error
    except (OSError, ValueError) as error:
        told = error.strerror if isinstance(error, OSError) else "it is no file name"
        raise SpecError(f"cannot write {path}: {told}.") from error
