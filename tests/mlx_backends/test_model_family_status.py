"""Status of a model's family: what the matrix proves, what this machine has tried, and what answers no prompt."""

from __future__ import annotations

import ast
import json
import re
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

import pytest

from benchmarks.errors import ModelError
from mlx_backends import model_family_status as module
from mlx_backends.engine_registry import describe
from mlx_backends.model_family_status import PROVEN, PROVEN_WITH, family_status
from mlx_backends.models.model_types import WITHOUT_ANSWERS, type_problem
from mlx_backends.stored_checks import StoredChecks
from tests.support.command import Rashomon
from tests.support.tiny_models import FAMILIES

INFO = {"engine": "mlx-vlm", "model": "org/new", "weights": "w", "versions": {"mlx-vlm": version("mlx-vlm")}}


def test_what_is_declared_proven_is_the_matrix_at_the_constrained_versions() -> None:
    assert frozenset(FAMILIES) == PROVEN
    constraints = (Path(__file__).parents[2] / "constraints.txt").read_text("utf-8")
    constrained = dict(re.findall(r"^([\w.-]+)==([\w.]+)", constraints, re.MULTILINE))
    assert {library: constrained[library] for library in PROVEN_WITH} == dict(PROVEN_WITH)


def test_a_proven_family_names_its_versions_and_others_that_are_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    status = family_status({"model_type": "llava_qwen2"}, "org/fast")  # mlx-vlm's other name
    assert (status.family, status.status, status.remark) == ("fastvlm", "proven", "")
    monkeypatch.setattr(module, "PROVEN_WITH", {"mlx-vlm": "0.0.1"})
    later = family_status({"model_type": "qwen3_vl"}, "org/later")
    assert later.status == "proven"
    assert "0.0.1" in later.remark
    assert version("mlx-vlm") in later.remark


def test_a_family_is_tried_once_a_check_of_the_model_is_stored_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    config = {"model_type": "idefics2"}
    assert family_status(config, "org/new").status == "never tried"
    StoredChecks(INFO | {"versions": {"mlx-vlm": "0.0.1"}}).save("sight", {}, {})
    assert family_status(config, "org/new").status == "never tried", "an earlier version was tried"
    StoredChecks(INFO).save("sight", {}, {})
    assert family_status(config, "org/new").status == "tried"
    assert family_status(config, "org/another").status == "never tried"
    assert family_status(config, "org/new").remark


@pytest.mark.parametrize("kind", [None, 7, "", "x" * 10_000, "[red]x[/]"])
def test_a_hostile_type_is_bounded(kind: object) -> None:
    status = family_status({"model_type": kind}, "org/new")
    assert status.status == "never tried"
    assert len(status.remark) < 400


@pytest.mark.parametrize("kind", sorted(WITHOUT_ANSWERS))
def test_a_type_that_answers_no_prompt_is_one_of_mlx_vlm_and_is_refused(kind: str) -> None:
    package = find_spec("mlx_vlm")
    assert package is not None
    assert package.origin is not None
    assert (Path(package.origin).parent / "models" / kind / "__init__.py").is_file()
    assert type_problem({"model_type": kind}) is not None


def test_every_type_of_mlx_vlm_without_a_model_is_refused() -> None:
    """A drawing pipeline, or a folder of parts, exports no ``Model``."""
    package = find_spec("mlx_vlm")
    assert package is not None
    assert package.origin is not None
    for file in (Path(package.origin).parent / "models").glob("*/__init__.py"):
        names = {
            alias.name for node in ast.walk(ast.parse(file.read_text("utf-8"))) for alias in getattr(node, "names", ())
        }
        if "Model" not in names and "*" not in names:
            assert type_problem({"model_type": file.parent.name}) is not None, file.parent.name


@pytest.mark.parametrize(
    ("kind", "has_vision"), [("sam3", True), ("rfdetr", True), ("bert", False), ("qwen_image", True)]
)
def test_a_dry_run_refuses_it(kind: str, has_vision: bool, tmp_path: Path) -> None:
    folder = tmp_path / kind
    folder.mkdir()
    vision = {"vision_config": {"hidden_size": 8}} if has_vision else {}
    (folder / "config.json").write_text(json.dumps({"model_type": kind, **vision}))
    for name in ("tokenizer.json", "preprocessor_config.json"):
        (folder / name).write_text("{}")
    header = b"{}      "
    (folder / "model.safetensors").write_bytes(len(header).to_bytes(8, "little") + header)
    with pytest.raises(ModelError):
        describe(str(folder))
    rashomon = Rashomon(tmp_path)
    rashomon.run("--batch", "--benchmark", "cmc-bench", "--model", str(folder), "--dry-run", code=2)
