# Quire. Every target installs what it needs into .venv, from PyPI alone.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(PYTHON) scripts/pip_install.py $(VENV)/bin/python
INSTALL := $(PIP) install --disable-pip-version-check
MADE := $(VENV)/.made
INSTALLED := $(VENV)/.installed
SPARK := $(VENV)/.spark
READY := $(VENV)/.ready
SECONDS ?= 0
NODES ?= 1
KILL ?=
LISTEN ?= 127.0.0.1:9092
WORKERS ?= 2
MINUTES ?= 60

.PHONY: help setup run broker java wheel lint test mutants bench bench-spark interop campaign soak clean
.DEFAULT_GOAL := help

help:
	@echo "make run [SECONDS=n] [LISTEN=127.0.0.1:9092]     Quire and pipelines on Spark, with a live view (Ctrl-C stops)"
	@echo "make run NODES=3 [KILL=1] [SECONDS=n]            the same on a cluster; KILL=1 kills a broker in the middle"
	@echo "make broker [SECONDS=n] [LISTEN=127.0.0.1:9092]  Quire alone, with a few thousand records through it"
	@echo "make wheel            build dist/quire_log-*.whl, which installs in seconds on machines like this one"
	@echo "make test             formatting, types, project rules and all tests"
	@echo "make lint             formatting and types only"
	@echo "make bench            measure Quire, and Apache Kafka if Maven is reachable"
	@echo "make bench-spark      measure Quire's Spark source and sink, and Spark's own Kafka connector"
	@echo "make interop          Apache Kafka's tools against Quire (needs Java and Maven)"
	@echo "make mutants          break the product in one place at a time: the simulator must find each"
	@echo "make campaign [MINUTES=n] [JEPSEN='command']     seeds, mutants and, if given, an outside judge, for a given time;"
	@echo "                      continues where the last one ended"
	@echo "make soak             long runs: simulator seeds, crashes, fuzzing"
	@echo "make clean            remove what make created (not your data)"

setup: $(READY)

# .installed has Quire alone, .spark also Spark, .ready also the test tools. Installing Quire and Spark is one step,
# because each step compiles Quire.
NATIVE := $(shell find src -name '*_native.p[yx]*' -o -name '*.h')
NEEDED := pyproject.toml setup.py constraints.txt $(NATIVE)

ifndef LOCKED
$(MADE):
	@$(PYTHON) scripts/one_at_a_time.py Makefile $(MAKE) -s --no-print-directory LOCKED=1 $@

# Only one make sets up at a time. Once it has the lock, it checks again what is missing.
$(INSTALLED) $(SPARK) $(READY): $(NEEDED)
	@$(PYTHON) scripts/one_at_a_time.py Makefile $(MAKE) -s --no-print-directory LOCKED=1 $@
else
$(MADE):
	@echo "setting up $(VENV), once; this takes a few minutes ..."
	@$(PYTHON) scripts/new_venv.py $(VENV)
	@$(INSTALL) --upgrade pip
	@touch $@

$(INSTALLED): $(NEEDED) | $(MADE)
	@echo "installing Quire; compiling takes a minute or two ..."
	@$(INSTALL) -c constraints.txt -e .
	@touch $@

$(SPARK): $(NEEDED) | $(MADE)
	@echo "installing Spark, once; this takes a minute or two ..."
	@$(INSTALL) -c constraints.txt -e '.[spark]'
	@touch $(INSTALLED) $@

$(READY): $(SPARK)
	@echo "installing what the tests need ..."
	@$(INSTALL) -c constraints.txt --group dev
	@touch $@
endif

java:
	@scripts/ensure-java.sh

run: $(SPARK) java
	@$(BIN)/python -m quire_samples live --seconds $(SECONDS) --listen $(LISTEN) --nodes $(NODES) $(if $(KILL),--kill)

broker: $(INSTALLED)
	@$(BIN)/python -m quire_samples broker --seconds $(SECONDS) --listen $(LISTEN)

# The wheel is compiled for this system and this version of Python.
wheel: $(MADE)
	@echo "building a wheel; compiling takes a minute or two ..."
	@rm -rf dist/quire_log-*.whl
	@$(PIP) wheel --disable-pip-version-check --no-deps --wheel-dir dist .
	@ls dist/quire_log-*.whl

lint: $(READY)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

test: lint java
	$(BIN)/lint-imports
	$(BIN)/pytest -n $(WORKERS) --dist worksteal

mutants: $(READY)
	$(BIN)/python -m simulator.mutants

bench: $(READY)
	$(BIN)/python -m benchmarks.floor
	$(BIN)/python -m benchmarks.compare
	$(BIN)/python -m benchmarks.sweep
	$(BIN)/python -m benchmarks.group_commit
	$(BIN)/python -m benchmarks.lookups
	$(BIN)/python -m benchmarks.recovery
	$(BIN)/python -m benchmarks.answers_while_recovering
	$(BIN)/python -m benchmarks.compaction
	$(BIN)/python -m benchmarks.many_partitions
	$(BIN)/python -m benchmarks.groups
	$(BIN)/python -m benchmarks.cluster
	$(BIN)/python -m benchmarks.replication
	$(BIN)/python -m benchmarks.scale
	$(BIN)/python -m benchmarks.growth

bench-spark: $(READY)
	$(BIN)/python -m benchmarks.spark
	$(BIN)/python -m benchmarks.spark_sink

interop: $(READY)
	$(BIN)/pytest -q interop -o faulthandler_timeout=1800

campaign: $(READY)
	$(BIN)/python -m campaign --minutes $(MINUTES) --mutants $(if $(JEPSEN),--jepsen "$$JEPSEN")

soak: $(READY)
	$(BIN)/python -m simulator --seeds 2000
	$(BIN)/python -m simulator --clusters --seeds 2000
	$(BIN)/python -m simulator --quorums --seeds 2000
	$(BIN)/pytest -m soak -n $(WORKERS) -o faulthandler_timeout=3600

clean:
	rm -rf $(VENV) .interop build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache src/*.egg-info
	find src -name '*.so' -delete
