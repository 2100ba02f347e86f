# Every target works on a fresh clone: what it needs is made first.
PYTHON ?= python3
BIN := .venv/bin

.DEFAULT_GOAL := help
.PHONY: help setup demo test lint bench clean

help: ## Show this help
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: .venv/installed ## Make .venv and install the tool with its tested set of packages

.venv/installed: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[dev]'
	touch $@

demo: setup ## Train TACO and MLM on the built-in corpus, two minutes each, judge and compare them
	$(BIN)/taco-train +experiment=demo
	$(BIN)/taco-glue run=outputs/demo tasks=docstring_topic
	$(BIN)/taco-compare runs=outputs/demo baseline=mlm
	@echo "next: .venv/bin/taco-train +experiment=ablations budget=10min"

test: setup ## Run the tests
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n auto

lint: setup ## Check style and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: setup ## Measure speed and memory beside their targets (QUICK=1: in two minutes)
	$(BIN)/python -m benchmarks $(if $(QUICK),--quick)

clean: ## Remove what make and the tools made, except outputs/
	rm -rf .venv build *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
