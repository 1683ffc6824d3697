# make demo: set up, then train, compare and segment on the built-in corpus.
# make test: set up, then the whole suite on every backend.

PYTHON ?= python3.11
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
TESTS := -m pytest -n 2 --dist worksteal
# What asks no backend for anything or runs the peers is tested once; the scripts run where their users are.
ONCE := $(wildcard tests/test_architecture.py tests/test_tags.py)  
	architecture tags metrics corpora downloads features lexicon tokenizers reports peers demo porting)
SCRIPTS := $(patsubst %,tests/test_%.py,snippets examples)

OLD_HOST := .venv-bert4keras
OLD_PIP := $(OLD_HOST)/bin/python -m pip install --quiet --disable-pip-version-check
ON_OLD_HOST := $(patsubst %,tests/test_%.py,\
	crf layers learning_rates memm crf_weights optimizers schedules extensions variables monitor old_host \
	examples porting)

.PHONY: demo test lint clean

demo: $(VENV)/demo.stamp
	KERAS_BACKEND=tensorflow $(BIN)/kcrf demo

# Two workers with two threads of torch each wait for one another: a BiLSTM took twelve times as long.
test: export OMP_NUM_THREADS := 1
test: $(VENV)/test.stamp $(OLD_HOST)/test.stamp
	$(BIN)/ruff check .
	@echo "== tensorflow"; KERAS_BACKEND=tensorflow $(BIN)/python $(TESTS)
	@echo "== jax"; KERAS_BACKEND=jax $(BIN)/python $(TESTS) $(addprefix --ignore=,$(ONCE))
	@echo "== torch"; KERAS_BACKEND=torch $(BIN)/python $(TESTS) $(addprefix --ignore=,$(ONCE) $(SCRIPTS))
	@echo "== bert4keras on tf_keras"; TF_KERAS=1 TF_USE_LEGACY_KERAS=1 $(OLD_HOST)/bin/python $(TESTS) $(ON_OLD_HOST)

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

# The real bert4keras, which the tests compare with and run in. It pins a Keras of 2020, hence --no-deps.
$(OLD_HOST)/bin/python:
	$(PYTHON) -m venv $(OLD_HOST)

$(OLD_HOST)/test.stamp: $(OLD_HOST)/bin/python setup.py
	$(OLD_PIP) tensorflow-cpu==2.21.0 tf_keras==2.21.0 rich matplotlib pytest pytest-xdist hypothesis safetensors tokenizers
	$(OLD_PIP) --no-deps bert4keras==0.11.5
	$(OLD_PIP) --no-deps --editable .
	touch $@

clean:
	rm -rf $(VENV) $(OLD_HOST) build dist *.egg-info
