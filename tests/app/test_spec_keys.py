"""Keys of a spec: what is made of their declarations."""

from __future__ import annotations

import click

from app.cli.run_commands import batch
from app.key_declarations import keys_of
from app.run_spec import SECTIONS, BatchSpec, RunSpec
from app.spec_keys import SECTION_KEYS, spec_keys
from docs.write_spec_keys import PAGE, table, with_table

RUN = {"benchmark": "cmc-bench", "model": "policy:random", "prompt_set": "paper"}


def test_every_key_of_a_spec_is_declared() -> None:
    fields = dict.fromkeys(BatchSpec.model_fields, "") | {
        key: section for section, model in SECTIONS.items() for key in model.model_fields
    }
    undeclared = {"prompt", *SECTIONS}
    assert {name: key.section for name, key in spec_keys().items()} == {
        name: section for name, section in fields.items() if name not in undeclared
    }
    assert [*RunSpec.model_fields] == [
        *("benchmark", "model", "prompt_set", "prompt", "data"),
        *[name for name in BatchSpec.model_fields if name not in ("workers", "adapter", *RUN, "prompt", "data")],
    ]


def test_every_key_with_a_help_is_an_option() -> None:
    options = {item.name: item for item in batch.params if isinstance(item, click.Option)}
    helps = {name: key.key.help for name, key in spec_keys().items() if key.key.help}
    assert {name: options[name].help for name in helps} == helps


def test_sections_have_the_keys_of_their_classes() -> None:
    for section, model in SECTIONS.items():
        assert [*model.model_fields] == [*keys_of(SECTION_KEYS[section])]


def test_a_newer_key_is_left_out_where_it_has_its_default() -> None:
    newer = {name for name, key in spec_keys().items() if key.key.newer}
    assert {"protocol", "fresh", "repeats", "undecided_by"} < newer
    plain = RunSpec.model_validate(RUN)
    for values in (plain.model_dump(), plain.model_dump(mode="json")):
        assert not newer & values.keys()
        assert {"exact", "limit", "data", "restarts"} < values.keys()
    changed = plain.model_copy(update={"repeats": 2, "fresh": True, "limit": 1})
    assert {"repeats": 2, "fresh": True}.items() <= changed.model_dump(mode="json").items()


def test_the_documentation_has_the_table() -> None:
    page = PAGE.read_text("utf-8")
    assert table() in page
    assert with_table(page) == page, "run `.venv/bin/python docs/write_spec_keys.py`"
