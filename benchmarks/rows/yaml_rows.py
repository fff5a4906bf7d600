"""Reader of promptfoo's YAML: a list of tests, or a configuration with one. Its contents may be hostile."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.errors import SourceError
from benchmarks.rows.reader_types import open_source

LARGEST_YAML = 8 * 1024 * 1024
"""The maximum size of a file, in bytes; all of it is held in memory."""

_DEEPEST = 100
"""The maximum depth of lists and objects; the loader is recursive and would end the process."""


def yaml_rows(file: Path, name: str) -> Iterator[tuple[int, Any]]:
    """Yield the tests of a file, numbered from 1. Raises SourceError, whose message calls the file ``name``.

    Every scalar is a text, as it is written. References of YAML (``&a`` and ``*a``) are refused: they multiply without limit.
    """
    import yaml

    with open_source(file) as stream:
        data = stream.read(LARGEST_YAML + 1)
    if len(data) > LARGEST_YAML:
        raise SourceError(f"{name} is larger than {LARGEST_YAML // 1024**2} MiB; save its tests as JSON Lines.")

    class Loader(getattr(yaml, "CBaseLoader", yaml.BaseLoader)):  # type: ignore[misc]
        """The loader, which would otherwise keep the last of two equal keys."""

        def construct_mapping(self, node: Any, deep: bool = False) -> Any:
            keys = Counter(str(key.value).strip().lower() for key, _ in node.value)
            if repeated := next((key for key, count in keys.items() if count > 1), ""):
                line = node.start_mark.line + 1
                raise SourceError(f"{name} has the key {repeated[:60]!r} twice, behind line {line}; write it once.")
            return super().construct_mapping(node, deep)

    try:
        depth = 0
        for event in yaml.parse(data, Loader=Loader):
            if isinstance(event, yaml.AliasEvent):
                raise SourceError(f"{name} refers to parts of itself (*name); write them out, or save it as JSON.")
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if depth > _DEEPEST:
                raise SourceError(f"{name} nests more than {_DEEPEST} lists or objects; write it flatter.")
        value = yaml.load(data, Loader=Loader)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        line = f" in line {mark.line + 1}" if mark is not None else ""
        raise SourceError(f"{name} is no YAML{line}; correct it, or save it as JSON.") from error
    tests = value.get("tests") if isinstance(value, dict) else value
    if not isinstance(tests, list):
        raise SourceError(f"{name} has no list of tests; name the file that holds them.")
    yield from enumerate(tests, 1)
