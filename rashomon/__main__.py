"""Entry point of the ``rashomon`` command, and of ``python -m rashomon``."""

from __future__ import annotations

import sys

from rashomon._names import find_collision


def main() -> None:
    """Run the command line, unless another package would be imported in place of one of Rashomon's: exit code 2."""
    if problem := find_collision():
        print(f"rashomon: {problem}", file=sys.stderr)
        sys.exit(2)
    from app.main import main as run

    run()


if __name__ == "__main__":
    main()
