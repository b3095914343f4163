# make test        set up, lint, type-check, test           make reproduce   the paper's results, into results/
# make test-long   the tests that take minutes              make bench       time the kernels and the policies
# make lint        the checks without the tests             make format      rewrite the code in the house style
# make lock        pin the dependencies anew                make clean       remove all that was made, but not results/
#
# make explore     the property tests on new random examples; SEED=... repeats a run
# make docs        build the documentation site into build/site, and run what its pages show
# make examples    run what the documents show and write the answers into them
# make numbers     measure the numbers in the documents again, from results/ and the benchmarks (minutes)
#
# Another interpreter, beside the usual one:  make test PYTHON=python3.13 VENV=.venv-3.13

PYTHON ?= python3
VENV ?= .venv
WORKERS ?= auto
ARGS ?=
SEED := $(or $(SEED),$(shell od -An -N4 -tu4 /dev/urandom | tr -d ' '))

BIN := $(VENV)/bin
READY := $(VENV)/.ready
PIP := $(BIN)/python -m pip --disable-pip-version-check -qq
PYTEST := $(BIN)/python -m pytest --quiet --numprocesses $(WORKERS) --maxprocesses 8 --dist worksteal

export MPLBACKEND ?= Agg

.DEFAULT_GOAL := test
.DELETE_ON_ERROR:
.PHONY: setup test test-long explore lint format reproduce bench docs examples numbers lock clean

setup: $(READY)

$(READY): requirements.lock pyproject.toml
	@command -v "$(PYTHON)" >/dev/null || { echo "Spillover: no interpreter '$(PYTHON)'; name one with PYTHON=..." >&2; exit 1; }
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "Spillover needs Python 3.11 or newer; '$(PYTHON)' is $$("$(PYTHON)" --version 2>&1). Name another with PYTHON=..." >&2; exit 1; }
	@test -x $(BIN)/python || { echo "== creating $(VENV) with $$("$(PYTHON)" --version)"; "$(PYTHON)" -m venv $(VENV); }
	@$(BIN)/python -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "Spillover needs Python 3.11 or newer; $(VENV) has an older one: remove it" >&2; exit 1; }
	@echo "== installing the locked dependencies into $(VENV) (minutes, the first time)"
	@$(PIP) install --require-hashes --requirement requirements.lock
	@$(PIP) install --no-build-isolation --no-deps --editable .
	@$(BIN)/python -m compileall -q src
	@echo "== compiling the kernels (once)" && $(BIN)/python -c "from spillover import kernels; kernels.compile_all()"
	@$(BIN)/python -c "from spillover.simulation.compile_ahead import compile_policies; compile_policies()"
	@touch $@

# mypy takes longest by far, so the others run beside it.
lint: $(READY)
	@echo "== ruff, mypy, import-linter"
	@$(BIN)/ruff check --quiet .
	@$(BIN)/ruff format --quiet --check . || { echo "badly formatted: run make format" >&2; exit 1; }
	@$(BIN)/mypy --no-error-summary & mypy=$$!; \
	  out=$$($(BIN)/lint-imports 2>&1) || { wait $$mypy; echo "$$out" >&2; exit 1; }; \
	  wait $$mypy

# The checks use one core only, so the tests start beside them. What the checks say comes last, where it is seen.
test: $(READY)
	@said=$$(mktemp); trap 'rm -f "$$said"' EXIT; trap 'kill $$lint; exit 130' INT TERM; \
	  $(MAKE) --no-print-directory lint >"$$said" 2>&1 & lint=$$!; \
	  echo "== pytest"; $(PYTEST) -m "not long" $(ARGS); tests=$$?; wait $$lint; checks=$$?; \
	  cat "$$said"; test $$tests = 0 && test $$checks = 0

# A property that fails prints what to repeat it with: make explore SEED=..., and an example to keep in the test.
# These tests may take longer than the time after which stacks are dumped, and a dump beside running threads can crash.
test-long: $(READY)
	@echo "== pytest, the long tests" && $(PYTEST) -m long -o faulthandler_timeout=0 $(ARGS)
	@$(MAKE) --no-print-directory explore

explore: $(READY)
	@echo "== pytest, properties on other examples: make explore SEED=$(SEED) repeats them"
	@$(PYTEST) -m hypothesis --hypothesis-profile=explore --hypothesis-seed=$(SEED) $(ARGS)

format: $(READY)
	@$(BIN)/ruff check --quiet --fix . ; $(BIN)/ruff format .

reproduce: $(READY)
	@$(BIN)/spillover reproduce $(ARGS)

# A broken link, an unresolved reference and an answer that has changed are errors. Without requests to the outside.
docs: $(READY)
	@NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict $(ARGS)
	@echo "== the site is build/site/index.html"

examples: $(READY)
	@$(BIN)/python examples/refresh.py $(ARGS)
	@$(BIN)/python examples/notebooks.py $(ARGS)
	@$(BIN)/python -m website.redraw

numbers: $(READY)
	@$(BIN)/python examples/measured.py $(ARGS)

bench: $(READY)
	@$(BIN)/python -m benchmarks $(ARGS)

# One version of each package for every supported Python and platform; no address goes into the file.
lock: $(READY)
	@$(BIN)/uv pip compile pyproject.toml --extra dev --no-config --universal --python-version 3.11 \
	  --fork-strategy fewest --generate-hashes --no-emit-index-url --no-annotate --no-header --quiet \
	  --upgrade --output-file requirements.lock
	@! grep -nE '://|@ ' requirements.lock || { echo "requirements.lock holds an address" >&2; exit 1; }
	@echo "== wrote requirements.lock"

clean:
	rm -rf $(VENV) build dist src/*.egg-info .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
	find src tests benchmarks examples docs website -name __pycache__ -prune -exec rm -rf {} + 2>/dev/null || true
