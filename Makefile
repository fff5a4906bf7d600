# `make demo` and `make test` need Python 3.11 or newer and nothing else: they make .venv and install into it.

PYTHON ?= $(shell for p in python3.13 python3.12 python3.11 python3; do \
	"$$p" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { echo "$$p"; break; }; done)
BIN := .venv/bin

.PHONY: demo test lint docs slow pictures constraints clean

demo: .venv/installed
	$(BIN)/rashomon --workspace .venv demo

test: .venv/installed-test lint docs
	$(BIN)/pytest -n 2 --dist loadfile -m "not slow"

lint: .venv/installed-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# The documentation as a site in build/site; a link that leads nowhere fails.
docs: .venv/installed-test
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict

slow: .venv/installed-test
	$(BIN)/pytest -m slow

# Every picture of the README and of docs/, drawn again.
pictures: .venv/installed-test
	$(BIN)/rashomon --workspace .venv demo --display none
	$(BIN)/python -m tests.support.pictures .venv/rashomon-demo/cmc-bench
	$(BIN)/python -m tests.tui.pictures

# The newest versions that the declared bounds allow, pinned: run the tests before you commit them.
constraints:
	rm -rf .venv-newest && $(PYTHON) -m venv .venv-newest
	.venv-newest/bin/python -m pip install --quiet --disable-pip-version-check -e ".[test]"
	{ head -2 constraints.txt; .venv-newest/bin/python -m pip freeze --exclude-editable; \
	  .venv-newest/bin/python -m pip freeze | sed -n "s/^mlx==\(.*\)/mlx-metal==\1; sys_platform == 'darwin'/p"; } > constraints.new
	mv constraints.new constraints.txt && rm -rf .venv-newest

.venv/bin/python:
	@test -n "$(PYTHON)" || { echo "Rashomon needs Python 3.11 or newer; install it, or say make PYTHON=/path/to/python3"; exit 1; }
	$(PYTHON) -m venv .venv

.venv/installed: pyproject.toml constraints.txt | .venv/bin/python
	@echo 'installing into .venv, which takes some minutes'
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e .
	@touch $@

.venv/installed-test: pyproject.toml constraints.txt | .venv/bin/python
	@echo 'installing into .venv, which takes some minutes'
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[test]"
	@touch $@ .venv/installed

clean:
	rm -rf .venv build dist *.egg-info
