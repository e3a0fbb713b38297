# One environment, .venv, made on first use; stamp files remember what is installed.
VENV    := .venv
PYTHON  ?= python3
DATA    ?= ./data
CYCLES  ?= 200
# A test that fails is run once more. One that passes then has failed by chance: a defect still, in the test or in the
# broker, and the end shows how it failed (conftest.py). `make test AGAIN=` runs each test once.
AGAIN   ?= --reruns 1
BIN     := $(VENV)/bin
# Differential tests that are cheap, run on a real Apache Kafka each time: so the recordings and what starts Kafka stay right.
SMOKE   := compat/differential/api_versions compat/differential/configs/test_config_definitions.py
SPARK   := compat/clients/spark
RUN     := $(BIN)/.run-installed
TESTING := $(BIN)/.test-installed

.DEFAULT_GOAL := help
.PHONY: help run install install-test test check format unit compat compat-apache compat-record compat-spark compat-spark-full jars bench contract torture clean

help:  ## list these targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-18s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

run: $(RUN)  ## install and start the broker on 127.0.0.1:9092, data in ./data
	@exec $(BIN)/kbroker serve --data $(DATA)

install: $(RUN)  ## make .venv with the kbroker command
install-test: $(TESTING)  ## make .venv with all that the tests need

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "kbroker needs Python 3.11 or newer, this is " + sys.version.split()[0])'
	$(PYTHON) -m venv $(VENV)

$(RUN): pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e .
	@touch $@

$(TESTING): pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[spark,test]'
	@touch $@ $(RUN)

test: check unit compat  ## everything CI runs: check, unit, compat

check: $(TESTING)  ## lint, format, types, import directions
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(TESTING)  ## format and fix what ruff can
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

unit: $(TESTING)  ## the tests of tests/
	$(BIN)/python -m pytest tests -q -n 2 --dist loadfile --no-loadscope-reorder $(AGAIN)

compat: $(TESTING) jars  ## real clients on kbroker, and its answers against recorded ones of Apache Kafka; benchmarks, tiny
	$(BIN)/python -m pytest compat benchmarks -q -n 2 $(AGAIN)
	KBROKER_COMPAT=apache $(BIN)/python -m pytest $(SMOKE) -q $(AGAIN)

compat-apache: $(TESTING) jars  ## the same tests on a real Apache Kafka, and the recordings against its answers
	KBROKER_COMPAT=apache $(BIN)/python -m pytest compat -q -n 2 $(AGAIN)

compat-record: $(TESTING) jars  ## record anew what a real Apache Kafka answers
	KBROKER_COMPAT=record $(BIN)/python -m pytest compat/differential -q -n 2

compat-spark: $(TESTING) jars  ## Spark's own kafka connector and the pipeline
	$(BIN)/python -m pytest $(SPARK) -q

compat-spark-full: $(TESTING) jars  ## the same with millions of rows, large records and many kills
	KBROKER_COMPAT=both $(BIN)/python -m pytest $(SPARK) -q -m "spark_full or not spark_full"

jars: $(TESTING)  ## download the pinned Kafka jars
	@$(BIN)/python -m compat.harness.jars

bench: $(TESTING) jars  ## kbroker and Apache Kafka side by side
	$(BIN)/python -m benchmarks.compare --save docs/benchmarks
	$(BIN)/python -m benchmarks.growth --save docs/benchmarks
	$(BIN)/python -m benchmarks.http --save docs/benchmarks
	$(BIN)/python -m docs.performance

contract: $(TESTING)  ## what the HTTP API answers against its OpenAPI document, at length
	CONTRACT_EXAMPLES=300 $(BIN)/python -m pytest tests/http/test_contract.py -q

torture: $(TESTING)  ## kill -9, injured files, no descriptors, no room, wrong passwords, slow streams, again and again, and count what was acknowledged
	$(BIN)/python -m tests.torture.kill_cycles --cycles $(CYCLES)
	$(BIN)/python -m tests.torture.transaction_history --cycles $(CYCLES)
	$(BIN)/python -m tests.torture.corruption --cycles $(CYCLES)
	$(BIN)/python -m tests.torture.descriptor_shortage --cycles $(CYCLES)
	$(BIN)/python -m tests.torture.full_disk --cycles $(CYCLES)
	$(BIN)/python -m tests.torture.share_consumers --cycles $(CYCLES)
	$(BIN)/python -m tests.torture.failed_logins --cycles $(CYCLES)
	$(BIN)/python -m tests.torture.streams --cycles $(CYCLES)
	$(BIN)/python -m tests.torture.backups --cycles $(CYCLES)

clean:  ## remove the environment and all caches (not ./data)
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache .coverage htmlcov dist build
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
