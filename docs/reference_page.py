"""The page "API reference": every name of the package ``rashomon``, from its signature and docstring."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from typing import Any

import rashomon
from rashomon.starting import BatchOptions

_INTRODUCTION = """# API reference

Every name of `import rashomon`; [Python API](api.md) shows them in use. This page is generated from the code.
"""


_CONSTRUCTED = ("Estimate", "Verdict", "Record", "Workspace")
"""The classes of which users make objects; of others they get them."""


_LONGEST = 90
"""The most characters of a signature in one line."""


class _Plain(str):
    """An annotation that a signature prints without quotation marks."""

    __slots__ = ()
    __repr__ = str.__str__


def reference() -> str:
    """Return the page as Markdown."""
    lines = [_INTRODUCTION]
    members = [(name, getattr(rashomon, name)) for name in rashomon.__all__]
    for name, member in sorted(members, key=lambda pair: (inspect.isclass(pair[1]), pair[0].lower())):
        lines += _class(name, member) if inspect.isclass(member) else _function(f"rashomon.{name}", member, "##")
    lines += ["## Options of `Workspace.start`", "", *_options(), ""]
    return "\n".join(lines)


def _class(name: str, kind: type) -> Iterator[str]:
    yield f"## `rashomon.{name}`"
    yield ""
    if name in _CONSTRUCTED:
        yield from _code(f"{name}{_signature(kind)}")
    yield _markdown(inspect.getdoc(kind) or "")
    yield ""
    if issubclass(kind, rashomon.Benchmark):
        yield "Its methods and attributes are in `benchmarks/base.py`."
        yield ""
        return
    for member_name, member in _members(kind):
        if not inspect.isfunction(member):
            yield f"### `{name}.{member_name}`"
            yield ""
            yield _markdown(inspect.getdoc(member) or "")
            yield ""
        else:
            yield from _function(f"{name}.{member_name}", member, "###")


def _members(kind: type) -> Iterator[tuple[str, Any]]:
    """Yield the public members that a class of this project defines or inherits from another, with a docstring of their own."""
    seen = set()
    for base in kind.__mro__:
        if base.__module__.partition(".")[0] not in ("rashomon", "judges", "benchmarks"):
            continue
        for name, member in vars(base).items():
            member = member.__func__ if isinstance(member, classmethod | staticmethod) else member
            described = isinstance(member, property) or inspect.isfunction(member) or hasattr(member, "func")
            if not name.startswith("_") and described and inspect.getdoc(member) and name not in seen:
                seen.add(name)
                yield name, getattr(kind, name) if inspect.isfunction(member) else member


def _function(name: str, function: Any, level: str) -> Iterator[str]:
    yield f"{level} `{name}`"
    yield ""
    yield from _code(f"{name.rpartition('.')[2]}{_signature(function)}")
    yield _markdown(inspect.getdoc(function) or "")
    yield ""


def _options() -> Iterator[str]:
    for name, annotation in sorted(inspect.get_annotations(BatchOptions).items()):
        yield f"- `{name}: {getattr(annotation, '__forward_arg__', annotation)}`"


def _signature(member: Any) -> str:
    signature = inspect.signature(member)
    parameters = [
        parameter.replace(annotation=_Plain(parameter.annotation))
        for name, parameter in signature.parameters.items()
        if name != "self"
    ]
    result = inspect.Signature.empty if inspect.isclass(member) else _Plain(signature.return_annotation)
    signature = signature.replace(parameters=parameters, return_annotation=result)
    if len(text := str(signature)) <= _LONGEST:
        return text
    first, last = str(signature.replace(parameters=())).split("()")
    return "\n".join([f"{first}(", *(f"    {parameter}," for parameter in parameters), f"){last}"])


def _code(text: str) -> tuple[str, ...]:
    return "```python", text, "```", ""


def _markdown(docstring: str) -> str:
    """Return a docstring as Markdown: its code spans, its references, and its sections as lists."""
    text = re.sub(r":\w+:`(?:[a-z_]+\.)*([^`]*)`", r"`\1`", docstring)
    text = text.replace("``", "`")
    text = re.sub(r"^(Attributes|Raises|Args|Returns):\n", r"\n**\1**\n\n", text, flags=re.MULTILINE)
    return re.sub(r"^ {4}(\w+): ", r"- `\1`: ", text, flags=re.MULTILINE)
