# Every target sets up what it needs; `make help` lists them.
.DEFAULT_GOAL := help
SHELL := /bin/bash

VENV := .venv
TOOLS := .cache/tools
UV := $(shell command -v uv 2>/dev/null || echo $(TOOLS)/bin/uv)
PYTHON ?= python3
RUN := $(UV) run --no-sync
STAMP := $(VENV)/.inferbus-synced
DIR ?= .inferbus

# Arguments: what to select, how to share it out. Tests that a crowded machine upset are told from
# broken ones by running them again, one at a time; a test that fails twice fails the target.
define run-tests
	@$(RUN) pytest $(2) -m $(1) || { \
		code=$$?; [ $$code -eq 1 ] || exit $$code; \
		echo "== what failed runs once more, one at a time"; \
		$(RUN) pytest --last-failed --last-failed-no-failures none --maxfail 3 -m $(1); }
endef

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(TOOLS)/bin/uv:
	@echo "uv is missing: installing it into $(TOOLS)"
	@$(PYTHON) -m venv $(TOOLS) && $(TOOLS)/bin/pip install --quiet uv

$(STAMP): uv.lock pyproject.toml contracts/pyproject.toml shared/pyproject.toml $(wildcard services/*/pyproject.toml) | $(filter $(TOOLS)/bin/uv,$(UV))
	@$(UV) sync --locked --quiet --compile-bytecode
	@$(RUN) python -m compileall -q contracts shared services
	@touch $@

.PHONY: setup
setup: $(STAMP) ## install everything into .venv (the other targets do it themselves)

.PHONY: up
up: setup ## start the platform on this machine, in the background
	@$(RUN) inferbus up --detach --dir $(DIR)

.PHONY: down
down: setup ## stop the platform
	@$(RUN) inferbus down --dir $(DIR)

.PHONY: demo
demo: setup ## up, manifests of both APIs, a real trace, decisions live, and why
	@$(RUN) python -m tests.scenario.demo

.PHONY: test
test: setup ## unit and integration tests
	$(call run-tests,"not slow and not docker",-n auto)

.PHONY: test-slow
test-slow: setup ## the slow tiers: kills, restarts, faults, Docker
	$(call run-tests,"slow or docker",-n 2 --dist loadfile)

.PHONY: kube-assets
kube-assets: ## a real kube-apiserver and etcd, for KUBEBUILDER_ASSETS (needs Go and apt-get)
	@.ci/kube-assets

.PHONY: test-all
test-all: test test-slow ## both

.PHONY: lint
lint: setup ## formatting, lint, import rules
	@$(RUN) ruff format --check .
	@$(RUN) ruff check .
	@$(RUN) lint-imports --no-cache

.PHONY: types
types: setup ## strict type check
	@$(RUN) mypy

.PHONY: contracts
contracts: setup ## schemas, AsyncAPI and manifests are current, golden events parse, nothing breaks readers
	@$(RUN) python -m inferbus_contracts.check

.PHONY: bench
bench: setup ## print every figure the project promises, with its configuration
	@$(RUN) python -m tests.bench

.PHONY: clean
clean: ## remove what the targets created (stop the platform first)
	@rm -rf $(VENV) .cache .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
