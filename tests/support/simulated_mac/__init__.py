"""A Mac for processes of a test: Python that reports one, and tools of the system that print recorded outputs.

The product's own code runs: it starts the tools by their paths, waits for them and parses what they print. What no simulation
has is Metal, the frameworks and the file system of a Mac, so libraries still see Linux.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.command import ROOT
from tests.support.simulated_mac.recorded import Machine

_SITE = Path(__file__).with_name("site_of_a_mac.py")

# A tool prints the recorded output of its command line, else of its name. Without either it fails, as for an unknown option.
_TOOL = """#!/bin/sh
echo "${0##*/} $*" >> "${0%/*}/../calls"
output="${0%/*}/../outputs/${0##*/}"
if [ -f "$output $*" ]; then output="$output $*"; fi
exec /bin/cat "$output" 2>/dev/null
"""
_HANGS = "#!/bin/sh\nexec /bin/sleep 60\n"
TOOLS = ("sysctl", "vm_stat", "ps", "pmset", "security", "mount", "sw_vers", "caffeinate", "open", "pbcopy")


@dataclass
class SimulatedMac:
    """A Mac in a folder; ``tools`` "work", "hang", or are "missing"."""

    folder: Path
    machine: Machine
    tools: str = "work"

    def __post_init__(self) -> None:
        for name in ("bin", "outputs", "home"):
            (self.folder / name).mkdir(parents=True)
        shutil.copy(_SITE, self.folder / "sitecustomize.py")
        facts = {"version": self.machine.reported, "kernel": self.machine.kernel, "processor": self.machine.processor}
        (self.folder / "facts.json").write_text(json.dumps(facts))
        for command, output in self.machine.outputs.items():
            (self.folder / "outputs" / command).write_bytes(output if isinstance(output, bytes) else output.encode())
        for name in TOOLS if self.tools != "missing" else ():
            script = self.folder / "bin" / name
            script.write_text(_HANGS if self.tools == "hang" else _TOOL)
            script.chmod(0o755)

    @property
    def environment(self) -> Mapping[str, str]:
        """The environment of this Mac's processes, on which no other program is found than its tools."""
        return {
            "HOME": str(self.folder / "home"),
            "PATH": str(self.folder / "bin"),
            "PYTHONPATH": os.pathsep.join([str(self.folder), str(ROOT)]),
            "RASHOMON_WORKSPACE": str(self.folder / "home" / "workspace"),
            "HF_HUB_OFFLINE": "1",
        }

    def run(self, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """Run Python on this Mac."""
        return subprocess.run(
            [sys.executable, "-P", *arguments],
            env={**self.environment, **environment},
            cwd=self.folder / "home",
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    def evaluate(self, code: str, **environment: str) -> Any:
        """Return the value of ``answer`` after ``code``, through JSON."""
        done = self.run("-c", f"{code}\nimport json; print(json.dumps(answer))", **environment)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout.splitlines()[-1])

    @property
    def calls(self) -> list[str]:
        """The command lines of the tools that were started."""
        file = self.folder / "calls"
        return file.read_text().splitlines() if file.exists() else []

    @property
    def branches(self) -> set[str]:
        """The functions of the product that asked for the platform, as path and name."""
        file = self.folder / "branches"
        lines = set(file.read_text().splitlines()) if file.exists() else set()
        return {line.removeprefix(f"{ROOT}/") for line in lines if line.startswith(f"{ROOT}/") and ".venv/" not in line}
