"""The second names of the packages, ``rashomon.*``, and other packages that took one of the first."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import rashomon
from tests.support.command import ROOT


@pytest.mark.parametrize(
    "name",
    ["app", "app.store.run_store", "benchmarks.cmc_bench", "benchmarks.vocabulary", "judges.base", "mlx_backends"],
)
def test_both_names_are_one_module(name: str) -> None:
    module = import_module(f"rashomon.{name}")
    assert module is import_module(name)
    assert module.__name__ == name
    assert module.__spec__ is not None
    assert module.__spec__.name == name


def test_statements_of_every_form_import_the_same_classes() -> None:
    # Only a wheel has stubs of the second names.
    import benchmarks.vocabulary as first
    import rashomon.benchmarks.vocabulary as second  # type: ignore[import-not-found,unused-ignore]
    from rashomon.benchmarks import vocabulary as third  # type: ignore[import-not-found,unused-ignore]
    from rashomon.benchmarks.vocabulary import Table  # type: ignore[import-not-found,unused-ignore]

    assert first is second is third
    assert Table is first.Table


def test_a_module_that_is_not_there_is_not_found() -> None:
    with pytest.raises(ModuleNotFoundError):
        import_module("rashomon.benchmarks.nothing")
    with pytest.raises(ModuleNotFoundError):
        import_module("rashomon.nothing")
    assert isinstance(rashomon.CollisionError("x"), ImportError)


def run(code: str, first: Path) -> subprocess.CompletedProcess[str]:
    """Run Python where packages in ``first`` come before Rashomon's."""
    return subprocess.run(
        [sys.executable, "-P", *code.split()] if code.startswith("-m") else [sys.executable, "-P", "-c", code],
        env={"PYTHONPATH": f"{first}:{ROOT}", "HOME": str(first)},
        cwd=first,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def other(tmp_path: Path) -> Path:
    """A folder with another package called ``app``."""
    (tmp_path / "app").mkdir()
    (tmp_path / "app" / "__init__.py").write_text("print('the other app')\n")
    (tmp_path / "app" / "main.py").write_text("def main(): print('the other main')\n")
    return tmp_path


def test_the_command_beside_another_app_says_so_and_ends_with_code_2(other: Path) -> None:
    result = run("-m rashomon --version", other)
    assert result.returncode == 2
    assert result.stdout == ""
    assert str(other / "app") in result.stderr
    assert result.stderr.count("\n") == 1


def test_scripts_beside_another_app_use_the_packages_that_do_not_need_it(other: Path) -> None:
    script = """
import rashomon.benchmarks.registry, rashomon.judges.judge_registry
print(len(rashomon.benchmarks.registry.benchmark_names()) > 5)
try:
    import rashomon.app.store.run_store
except rashomon.CollisionError:
    print("refused")
import app
"""
    result = run(script, other)
    assert (result.stdout, result.stderr) == ("True\nrefused\nthe other app\n", "")


def test_another_app_that_is_imported_already_is_noticed(other: Path) -> None:
    script = f"import sys, app\nsys.path.remove({str(other)!r})\nimport rashomon\nimport rashomon.app"
    assert "CollisionError" in run(script, other).stderr


def test_an_app_without_init_file_does_no_harm(tmp_path: Path) -> None:
    (tmp_path / "app").mkdir()
    (tmp_path / "app" / "main.py").write_text("def main(): print('the other main')\n")
    result = run("-m rashomon --version", tmp_path)
    assert result.returncode == 0
    assert result.stdout.startswith("rashomon ")
