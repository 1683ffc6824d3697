# make demo: set up, then train, compare and segment on the built-in corpus.
# make test: set up, then the whole suite on every backend.

PYTHON ?= python3.11
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
BACKENDS := tensorflow jax torch

.PHONY: demo test lint clean

demo: $(VENV)/demo.stamp
	KERAS_BACKEND=tensorflow $(BIN)/kcrf demo

test: $(VENV)/test.stamp
	$(BIN)/ruff check .
	@set -e; for backend in $(BACKENDS); do \
		echo "== $$backend"; KERAS_BACKEND=$$backend $(BIN)/python -m pytest; \
	done

lint: $(VENV)/test.stamp
	$(BIN)/ruff check .

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/demo.stamp: $(VENV)/bin/python setup.py
	$(PIP) --editable ".[tensorflow,reports]"
	touch $@

# torch 2.13.0 by number: where an index offers its CPU build, this takes it; an open range brings CUDA along.
$(VENV)/test.stamp: $(VENV)/demo.stamp
	$(PIP) torch==2.13.0
	$(PIP) --editable ".[tensorflow,jax,torch,reports,test]"
	touch $@

clean:
	rm -rf $(VENV) build dist *.egg-info
