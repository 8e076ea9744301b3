# Two commands matter: `make run` and `make test`. The rest is for developers; `make help` lists all.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.DEFAULT_GOAL := help
.PHONY: help run test check bench e2e screenshots lock clean

help: ## list the targets
	@grep -hE '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z0-9-]+):.*## (.*)/  make \1\t\2/' | expand -t 20

run: $(READY) ## start a standalone webhook and its console, send three pods, show what happens, keep serving
	@$(BIN)/vgpu-webhook demo

test: check ## everything that CI runs: checks, then tests, a file at a time on every core
	@$(BIN)/pytest -n auto --dist loadfile

check: $(READY) ## style, types, import layers
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-cache

bench: $(READY) ## measure engine, throughput, latency, memory
	@$(BIN)/python -m tests.bench

e2e: $(READY) ## test against a real API server; needs KUBEBUILDER_ASSETS
	@$(BIN)/pytest -m e2e tests/e2e

screenshots: $(READY) ## take the README's pictures anew; needs chromium and chromium-driver
	@$(BIN)/python -m tests.browser.screenshots

lock: $(READY) ## renew constraints.txt from what pyproject.toml allows today
	@$(BIN)/pip install --quiet --upgrade --upgrade-strategy eager -e '.[dev,fast]'
	@$(BIN)/pip freeze --exclude-editable --exclude pip --exclude setuptools > constraints.txt

clean: ## remove the virtual environment and all caches
	rm -rf $(VENV) build *.egg-info .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -prune -exec rm -rf {} +

# The parser in C doubles the throughput; where neither wheel nor compiler is at hand, the pure one does the same work.
$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed; say which with: make PYTHON=python3.12")'
	@echo "setting up $(VENV) …"
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[fast]' 2>/dev/null \
		|| echo "no C compiler found: serving with gunicorn's Python parser, half as fast"
	@touch $@
