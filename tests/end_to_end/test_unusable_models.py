"""Models that cannot be run: GGUF, a missing processor, a download that was not ended. Each is named with what to do."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from app.new_run.run_choices import cached_choices
from app.tui.screens.new_run_options import model_options
from mlx_backends.models.model_discovery import cached_models
from tests.support.command import Rashomon
from tests.support.demo import FOUR_BIT

CUT = b"GGUF\x03\0\0\0"
Change = Callable[[Path], object]


def in_gguf(model: Path) -> None:
    (model / "model.safetensors").unlink()
    (model / "model-Q4_K_M.gguf").write_bytes(CUT)


def remove(*patterns: str) -> Change:
    def change(model: Path) -> None:
        for pattern in patterns:
            for file in model.glob(pattern):
                file.unlink()

    return change


def linked_to_nothing(model: Path) -> None:
    (model / "model.safetensors").unlink()
    (model / "model.safetensors").symlink_to("../../blobs/" + "0" * 64)


def cut_off(model: Path) -> None:
    data = (model / "model.safetensors").read_bytes()
    (model / "model.safetensors").write_bytes(data[:100_000])


def no_snapshot(model: Path) -> None:
    repository = model.parent.parent
    shutil.rmtree(repository)
    (repository / "blobs").mkdir(parents=True)
    (repository / "blobs" / f"{'0' * 64}.incomplete").write_bytes(bytes(1000))


GGUF = "is a model in GGUF, which Rashomon does not read; fetch its version in safetensors"
REST = "`rashomon models get org/tiny` fetches the rest."
PROCESSOR = "lacks the settings of its image processor (preprocessor_config.json or processor_config.json)"
MODELS = [
    pytest.param(in_gguf, GGUF, "", id="GGUF"),
    pytest.param(remove("*processor_config.json"), PROCESSOR, REST, id="no processor"),
    pytest.param(remove("tokenizer*"), "holds no tokenizer", REST, id="no tokenizer"),
    pytest.param(remove("model.safetensors"), "holds no weights", REST, id="no weights"),
    pytest.param(remove("config.json"), "holds no config.json", REST, id="no configuration"),
    pytest.param(cut_off, "holds only 100,000 of the 3,309,656 bytes of model.safetensors", REST, id="cut off"),
    pytest.param(
        linked_to_nothing, "holds a link to model.safetensors, which is missing", REST, id="a link to nothing"
    ),
    pytest.param(no_snapshot, "has no file in use", REST, id="no snapshot"),
]


def in_cache(home: Path) -> Path:
    """A copy of the demo's model in the Hugging Face cache, as org/tiny; the folder of its files."""
    repository = home / "cache" / "huggingface" / "hub" / "models--org--tiny"
    (repository / "refs").mkdir(parents=True)
    (repository / "refs" / "main").write_text("abc")
    return Path(shutil.copytree(FOUR_BIT, repository / "snapshots" / "abc"))


@pytest.mark.parametrize(("change", "problem", "advice"), MODELS)
def test_a_cached_model_is_listed_named_and_refused(
    change: Change, problem: str, advice: str, rashomon: Rashomon, monkeypatch: pytest.MonkeyPatch
) -> None:
    change(in_cache(rashomon.home))
    for name in ("HF_HUB_CACHE", "HF_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(rashomon.home / "cache"))
    (cached,) = cached_models()
    assert cached.name == "org/tiny"
    assert cached.problem is not None
    assert cached.problem.startswith("org/tiny ")
    assert problem in cached.problem
    assert advice in cached.problem
    (option,) = model_options(cached_choices())
    assert not option.allowed
    assert cached.problem in option.detail

    done = rashomon.run("--batch", "--benchmark", "cmc-bench", "--model", "org/tiny", "--limit", "1", code=2)
    assert done.stderr == f"rashomon: {cached.problem}\n"
    assert rashomon.json("runs") == []
    (entry,) = rashomon.json("models")["cached"]
    assert (entry["name"], entry["problem"]) == ("org/tiny", cached.problem)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("cut.gguf", GGUF),
        ("missing.GGUF", GGUF),
        ("folder", GGUF),
        ("no-processor", PROCESSOR),
        ("model.safetensors", "is a file; name the model's folder."),
    ],
)
def test_a_local_model_is_refused_with_what_to_do(name: str, message: str, rashomon: Rashomon) -> None:
    home = rashomon.home
    (home / "cut.gguf").write_bytes(CUT)
    (home / "folder").mkdir()
    (home / "folder" / "model-00001-of-00002.GGUF").write_bytes(CUT)
    shutil.copytree(FOUR_BIT, home / "no-processor", ignore=shutil.ignore_patterns("*processor_config.json"))
    (home / "model.safetensors").write_bytes(bytes(10))
    for prefix in ("", "cuda:"):
        model = f"{prefix}{home / name}"
        done = rashomon.run("--batch", "--benchmark", "cmc-bench", "--model", model, "--limit", "1", code=2)
        assert message in done.stderr
        assert done.stderr.count("\n") == 1
