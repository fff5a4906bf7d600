"""Cost of a construction: over all commands for one build, whatever lies in its file."""

from __future__ import annotations

import json
from pathlib import Path

from app.commands.building.construction_cost import record_usage, usage_line
from app.json_output.builds_json import ModelUsage


def usage(**more: object) -> ModelUsage:
    values = {"model": "m", "roles": ("writer",), "replies": 3, "cached": 1, "failed": 0, "prompt_tokens": 10}
    values |= {"completion_tokens": 4, "seconds": 1.5, "cost": None}
    return ModelUsage(**values | more)  # type: ignore[arg-type]


def test_commands_add_up_and_name_every_role_once(tmp_path: Path) -> None:
    folder = tmp_path / "builds" / "contra4"
    assert record_usage((), folder) == ()
    assert not folder.parent.exists()
    assert record_usage((usage(),), folder) == (usage(),)
    both = record_usage((usage(roles=("writer", "checker"), cost=0.5), usage(model="n", seconds=None)), folder)
    assert both == (
        usage(
            roles=("writer", "checker"),
            replies=6,
            cached=2,
            prompt_tokens=20,
            completion_tokens=8,
            seconds=3.0,
            cost=0.5,
        ),
        usage(model="n", seconds=None),
    )
    cost = "20 + 8 tokens, 3.0 s of generation, 0.5000 in the currency of the prices"
    assert usage_line(both[0]) == f"m (writer, checker): 6 calls (2 from the cache), {cost}"


def test_a_file_that_is_none_is_begun_anew(tmp_path: Path) -> None:
    file = tmp_path / "b-usage.json"
    for text in ("", "[1]", '[{"model": "m"}]', '{"model": 3}', "[" * 100_000):
        file.write_text(text, "utf-8")
        assert record_usage((usage(),), tmp_path / "b") == (usage(),)
        assert json.loads(file.read_text("utf-8"))[0]["replies"] == 3
