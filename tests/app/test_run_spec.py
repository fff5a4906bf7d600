"""Values of a spec: what is refused, wherever it comes from, and what stored specs may have."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from app.cli import cli, run_cli
from app.cli.cli_options import Number
from app.engine.training.training_spec_and_recipes import TrainingSpec, training_spec
from app.new_run.spec_form import read_form
from app.run_spec import SECTIONS, BatchSpec, RunSpec, load_spec, parse, parse_stored
from benchmarks.errors import SpecError
from benchmarks.number_ranges import NumberRange

VALID = {"benchmark": "cmc-bench", "model": ["policy:random"]}
NUMBERS = ("nan", "inf", "-inf", "-1", "1" + "0" * 30, "true", '"8"')
"""Values in TOML that no key for a number takes."""


def number_range(field: FieldInfo) -> NumberRange | None:
    """The range of a field that is a number; None for another field."""
    union = getattr(field.annotation, "__args__", ())
    metadata = [*field.metadata, *(item for kind in union for item in getattr(kind, "__metadata__", ()))]
    return next((item for item in metadata if isinstance(item, NumberRange)), None)


def is_number(field: FieldInfo) -> bool:
    words = str(field.annotation)
    return "tuple" not in words and any(kind in words for kind in ("int", "float"))


MODELS: dict[str, type[BaseModel]] = {"": BatchSpec, **SECTIONS}
SPEC_NUMBERS = [
    (section, key, number_range(field))
    for section, model in MODELS.items()
    for key, field in model.model_fields.items()
    if is_number(field)
]
TRAINING_NUMBERS = [key for key, field in TrainingSpec.model_fields.items() if is_number(field)]


def test_every_number_has_a_range() -> None:
    assert {key for _, key, _ in SPEC_NUMBERS} >= {"limit", "seed", "max_tokens", "timeout", "kv_bits", "samples"}
    assert not [key for _, key, of in SPEC_NUMBERS if of is None]
    assert not [key for key in TRAINING_NUMBERS if number_range(TrainingSpec.model_fields[key]) is None]
    assert {"rank", "epochs", "save_every", "dropout"} <= set(TRAINING_NUMBERS)


@pytest.mark.parametrize(("section", "key", "of"), SPEC_NUMBERS)
def test_a_spec_file_refuses_numbers_out_of_range(section: str, key: str, of: NumberRange, tmp_path: Path) -> None:
    file = tmp_path / "spec.toml"
    values = [*NUMBERS, *["0"] * (not of.holds(0)), *["2.0", "8.5"] * of.whole]
    for value in values:
        file.write_text(
            'benchmark = "cmc-bench"\nmodel = "policy:random"\n'
            + f"[{section}]\n" * bool(section)
            + f"{key} = {value}\n"
        )
        with pytest.raises(SpecError) as caught:
            load_spec(file, {})
        assert f"{key} = " in str(caught.value), value
        assert str(of) in str(caught.value), value
        assert str(of) in read_form({**VALID, key: value})[1][key]


@pytest.mark.parametrize(
    ("line", "key"),
    [
        ('exact = "yes"', "exact"),
        ("exact = 1", "exact"),
        ("limit = [1]", "limit"),
        ("limit = 1979-05-27", "limit"),
        ("name = 5", "name"),
        ("data = true", "data"),
        ("judge = 5", "judge"),
        ("conditions = [1]", "conditions"),
        ('strata = "x"', "strata"),
        ("strata = {type = 5}", "strata.type"),
        ("score = true", "score"),
        ("protocol = 1", "protocol"),
        ("workers = 1", "workers"),
        ('decoding = "greedy"', "decoding"),
        ("api = []", "api"),
        ('prompt = "x"', "prompt"),
    ],
)
def test_a_spec_file_refuses_values_of_another_type(line: str, key: str, tmp_path: Path) -> None:
    file = tmp_path / "spec.toml"
    file.write_text(f'benchmark = "cmc-bench"\nmodel = "policy:random"\n{line}\n')
    with pytest.raises(SpecError) as caught:
        load_spec(file, {})
    assert f"{key} = " in str(caught.value) or f"{key}." in str(caught.value)


@pytest.mark.parametrize("key", [*TRAINING_NUMBERS, "rates"])
def test_a_training_refuses_numbers_out_of_range(key: str) -> None:
    for value in (float("nan"), float("inf"), -1, 10**30, True, "8"):
        with pytest.raises(SpecError, match=f"{key} = "):
            training_spec({"model": "m", "data": ".", key: value})
    with pytest.raises(SpecError, match="skip_unusable"):
        training_spec({"model": "m", "data": ".", "skip_unusable": "yes"})


def test_whole_numbers_are_numbers_too() -> None:
    spec = parse(BatchSpec, {**VALID, "decoding": {"temperature": 1, "top_p": 1}}, "here")
    assert repr(spec.decoding.temperature) == "1.0"
    assert read_form({**VALID, "limit": " 5 ", "temperature": "1"})[0] is not None


def commands(group: click.Group) -> Iterator[tuple[list[str], click.Command]]:
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            yield from (([name, *names], inner) for names, inner in commands(command))
        yield [name], command


OPTIONS = [
    pytest.param(names, option, id=f"{'-'.join(names)} {option.name}")
    for names, command in commands(cli)
    for option in command.params
    if isinstance(option.type, Number | click.types.IntParamType | click.types.FloatParamType)
]


@pytest.mark.parametrize(("names", "option"), OPTIONS)
def test_every_option_that_is_a_number_has_a_range(names: list[str], option: click.Option, tmp_path: Path) -> None:
    for value in ("nan", "inf", "-1", "1" + "0" * 30, "9" * 5000, "x", ""):
        with pytest.raises(SpecError, match=option.opts[0]) as caught:
            run_cli(["--workspace", str(tmp_path), *names, f"{option.opts[0]}={value}"])
        assert caught.value.exit_code == 2
        assert len(str(caught.value)) < 400


def test_a_spec_that_an_earlier_release_stored_can_be_read() -> None:
    (spec,) = parse(BatchSpec, VALID, "here").runs()
    old = spec.model_dump(mode="json")
    old |= {"limit": 10**10, "seed": -3}
    old["decoding"] |= {"max_tokens": 600_000_000, "max_pixels": 10**12}
    old["api"] |= {"token_ceiling": 10**18, "cost_ceiling": 1e12}
    stored = parse_stored(RunSpec, old, "the run")
    assert stored.model_dump(mode="json") == old
    with pytest.raises(SpecError):
        parse(RunSpec, old, "the command line")
    training = training_spec({"model": "m", "data": "."}).model_dump(mode="json")
    assert parse_stored(TrainingSpec, {**training, "max_length": 10**9, "alpha": 1e9}, "x").max_length == 10**9


@pytest.mark.parametrize("name", ["Café", "ночь", "夜"])
def test_a_name_of_other_letters_is_refused_with_those_that_it_may_have(name: str) -> None:
    with pytest.raises(SpecError, match="use letters from a to z, digits"):
        parse(BatchSpec, {"benchmark": "cmc-bench", "model": ["policy:uniform"], "name": name}, "here")
