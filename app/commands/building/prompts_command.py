"""``rashomon prompts``: prompt sets for any benchmark, checked and previewed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from app.engine.instance_streams import BuildInstances
from app.engine.run_plan import open_build
from app.json_output.catalog_json import PromptMessage, PromptPreview, PromptSetEntry
from app.json_output.json_envelope import print_json
from app.new_run.prompt_files import prompt_choices
from app.report.runs.portable_facts import portable_message, portable_path
from app.run_spec import BatchSpec
from app.store.workspace import Workspace
from app.text.text_escaping import clean
from benchmarks.prompt_template import SHIPPED, SUFFIX, PromptTemplate, find_template, shipped_templates
from benchmarks.registry import get_benchmark
from benchmarks.untrusted.typed_paths import typed_path
from benchmarks.vocabulary import Media, Part

_ANY_MODEL = "policy:random"


def prompts(workspace: Workspace, name: str | None, *, benchmark: str | None, data: Path | None, as_json: bool) -> None:
    """List the prompt sets; or print the one called ``name``, or with a ``benchmark``, its prompts of the first example."""
    if name is None:
        _print_list(workspace, benchmark, as_json=as_json)
        return
    path = str(typed_path(name)) if name.endswith(SUFFIX) else name
    if benchmark is None:
        template = find_template(path, {})
        if as_json:
            print_json("prompts", _entry(template.name, template))
        elif name in shipped_templates():
            print((SHIPPED / f"{name}{SUFFIX}").read_text("utf-8"), end="")
        else:
            print(f"{template.name}: {clean(template.description)}\ndigest {template.digest}")
        return
    values = {"benchmark": benchmark, "model": [_ANY_MODEL], "prompt_set": [path]}
    (run,) = BatchSpec.model_validate({**values, **({"data": str(typed_path(data))} if data else {})}).runs()
    about = get_benchmark(benchmark)
    build = open_build(workspace, run)
    group, shown = "", dict[str, tuple[PromptMessage, ...]]()
    for instance in BuildInstances(about, build, run.prompts):
        group = group or instance.group
        if instance.group != group:
            break
        request = run.to_protocol().next(instance, ())
        if request is not None and instance.condition not in shown:
            shown[instance.condition] = tuple(
                PromptMessage(role=message.role, text="".join(map(_shown, message.parts)))
                for message in request.messages
            )
    if as_json:
        name = portable_path(Path(path), workspace.path) if path.endswith(SUFFIX) else path
        print_json("prompts", PromptPreview(prompt_set=name, digest=_digest(run.prompts), prompts=shown))
        return
    print(f"{run.prompt_set}  digest {_digest(run.prompts)}")
    for condition, messages in shown.items():
        print(f"\n--- {condition}")
        for message in messages:
            print(f"[{message.role}] {clean(message.text, newlines=True)}")


def _print_list(workspace: Workspace, benchmark: str | None, *, as_json: bool) -> None:
    templates: Iterator[tuple[str, PromptTemplate | None, str]]
    if benchmark is None:
        templates = ((name, template, "") for name, template in shipped_templates().items())
    else:
        choices = prompt_choices(get_benchmark(benchmark), workspace)
        templates = ((choice.spec_name, choice.template, choice.problem) for choice in choices)
    entries = [(name, template, problem) for name, template, problem in templates]
    if as_json:
        listed = [
            _entry(portable_path(Path(name), workspace.path) if name.endswith(SUFFIX) else name, template, problem)
            for name, template, problem in entries
        ]
        print_json(
            "prompts", [replace(entry, problem=portable_message(entry.problem, workspace.path)) for entry in listed]
        )
        return
    for name, template, problem in entries:
        print(f"{clean(name)}  {clean(problem if template is None else template.description)}")
        if template is not None and template.rationale:
            print(f"    {clean(template.rationale)}")


def _entry(name: str, template: PromptTemplate | None, problem: str = "") -> PromptSetEntry:
    if template is None:
        return PromptSetEntry(name=name, problem=problem)
    return PromptSetEntry(
        name=name,
        problem=problem,
        digest=template.digest,
        description=template.description,
        rationale=template.rationale,
        system=template.system,
        user=template.user,
        alone=template.alone,
    )


def _digest(prompts: str | PromptTemplate) -> str | None:
    return prompts.digest if isinstance(prompts, PromptTemplate) else None


def _shown(part: Part) -> str:
    return f"<{part.modality}>" if isinstance(part, Media) else part.text
