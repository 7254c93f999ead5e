# `make demo` and `make test` set everything up on a fresh clone; nothing else is needed first, and no root.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready

.DEFAULT_GOAL := help
.PHONY: help demo test test-all check bench clean

help:
	@echo "make demo      set up and run the demonstration"
	@echo "make test      set up, lint, type-check and run the tests (what CI runs)"
	@echo "make test-all  the same with the long tests"
	@echo "make check     lint and type-check only"
	@echo "make bench     run the benchmarks (installs the peers in .bench-venv)"

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[dev]"
	touch $(READY)

demo: $(READY)
	@$(BIN)/discreet demo

check: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

test: check
	$(BIN)/pytest -n 2 --dist loadgroup -m "not slow"

test-all: check
	$(BIN)/pytest -n 2 --dist loadgroup

bench: $(READY)
	$(BIN)/python -m benchmarks

clean:
	rm -rf .venv .bench-venv build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
