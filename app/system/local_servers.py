"""Programs of this machine that hold models in memory: Ollama, LM Studio, oMLX and others, known by their processes."""

from __future__ import annotations

import re
from dataclasses import dataclass

# A space ends a path, except in the names of apps and in "Application Support": `ps` does not quote.
_PATH = r"/(?:[^ ]| (?=[^ /]+\.app/|Support/))*/"
_PYTHON = rf"(?:(?:{_PATH})?[Pp]ython[\d.]*(?: -[A-Za-z]+)* )?(?:-m )?"
_LONGEST = 1000  # the characters in which a program and its command stand
_END = r"(?:\.exe)?(?: |$)"


@dataclass(frozen=True, slots=True)
class LocalServer:
    """A program that holds models.

    ``process`` is the regular expression of the beginning of its command line; ``unload`` is the command that releases a model,
    "" where quitting the program is the only way.
    """

    name: str
    process: str
    unload: str = ""


def _program(names: str) -> str:
    """Return the pattern of a process's command line whose program has one of ``names``; also a script that Python runs."""
    return rf"{_PYTHON}(?:{_PATH})?(?:{names}){_END}"


def _app(bundle: str) -> str:
    return rf"{_PATH}{bundle}\.app/Contents/"


LOCAL_SERVERS = (
    LocalServer(
        "Ollama", _program(r"ollama (?:runner|llama-server)|ollama[_-](?:llama_server|runner)"), "ollama stop MODEL"
    ),
    LocalServer("LM Studio", rf"{_PATH}(?:LM Studio\.app/Contents/|\.lmstudio/(?!bin/))", "lms unload --all"),
    LocalServer(
        "llama.cpp", _program(r"(?:com\.docker\.)?llama-(?:server|cli|mtmd-cli|bench)|llama serve|llama_cpp\.server")
    ),
    LocalServer("mlx-lm", _program(r"mlx_lm(?:[. ](?:server|chat|generate|lora|fuse|convert|evaluate|perplexity))")),
    LocalServer("mlx-vlm", _program(r"mlx_vlm(?:[. ](?:server|chat|chat_ui|generate|video_generate|lora|convert))")),
    LocalServer("oMLX", _program(r"omlx(?:\.cli)? serve") + "|" + _app("oMLX")),
    LocalServer("vllm-mlx", _program(r"vllm-mlx (?:serve|bench)|vllm_mlx(?:\.server|\.cli serve)")),
    LocalServer("vLLM", _program(r"vllm serve|vllm\.entrypoints\.[a-z.]*api_server")),
    LocalServer("mlx-openai-server", _program(r"mlx-openai-server launch")),
    LocalServer("mlx-omni-server", _program(r"mlx-omni-server|mlx_omni_server(?:\.main)?")),
    LocalServer("FastMLX", _program(r"fastmlx")),
    LocalServer("Osaurus", _app("[Oo]saurus")),
    LocalServer("Swama", _program(r"swama (?:serve|run|menubar)|swama-bin serve")),
    LocalServer("MLC LLM", _program(r"mlc_llm (?:serve|chat)")),
    LocalServer("LocalAI", _program(r"local-ai(?: run)?")),
    LocalServer("KoboldCpp", _program(r"koboldcpp[\w.-]*")),
    LocalServer("GPT4All", _app("gpt4all|GPT4All")),
)
"""The programs whose processes are known, from their documentation and sources."""


def running_servers(processes: str) -> list[LocalServer]:
    """Return the programs that run, from ``ps -axo command=``.

    Only a line's program counts, and for Python its module or script, not the other arguments: an editor may have opened a file
    called ollama.txt.
    """
    lines = [line.strip()[:_LONGEST] for line in processes.splitlines()]
    return [server for server in LOCAL_SERVERS if any(re.match(server.process, line) for line in lines)]
