# make demo: set up, then train, compare and segment on the built-in corpus.
# Both set-ups install the versions in constraints.txt, so that they still work when newer ones do not.
# make test: set up, then the suite on every backend. make test-all: with the long tests. make mutants: see tests/mutants.md.

PYTHON ?= python3.11
VENV := .venv
BIN := $(VENV)/bin
LOCKED := --constraint constraints.txt
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check $(LOCKED)

OLD_HOST := .venv-bert4keras
OLD_PIP := $(OLD_HOST)/bin/python -m pip install --quiet --disable-pip-version-check $(LOCKED)
# `make test` runs these inside bert4keras, `make test-all` all files that name tf_keras among their backends.
ON_OLD_HOST := tests/bert4keras/test_tf_keras.py

# One process a stage: fixtures are made once, and nothing is imported twice. This many stages run at a time.
# PyTorch takes about as long as the others together, so it starts first.
JOBS ?= 2
STAGES := $(addprefix test-on-,torch tensorflow jax bert4keras)
CHECKS := test-on-torch lint $(filter-out test-on-torch,$(STAGES))
OPTIONS :=

# The tests start some two hundred interpreters: without bytecode on the disk, each would compile the package anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test test-all mutants $(STAGES) lint docs constraints clean

demo: $(VENV)/demo.stamp
	KERAS_BACKEND=tensorflow $(BIN)/kcrf demo

# JAX compiles most programs of the tests for one call, so `make test` lets it optimize little: that takes half the time.
test: export JAX_DISABLE_MOST_OPTIMIZATIONS := 1
test: export COMPILE_QUICKLY := --xla_cpu_use_fusion_emitters=false --xla_cpu_parallel_codegen_split_count=1
test: $(VENV)/test.stamp $(OLD_HOST)/test.stamp
	$(MAKE) --no-print-directory --jobs=$(JOBS) --keep-going --output-sync=target $(CHECKS)

test-all: $(VENV)/test.stamp $(OLD_HOST)/test.stamp
	$(MAKE) --no-print-directory --jobs=$(JOBS) --keep-going --output-sync=target $(CHECKS) OPTIONS=--all ON_OLD_HOST=

# Two stages with two threads of torch each wait for one another: a BiLSTM took twelve times as long.
$(STAGES): export OMP_NUM_THREADS := 1
$(filter-out %bert4keras,$(STAGES)): test-on-%:
	@echo "== $*"; KERAS_BACKEND=$* $(BIN)/python -m pytest $(OPTIONS)

# XLA ends the process at a flag that it does not know, so it is asked first.
test-on-jax: export XLA_FLAGS = $(shell XLA_FLAGS="$(COMPILE_QUICKLY)" $(BIN)/python -c "import jax; jax.devices()" \
	2>/dev/null && echo "$(COMPILE_QUICKLY)")

test-on-bert4keras:
	@echo "== bert4keras on tf_keras"
	TF_KERAS=1 TF_USE_LEGACY_KERAS=1 $(OLD_HOST)/bin/python -m pytest $(OPTIONS) $(ON_OLD_HOST)

mutants: $(VENV)/test.stamp
	OMP_NUM_THREADS=1 $(BIN)/python tests/mutate.py

lint: $(VENV)/test.stamp
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy kcrf tests/typed_calls.py
	$(BIN)/lint-imports --no-cache --no-logo

# The guides and the API reference, in build/site. The variable silences a notice that the theme prints at each build.
docs: $(VENV)/docs.stamp
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/demo.stamp: $(VENV)/bin/python pyproject.toml constraints.txt
	$(PIP) --editable ".[tensorflow,reports]"
	touch $@

$(VENV)/docs.stamp: $(VENV)/bin/python pyproject.toml constraints.txt
	$(PIP) --editable ".[docs]"
	touch $@

# torch 2.13.0 by number: where an index offers its CPU build, this takes it; an open range brings CUDA along.
$(VENV)/test.stamp: $(VENV)/demo.stamp
	$(PIP) torch==2.13.0
	$(PIP) --editable ".[tensorflow,jax,torch,reports,serve,export,docs,test]"
	touch $@

# The real bert4keras, which the tests compare with and run in. It pins a Keras of 2020, hence --no-deps.
$(OLD_HOST)/bin/python:
	$(PYTHON) -m venv $(OLD_HOST)

$(OLD_HOST)/test.stamp: $(OLD_HOST)/bin/python pyproject.toml constraints.txt
	$(OLD_PIP) tensorflow-cpu==2.21.0 tf_keras==2.21.0 rich jinja2 matplotlib pytest hypothesis safetensors tokenizers google-crc32c
	$(OLD_PIP) --no-deps bert4keras==0.11.5
	$(OLD_PIP) --no-deps --editable .
	touch $@

# Writes constraints.txt anew from what is installed: after a `make clean`, run it with `LOCKED=` for the newest versions.
constraints: $(VENV)/test.stamp $(VENV)/docs.stamp $(OLD_HOST)/test.stamp
	sed -n '/^#/p' constraints.txt > build.constraints
	for python in $(BIN)/python $(OLD_HOST)/bin/python; do $$python -m pip list --format=freeze; done | tr '[:upper:]_' '[:lower:]-' \
		| sed 's/+.*//' | grep -vE '^(kcrf|pip|setuptools|wheel)==' | LC_ALL=C sort -u >> build.constraints
	mv build.constraints constraints.txt

clean:
	rm -rf $(VENV) $(OLD_HOST) build dist *.egg-info
