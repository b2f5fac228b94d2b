# Each target does its own set-up: a fresh machine needs python3 and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: demo test lint types imports unit hunt explore bench test-agents test-dashboards format clean

$(STAMP): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed; name one: make $(MAKECMDGOALS) PYTHON=python3.12")'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade pip
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[test]'
	touch $@

demo: $(STAMP)
	$(BIN)/orchestrator demo

test: lint types imports unit

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(STAMP)
	$(BIN)/mypy
	$(BIN)/mypy tests/typing/api.py

imports: $(STAMP)
	$(BIN)/lint-imports

unit: $(STAMP)
	$(BIN)/pytest -n 2 -q -m "not agents and not dashboards and not explore"

hunt: $(STAMP)
	$(BIN)/pytest -n 2 -q -m hypothesis --hypothesis-profile hunt

explore: $(STAMP)
	$(BIN)/python -m tests.turn.explore

bench: $(STAMP)
	$(BIN)/python -m tests.bench

test-agents: $(STAMP)
	$(BIN)/python -m tests.agents.install
	$(BIN)/pytest -q -m agents tests/agents

test-dashboards: $(STAMP)
	$(BIN)/pytest -q -m dashboards tests/dashboards

format: $(STAMP)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
