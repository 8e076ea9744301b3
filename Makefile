# Two commands matter: `make run` and `make test`. The rest is for developers; `make help` lists all.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# What the program itself needs is installed, and what developing it needs, too.
RUN_READY := $(VENV)/.run-ready
READY := $(VENV)/.ready

.DEFAULT_GOAL := help
.PHONY: help setup run test quick check check-style check-types check-layers check-core compile-tests docs ledger bench regenerate manifests parts e2e fuzz releases proof cluster cluster-test life storm screenshots evidence lock image-lock clean

help: ## list the targets
	@grep -hE '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z0-9-]+):.*## (.*)/  make \1\t\2/' | expand -t 20

setup: $(READY) ## install all that developing needs in .venv; the other targets do it as well

run: $(RUN_READY) ## start a standalone webhook and its console, send three pods, show what happens, keep serving
	@$(BIN)/vgpu-webhook demo

# Without bytecode each of the hundreds of processes that the tests start would compile all modules.
test: export PYTHONDONTWRITEBYTECODE =
# Property tests try the same examples in each run.
test: export PYTHONHASHSEED = 0
test: $(READY) ## the checks, then all tests that need no cluster; minutes
	@echo "checks, then all tests: about seven minutes on two cores; make quick takes half a minute"
	@$(MAKE) --no-print-directory --jobs=4 check-style check-types check-layers compile-tests
	@$(BIN)/pytest -n auto --dist worksteal

quick: export PYTHONDONTWRITEBYTECODE =
quick: $(READY) ## style, types, and the tests of the core: for a change of one rule
	@echo "style, types, tests of the core: half a minute on two cores that do nothing else, the first time a minute"
	@$(MAKE) --no-print-directory --jobs=4 check-style check-types check-core

check-core: $(READY)
	@$(BIN)/pytest -n auto $(addprefix tests/,rules devices pod wire volcano golden review policy deploy/test_sent.py)

check: $(READY) ## style, types, import layers, at the same time
	@$(MAKE) --no-print-directory --jobs=3 check-style check-types check-layers

check-style:
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .

check-types:
	@$(BIN)/mypy

check-layers:
	@$(BIN)/lint-imports --no-cache

# Done while mypy keeps one core busy: otherwise each of pytest's processes compiles all tests itself.
compile-tests: $(READY)
	@$(BIN)/pytest --collect-only -p no:xdist >/dev/null || true # what is wrong, the tests report

bench: $(READY) ## measure engine, throughput, latency, memory, and the expressions in the API server
	@$(BIN)/python -m tests.bench

# In this order: what is printed and recorded later shows what was written before.
regenerate: $(READY) ## make all generated files anew: read the difference before you commit it
	@$(BIN)/python -m tests.rules
	@$(BIN)/vgpu-webhook test --update webhook/rules/examples docs/examples/policy-tests >/dev/null
	@$(BIN)/vgpu-webhook manifests > build.tmp && mv build.tmp deploy/base/webhook-configurations.yaml
	@$(BIN)/vgpu-webhook manifests --fallback > build.tmp && mv build.tmp deploy/components/fallback/policies.yaml
	@$(BIN)/python -m tests.deploy.chart
	@$(BIN)/python -m tests.audit.sample
	@$(BIN)/python -m tests.golden
	@$(BIN)/python -m tests.docs
	@git status --short

manifests: $(READY) ## make the kustomization's files from the chart's templates, with the version of pyproject.toml
	@$(BIN)/python -m tests.deploy.chart

parts: $(READY) ## compile what e2e, proof and bench run beside the webhook, with Go: once a machine, 20 minutes on two cores
	@$(BIN)/python -m tests.parts.compiled

e2e: $(READY) ## test against a real API server: that of make parts, or of KUBEBUILDER_ASSETS
	@$(BIN)/python -m tests.parts.compiled api-server
	@$(BIN)/pytest -m e2e --ledger e2e tests/e2e

KIND ?= mutate
SECONDS ?= 600
fuzz: $(READY) ## look for inputs that break an invariant of tests/fuzz; KIND is mutate, validate, manifests or properties
	@test $(KIND) = properties || $(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[fuzz]'
	@$(BIN)/python -m tests.fuzz $(KIND) --seconds $(SECONDS)
	@$(BIN)/python -m tests.ledger --record fuzz "nothing found in $(SECONDS) s" --beside $(KIND)

ledger: $(READY) ## what `make test` cannot show: when it was shown last, and what has changed since
	@$(BIN)/python -m tests.ledger

docs: $(READY) ## update the generated parts of the documentation, and build its site in site/
	@$(BIN)/python -m tests.docs
	@$(BIN)/zensical build --strict

releases: $(READY) ## compare the verdicts with the allocation code of releases of Volcano; ORACLES is the folder of the programs
	@$(BIN)/python -m tests.releases $(ORACLES)

proof: $(READY) ## compare the verdicts with Volcano's scheduler: that of make parts, or of VOLCANO_ASSETS
	@$(BIN)/python -m tests.parts.compiled
	@$(BIN)/pytest -m volcano --timeout 0 -rs -s --ledger proof tests/e2e/volcano

PROFILES ?= a100
cluster: $(READY) ## run a whole cluster without a GPU until Ctrl-C; needs root and CLUSTER_ASSETS; PROFILES="a100 t4:2" makes two nodes
	@$(BIN)/python -m tests.gpuless $(PROFILES)

cluster-test: $(READY) ## test on such a cluster
	@$(BIN)/pytest -m cluster --ledger cluster tests/gpuless

life: $(READY) ## what becomes of pods with and without the webhook, on that cluster; writes the table of docs/proof.md
	@$(BIN)/python -m tests.gpuless.life

storm: $(READY) ## create 1,000 pods on that cluster while the webhook and what it stands on are killed, rotated, upgraded
	@$(BIN)/python -m tests.gpuless.storm

screenshots: $(READY) ## take the pictures in docs/images anew; needs chromium and chromium-driver
	@$(BIN)/python -m tests.browser.screenshots

evidence: $(READY) ## the tests that docs/security.md names and that need no cluster: a few minutes
	@$(BIN)/pytest -n auto $(shell grep -o 'tests/[a-z_/]*\.py' docs/security.md | grep -v '^tests/e2e/' | sort -u)

lock: $(READY) ## renew constraints.txt from what pyproject.toml allows today
	@$(BIN)/pip install --quiet --upgrade --upgrade-strategy eager -e '.[dev,fuzz]'
	@$(BIN)/pip freeze --exclude-editable --exclude pip --exclude setuptools --exclude uv > constraints.txt
	@$(MAKE) --no-print-directory image-lock

image-lock: $(READY) ## lock by hash what the image installs, and what builds it: deploy/*requirements.txt
	@$(BIN)/pip install --quiet --disable-pip-version-check uv
	@$(BIN)/uv pip compile --quiet --no-header --no-annotate --generate-hashes --python-version 3.13 --python-platform linux \
		--constraints constraints.txt pyproject.toml -o deploy/requirements.txt
	@$(BIN)/python -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["build-system"]["requires"], sep="\n")' | \
		$(BIN)/uv pip compile --quiet --no-header --no-annotate --generate-hashes --upgrade - -o deploy/build-requirements.txt

clean: ## remove the virtual environment and all caches
	rm -rf $(VENV) .cache build site *.egg-info .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -prune -exec rm -rf {} +

$(READY): EXTRA := [dev]
$(RUN_READY) $(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed; say which with: make PYTHON=python3.12")'
	@echo "setting up $(VENV): half a minute to two minutes"
	@$(PYTHON) -m venv $(VENV)
	@while sleep 1; do printf .; done & dots=$$!; \
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.$(EXTRA)'; \
	code=$$?; kill $$dots; echo; exit $$code
	@touch $(RUN_READY) $@
