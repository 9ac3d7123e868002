# Everything a fresh machine needs is set up by the target that needs it, once:
# Python >= 3.11 (with venv), git and make are expected, all else is fetched.
#   .venv   the environment of uv.lock          .cache  uv itself, the tally of `make test`, proofs
#   $PUMICE_CACHE (else ~/.cache/pumice)        the stock control plane and, where missing, Go

# Given, it is what the environment is made with; else that is not made with a slow build of it.
PYTHON ?= python3
CHOSEN = $(PYTHON) -m tests.interpreters
GIVEN = command -v $(PYTHON)
UV_VERSION := 0.13.8

BIN := .venv/bin
UV := .cache/uv-$(UV_VERSION)/bin/uv
SYNCED := .venv/.synced
TALLY := .cache/tests-tally.json
PARTS := .cache/tests-parts

PYTEST := $(BIN)/pytest
# Side by side: each test has all it needs to itself. The files stay whole, and so do the clusters
# that their tests share. Scenarios on the sandbox mostly wait, so more of them run than cores.
ON_ALL_CORES := --numprocesses=auto --maxprocesses=4 --dist=loadfile
WAITING := --numprocesses=4 --dist=loadfile
# A third of the unit tests' time is waited for a control plane. In the order of their names long
# files do not come last, when one core works alone.
MIXED := --numprocesses=3 --dist=loadfile --no-loadscope-reorder
# End to end tests of several files register webhooks on the cluster of their worker. Each clears up
# for the files that come after it by name, so that order has to stay.
IN_ORDER := $(ON_ALL_CORES) --no-loadscope-reorder
# In `make test` each heading is also written down with its time, for the last lines.
define heading
	@printf '\n=== %s ===\n' '$(1)'
	@if [ -n "$$PUMICE_TEST_TALLY" ]; then printf '%s %s\n' "$$(date +%s)" '$(1)' >>$(PARTS); fi
endef

# Compiled once and not at each start: the tests start our programs hundreds of times.
unexport PYTHONDONTWRITEBYTECODE

.DELETE_ON_ERROR:
.NOTPARALLEL:
.SUFFIXES:
.PHONY: help venv controlplane controlplane-path demo test tally lint types layers docs pages unit \
	scenarios e2e proofs coverage bench bench-planner fmt clean

help:
	@echo 'make demo           the first story on the embedded sandbox'
	@echo 'make test           everything that CI checks; builds the control plane on first use'
	@echo 'make lint|types|layers|docs|unit|scenarios|e2e    one part of it'
	@echo 'make proofs         properties and random faults a hundred times as hard: hours, in pieces;'
	@echo '                    PIECE=name for one, PUMICE_SEED=n for the same dice'
	@echo 'make coverage       lines and branches of core, model and cache that their tests reach'
	@echo 'make bench          side by side with the stock scheduler alone; bench-planner: in memory'
	@echo 'make controlplane   build etcd and the stock Kubernetes programs; -s controlplane-path: where'
	@echo 'make pages          write what is generated in the documents'
	@echo 'make venv|fmt|clean'

# Environment ------------------------------------------------------------------------------------

venv: $(SYNCED)

$(UV):
	@echo 'environment: installing uv $(UV_VERSION)'
	@$(PYTHON) -c 'import sys; sys.exit("Python >= 3.11 is needed" if sys.version_info < (3, 11) else 0)'
	@$(PYTHON) -m venv --clear .cache/uv-$(UV_VERSION)
	@.cache/uv-$(UV_VERSION)/bin/python -m pip install --quiet --disable-pip-version-check \
		uv==$(UV_VERSION)

$(SYNCED): uv.lock pyproject.toml | $(UV)
	@echo 'environment: installing the locked packages into .venv'
	@python=$$($(if $(filter file,$(origin PYTHON)),$(CHOSEN),$(GIVEN))) && \
		env -u VIRTUAL_ENV UV_PROJECT_ENVIRONMENT=.venv UV_PYTHON_DOWNLOADS=never \
		$(UV) sync --frozen --quiet --compile-bytecode --python "$$python"
	@touch $@

# Control plane ----------------------------------------------------------------------------------

controlplane:
	@printf 'control plane: ready in %s\n' "$$($(PYTHON) -m tests.clusters.binaries)"

controlplane-path:
	@$(PYTHON) -m tests.clusters.binaries

# Use --------------------------------------------------------------------------------------------

demo: $(SYNCED)
	@$(BIN)/pumice demo

# Checks -----------------------------------------------------------------------------------------

test: export PUMICE_TEST_TALLY := $(TALLY)
test: venv controlplane tally lint types layers docs unit scenarios e2e
	@printf '\n'
	@$(BIN)/python -m tests.parts $(PARTS)

tally:
	@mkdir -p $(dir $(TALLY))
	@rm -f $(TALLY) $(PARTS)

lint: $(SYNCED)
	$(call heading,lint and format)
	@$(BIN)/ruff check app tests
	@$(BIN)/ruff format --check app tests

types: $(SYNCED)
	$(call heading,types)
	@$(BIN)/mypy

layers: $(SYNCED)
	$(call heading,layers)
	@$(BIN)/lint-imports

# A warning, such as that of a link that leads nowhere, is an error.
docs: $(SYNCED)
	$(call heading,documents)
	@$(BIN)/mkdocs build --strict

pages: $(SYNCED)
	@$(BIN)/python -m tests.documents

unit: $(SYNCED)
	$(call heading,unit tests)
	@$(PYTEST) -q $(MIXED) tests --ignore=tests/scenarios --ignore=tests/e2e --ignore=tests/bench

scenarios: $(SYNCED)
	$(call heading,scenarios on the sandbox)
	@$(PYTEST) -q $(WAITING) tests/scenarios -m sandbox

e2e: $(SYNCED) controlplane
	$(call heading,scenarios on the real control plane)
	@$(PYTEST) -q $(ON_ALL_CORES) tests/scenarios -m real
	$(call heading,end to end on the real control plane)
	@$(PYTEST) -q $(IN_ORDER) tests/e2e -m real

# Proofs -----------------------------------------------------------------------------------------

PIECE ?= *

proofs: $(SYNCED) controlplane
	@$(BIN)/python -m tests.proofs --piece '$(PIECE)'

# Measures ---------------------------------------------------------------------------------------

# Not part of `make test`: it takes half again as long as these tests alone.
coverage: $(SYNCED)
	@$(PYTEST) -q $(ON_ALL_CORES) tests/core tests/cache --cov

bench: $(SYNCED) controlplane
	@$(BIN)/python -m tests.bench
	@$(BIN)/python -m tests.bench.coldstart

bench-planner: $(SYNCED)
	@$(BIN)/python -m tests.bench.planner

# Housekeeping -----------------------------------------------------------------------------------

fmt: $(SYNCED)
	@$(BIN)/ruff check --fix app tests
	@$(BIN)/ruff format app tests

# The control plane stays: it takes minutes to build and its folder is named after its content.
clean:
	rm -rf .venv .cache .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache dist
	find app tests -name __pycache__ -type d -prune -exec rm -rf {} +
