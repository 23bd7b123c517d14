# 'make' alone lists the targets. Set PYTHON to build .venv with another interpreter: make test PYTHON=python3.12

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
RUNS ?= 100000
SEED ?= 1000
KILLS ?= 200
SOAKED := tests/properties/test_levels_soak.py

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo test check check-fast bench soak docs clean java servers archive

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-10s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

demo: $(STAMP) java ## show viewkeeper at work
	$(BIN)/viewkeeper demo

test: check java servers archive ## run the checks, then the test suite, then what must also work on several Spark processes
	$(BIN)/pytest -n 2 --dist loadfile --no-loadscope-reorder --durations=10
	VIEWKEEPER_TEST_MASTER='local-cluster[2,1,1024]' $(BIN)/pytest -m cluster

check: $(STAMP) ## lint, formatting, types, import contracts
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports

check-fast: check ## the checks, and the tests of single layers, which need no Spark, server or warehouse: for the inner loop
	VIEWKEEPER_TEST_FAST=1 $(BIN)/pytest -n 2 --dist loadfile --no-loadscope-reorder

# Those that can be run by themselves; the others are what they share.
bench: $(STAMP) java ## run every benchmark
	@set -e; for script in $$(grep -l '^if __name__' benchmarks/*.py); do \
		echo "== $$script"; \
		$(BIN)/python "$$script"; \
	done

# Simulated runs need no server, and any process takes any of them.
soak: $(STAMP) java servers archive ## run the long randomized tests; RUNS=100000 simulated ones from SEED=1000 on, KILLS=200 in a row
	VIEWKEEPER_SOAK_RUNS=$(RUNS) VIEWKEEPER_SOAK_SEED=$(SEED) $(BIN)/pytest -m soak -n 2 --dist worksteal $(SOAKED)
	VIEWKEEPER_SOAK_KILLS=$(KILLS) $(BIN)/pytest -m soak -n 2 --dist loadfile --ignore $(SOAKED)
	VIEWKEEPER_TEST_LONG=1 $(BIN)/pytest -m hypothesis -n 2 --dist loadfile

docs: $(STAMP) ## regenerate the generated parts of the documentation, and build its site
	$(BIN)/python docs/regenerate.py
	$(BIN)/python docs/build_site.py

clean: ## remove the virtual environment, caches and build output
	rm -rf $(VENV) build dist site .cache .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# Spark runs on Java 17 or later.
java:
	@if [ -n "$$JAVA_HOME" ] && [ -x "$$JAVA_HOME/bin/java" ]; then exit 0; fi; \
	command -v java >/dev/null || { \
		if [ -e /etc/debian_version ] && [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
			apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq default-jre-headless; \
		fi; }; \
	command -v java >/dev/null || { \
		echo "viewkeeper runs Spark, which needs Java 17 or later, and there is no 'java'." \
			"Install it (on Debian and Ubuntu: apt-get install default-jre-headless), or set JAVA_HOME." >&2; exit 1; }

# The tests start private servers of their own. Here, since the processes of a test run would get in each other's way.
servers:
	@missing() { \
		PATH="$$PATH:/usr/sbin:/usr/local/sbin"; \
		command -v initdb >/dev/null || ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || echo postgresql; \
		command -v mariadbd >/dev/null || command -v mysqld >/dev/null || echo mariadb-server; \
	}; \
	if [ -n "$$(missing)" ] && [ -e /etc/debian_version ] && [ "$$(id -u)" = 0 ]; then \
		apt-get update -qq && RUNLEVEL=1 DEBIAN_FRONTEND=noninteractive apt-get install -y -qq $$(missing) >/dev/null; \
	fi; \
	if [ -n "$$(missing)" ]; then \
		echo "The tests run against PostgreSQL and MariaDB. Install what is missing:" $$(missing) >&2; exit 1; \
	fi

# Once for each environment: it takes half a minute, and saves the tests several.
archive: $(STAMP) java
	@$(BIN)/python tests/spark_archive.py

$(STAMP): pyproject.toml
	@command -v "$(PYTHON)" >/dev/null || { \
		echo "viewkeeper needs Python 3.11 or later, and there is no '$(PYTHON)'." \
			"Install it, or name another: make PYTHON=/path/to/python3" >&2; exit 1; }
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "viewkeeper needs Python 3.11 or later, and '$(PYTHON)' is $$("$(PYTHON)" -V 2>&1)." \
			"Name a newer one: make PYTHON=/path/to/python3" >&2; exit 1; }
	@"$(PYTHON)" -c 'import ensurepip, venv' 2>/dev/null || { \
		if [ -e /etc/debian_version ] && [ "$$(id -u)" = 0 ]; then \
			apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq python3-venv; \
		fi; }
	@"$(PYTHON)" -c 'import ensurepip, venv' 2>/dev/null || { \
		echo "'$(PYTHON)' cannot make virtual environments: install its venv and ensurepip modules" \
			"(on Debian and Ubuntu: apt-get install python3-venv)." >&2; exit 1; }
	"$(PYTHON)" -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev,mysql,postgres]'
	@rm -f $(VENV)/spark.jsa
	@touch $@
