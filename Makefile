# `make demo` and `make test` set everything up on a fresh clone; nothing else is needed first, and no root.
PYTHON ?= python3
PYTHONS ?= 3.11 3.12 3.13 3.14
BIN := .venv/bin
DEMO := .venv/.demo
READY := .venv/.ready
INSTALL = -m pip install --disable-pip-version-check -c constraints.txt
TESTS = -n 3 --dist loadgroup
unexport PYTHONDONTWRITEBYTECODE  # the tests start hundreds of processes that import the same

.DEFAULT_GOAL := help
.PHONY: help demo test test-all test-pythons check js docs bench clean

help:
	@echo "make demo          set up and run the demonstration"
	@echo "make test          set up, lint, type-check and run the tests (what CI runs)"
	@echo "make test-all      the same with the long tests"
	@echo "make test-pythons  the tests on every Python of: $(PYTHONS)"
	@echo "make check         lint and type-check only"
	@echo "make js            join the JavaScript modules into the files that are served"
	@echo "make docs          build the documentation site"
	@echo "make bench         run the benchmarks (installs the peers in .bench-venv)"

# One environment: the demonstration's is a part of the tests', whichever comes first.
define environment
@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "discreet needs Python 3.11 or newer; name one: make PYTHON=python3.13 ...")'
@test -x $(BIN)/pip || $(PYTHON) -m venv .venv
endef

$(DEMO): pyproject.toml constraints.txt
	@echo "Setting up .venv with what the demonstration needs: about half a minute."
	$(environment)
	$(BIN)/python $(INSTALL) --no-compile -e ".[serve]"
	@touch $(DEMO)

$(READY): pyproject.toml constraints.txt
	@echo "Setting up .venv with all that the tests need, Spark and a browser driver too: some minutes."
	$(environment)
	$(BIN)/python $(INSTALL) --no-compile -e ".[dev]"
	@touch $(DEMO) $(READY)

# Ctrl-C (130) ends the demonstration, not what is said after it.
demo: $(DEMO)
	@trap : INT; $(BIN)/discreet demo || test $$? -eq 130 || exit 1; \
	echo; \
	echo "Next, in this terminal:"; \
	echo "  . .venv/bin/activate              and discreet is a command"; \
	echo "  discreet new                      asks for a question and answers, and writes survey.toml"; \
	echo "  discreet serve survey.toml --lan  shows it to phones of your network, for trying out"; \
	echo "  discreet --help                   what else it does"

check: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

test: check
	$(BIN)/pytest $(TESTS) -m "not slow"

test-all: check
	$(BIN)/pytest $(TESTS)

# Each in an environment of its own, build/python3.x; one that the machine lacks is said to be missing.
test-pythons: $(addprefix test-python,$(PYTHONS))

test-python%:
	@for python in python$* $${PYENV_ROOT:-$$HOME/.pyenv}/versions/$*.*/bin/python; do \
	  if $$python -c "" 2>/dev/null; then break; fi; python=; done; \
	if [ -z "$$python" ]; then echo "NOT RUN: this machine has no Python $*"; exit 0; fi; \
	set -ex; \
	test -x build/python$*/bin/pip || $$python -m venv build/python$*; \
	build/python$*/bin/python $(INSTALL) -e ".[dev]"; \
	build/python$*/bin/python -m pytest $(TESTS) -m "not slow"

js:
	$(PYTHON) js/join.py

docs: $(READY)
	$(BIN)/sphinx-build -W --keep-going -q -n -b html docs docs/_build/html
	@echo "docs/_build/html/index.html"

bench: $(READY)
	$(BIN)/python -m benchmarks

clean:
	rm -rf .venv .bench-venv build dist docs/_build .pytest_cache .mypy_cache .ruff_cache .hypothesis
