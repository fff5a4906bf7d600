"""Programs that hold models, by their processes as ``ps -axo command=`` of a Mac lists them."""

from __future__ import annotations

import time

import pytest

from app.system.local_servers import LOCAL_SERVERS, running_servers
from tests.support.simulated_mac.recorded import PROCESSES

PYTHON = (
    "/opt/homebrew/Cellar/python@3.12/3.12.7/Frameworks/Python.framework/Versions/3.12/Resources/Python.app/Contents/"
    "MacOS/Python"
)


@pytest.mark.parametrize(
    ("name", "processes"),
    [
        (
            "Ollama",
            [
                "/Applications/Ollama.app/Contents/Resources/ollama runner --ollama-engine --port 52344",
                "/opt/homebrew/bin/ollama runner --mlx-engine --model x",
                "/var/folders/ab/T/ollama123/runners/metal/ollama_llama_server --model /Users/ann/.ollama/models/blobs/s",
            ],
        ),
        (
            "LM Studio",
            [
                "/Applications/LM Studio.app/Contents/MacOS/LM Studio",
                "/Applications/LM Studio.app/Contents/Frameworks/LM Studio Helper.app/Contents/MacOS/LM Studio Helper --x",
                "/Users/ann/.lmstudio/llmster/0.0.12/llmster",
            ],
        ),
        (
            "llama.cpp",
            [
                "/opt/homebrew/bin/llama-server -m x.gguf",
                "llama-mtmd-cli -m x.gguf --mmproj y.gguf",
                "/Users/ann/Library/Application Support/Jan/data/llamacpp/backends/b6/macos-arm64/build/bin/llama-server -m x",
                "/Users/ann/.docker/bin/inference/com.docker.llama-server --metrics",
                f"{PYTHON} -m llama_cpp.server --model x",
            ],
        ),
        (
            "mlx-lm",
            [
                f"{PYTHON} -m mlx_lm.server --model x",
                f"{PYTHON} /Users/ann/venv/bin/mlx_lm.server --model x",
                "python3 -m mlx_lm server",
                "python -u -m mlx_lm.lora --train",
            ],
        ),
        ("mlx-vlm", [f"{PYTHON} -m mlx_vlm.server", f"{PYTHON} /Users/ann/venv/bin/mlx_vlm.server --port 8080"]),
        (
            "oMLX",
            [
                "/Applications/oMLX.app/Contents/MacOS/oMLX",
                f"{PYTHON} /opt/homebrew/bin/omlx serve --model-dir /Users/ann/models",
                f"{PYTHON} -m omlx.cli serve",
            ],
        ),
        ("vllm-mlx", [f"{PYTHON} /Users/ann/venv/bin/vllm-mlx serve mlx-community/x", f"{PYTHON} -m vllm_mlx.server"]),
        ("vLLM", [f"{PYTHON} /Users/ann/venv/bin/vllm serve x"]),
        ("mlx-openai-server", [f"{PYTHON} /Users/ann/venv/bin/mlx-openai-server launch --model-path x"]),
        ("mlx-omni-server", [f"{PYTHON} /Users/ann/venv/bin/mlx-omni-server"]),
        ("FastMLX", [f"{PYTHON} /Users/ann/venv/bin/fastmlx"]),
        ("Osaurus", ["/Applications/osaurus.app/Contents/MacOS/osaurus"]),
        ("Swama", ["/Applications/Swama.app/Contents/MacOS/swama-bin serve --host 0.0.0.0", "swama run qwen3"]),
        ("MLC LLM", [f"{PYTHON} -m mlc_llm serve x"]),
        ("LocalAI", ["/opt/homebrew/bin/local-ai run"]),
        ("KoboldCpp", ["/Users/ann/koboldcpp-mac-arm64 --model x.gguf", "python koboldcpp.py --model x.gguf"]),
        ("GPT4All", ["/Applications/gpt4all/bin/gpt4all.app/Contents/MacOS/gpt4all"]),
    ],
)
def test_programs_that_hold_models(name: str, processes: list[str]) -> None:
    for process in processes:
        servers = running_servers(f"{PROCESSES}{process}\n")
        assert [server.name for server in servers] == [name], process


@pytest.mark.parametrize(
    "process",
    [
        "vim ollama.txt",
        "/usr/bin/vim notes/ollama runner",
        "/Applications/Visual Studio Code.app/Contents/MacOS/Electron /Users/ann/ollama runner.txt",
        "less /Users/ann/notes/llama-server",
        "tail -f /Users/ann/.lmstudio/server-logs/2026-11.log",
        "/Users/ann/.lmstudio/bin/lms log stream",
        "grep -r mlx_lm.server .",
        "python -m pytest mlx_lm.server",
        "python download.py mlx_lm.server",
        "/bin/zsh -c mlx_lm.server --model x",
        "ssh studio ollama runner",
        "git clone llama-server",
        "/Applications/Ollama.app/Contents/MacOS/Ollama hidden",
        "ollama serve",
        "ollama list",
        "vllm --help",
        "omlx --help",
        "python -m app.main --batch --model endpoint:ollama/qwen3-vl",
        "llama-server-notes.txt",
    ],
)
def test_other_programs_are_not_taken_for_one(process: str) -> None:
    assert running_servers(f"{PROCESSES}{process}\n") == []


def test_hostile_lines_cost_little_time() -> None:
    lines = ["/" * 10**6, "/a b" * 10**5, "python -m " * 10**5, "/Users/a " + "x.app/ " * 10**5, "\0\xff" * 10**5]
    start = time.process_time()
    assert running_servers("\n".join(lines * 5)) == []
    assert time.process_time() - start < 2
    assert len({server.name for server in LOCAL_SERVERS}) == len(LOCAL_SERVERS)
