"""Build hook: the stubs by which type checkers and editors know the modules ``rashomon.*``.

At run time ``rashomon/_alias.py`` finds these modules. Type checkers run no code, so the wheel has a stub for each, which takes
every name from the module itself: the types are the same under both names.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PACKAGES = ("app", "benchmarks", "judges", "mlx_backends")


def write_stubs(root: Path, folder: Path) -> list[Path]:
    """Write a stub below ``folder`` for each module of the packages in ``root``, and return the stubs' paths within it."""
    stubs = []
    for package in PACKAGES:
        for path in sorted((root / package).rglob("*.py")):
            relative = path.relative_to(root)
            module = ".".join(relative.with_suffix("").parts).removesuffix(".__init__")
            stub = folder / relative.with_suffix(".pyi")
            stub.parent.mkdir(parents=True, exist_ok=True)
            stub.write_text(f"from {module} import *\n", "utf-8")
            stubs.append(stub.relative_to(folder))
    return stubs


class StubsHook(BuildHookInterface):  # type: ignore[type-arg,misc,unused-ignore]
    """Hook that adds the stubs to the wheel."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable":
            return
        folder = Path(self.root) / "build" / "stubs"
        for stub in write_stubs(Path(self.root), folder):
            build_data["force_include"][str(folder / stub)] = f"rashomon/{stub.as_posix()}"
