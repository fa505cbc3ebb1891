# Everything a newcomer or a maintainer runs. Needs Python 3.11+, git, Node and npm; the rest is set up here.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin

.DEFAULT_GOAL := help
.PHONY: help setup demo check format test test-all golden docs bench kills ha inspector clean

help: ## Show this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

setup: $(VENV)/.dev ## Make the virtual environment with everything for development
	@$(BIN)/pre-commit install >/dev/null 2>&1 || true

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Python 3.11 or newer is needed; set PYTHON=..."; exit 1; }
	@$(PYTHON) -m venv $(VENV) || { echo "Making a virtual environment failed; on Debian: apt-get install python3-venv"; exit 1; }

$(VENV)/.dev: pyproject.toml | $(VENV)/bin/python
	@echo "Installing Backstory and what its tests need ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[dev]"
	@touch $@ $(VENV)/.demo

$(VENV)/.demo: pyproject.toml | $(VENV)/bin/python
	@echo "Installing Backstory with its local embedding model ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[local]"
	@touch $@

demo: $(VENV)/.demo ## See an agent remember: the real OpenCode, two sessions, a scripted model
	@$(BIN)/python -m demo

check: $(VENV)/.dev ## Format, lint, types, layers
	@$(BIN)/ruff format --check --quiet . || { echo "run: make format"; exit 1; }
	@$(BIN)/ruff check --quiet .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-logo 2>/dev/null || $(BIN)/lint-imports

format: $(VENV)/.dev ## Put the code into shape
	@$(BIN)/ruff check --quiet --fix . ; $(BIN)/ruff format --quiet .

test: $(VENV)/.dev ## Every test, the real OpenCode's among them
	@$(BIN)/python -m backstory.testing.opencode_binary || echo "OpenCode is not here; its tests will be skipped"
	@$(BIN)/python -m pytest -n auto --maxprocesses 4 --dist loadfile --no-loadscope-reorder

test-all: test kills ## The tests and the slow proofs

golden: $(VENV)/.dev ## Renew the golden files, to be reviewed as a diff
	@BACKSTORY_RENEW_GOLDEN=1 $(BIN)/python -m pytest -q tests

docs: $(VENV)/.dev ## Write the generated reference pages anew
	@$(BIN)/python -m docs.generate

bench: $(VENV)/.dev ## Speed and quality; figures go to the terminal
	@$(BIN)/python -m bench latency --rows 10000
	@$(BIN)/python -m bench host

kills: $(VENV)/.dev ## Kill writers 1,000 times; nothing acknowledged may be lost
	@$(BIN)/python -m bench.kills --kills 1000

ha: $(VENV)/.dev ## Kill the leader of a Patroni cluster under load; nothing acknowledged may be lost
	@$(BIN)/python -m bench.ha

inspector: $(VENV)/.dev ## Try the MCP server with the official inspector (installs 111 MB from npm)
	@npm install --prefix build/inspector --ignore-scripts --no-audit --no-fund --silent @modelcontextprotocol/inspector@2.12.0
	@$(BIN)/python -m pytest -q tests/e2e/test_mcp_inspector.py

clean: ## Remove the virtual environment and all caches
	@rm -rf $(VENV) .cache .mypy_cache .pytest_cache .ruff_cache .hypothesis .schemathesis .import_linter_cache
