# `make demo` and `make test` need nothing but python3 (3.11 or newer) and make.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
# an editable install of the package and what its checks need, remade when pyproject.toml changes
STAMP := $(VENV)/.installed

.PHONY: demo test test-slow check format bench reproduction docs clean

demo: $(STAMP)  ## the main job, end to end, on data inside the package
	$(BIN)/treeproof demo

test: $(STAMP)  ## the default tests
	$(BIN)/python -m pytest -n auto --dist loadfile

test-slow: $(STAMP)  ## the long proofs too
	$(BIN)/python -m pytest -n auto --dist loadfile -m "slow or not slow"

check: $(STAMP)  ## lint, format and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(STAMP)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(VENV)/.bench  ## the speed figures, as ratios measured in one run
	$(BIN)/python benchmarks/additive.py
	$(BIN)/python benchmarks/ensembles.py

reproduction: $(STAMP)  ## every table of the paper, in full (about an hour; resumable), into docs/reproduction.md
	$(BIN)/treeproof reproduce --out reproduction
	cp reproduction/reproduction.md docs/reproduction.md
	mkdir -p docs/plots && cp reproduction/plots/*.svg docs/plots/

docs: $(VENV)/.docs  ## the documentation site, warnings are errors
	$(BIN)/mkdocs build --strict

clean:
	rm -rf $(VENV) build dist site .pytest_cache .ruff_cache .mypy_cache treeproof-demo
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "treeproof needs Python 3.11 or newer; name one with: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(STAMP): pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[dev]"
	@touch $@

$(VENV)/.bench: $(STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[bench]"
	@touch $@

$(VENV)/.docs: $(STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[docs]"
	@touch $@
