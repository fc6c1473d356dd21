# The commands of this project. `make run` and `make test` install what they need, also on a bare Debian 12.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
PIP_INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check
PYTEST_ARGS ?=
# Two workers: the suite starts Tesseract and worker processes of its own, and more do not fit two cores.
PYTEST_WORKERS ?= 2
# A module stays with one of them, so what its tests share, a server or a whole ingest, is made once; in the order of
# the folders, so that the long ones are not last.
PYTEST_SHARES := --dist loadscope --no-loadscope-reorder
# Where `make test-vllm` keeps vLLM, 2.5 GB: elsewhere, it outlives this folder.
VLLM_VENV ?= .venv-vllm
# Where `make test` keeps the validator of FOCUS files, 0.6 GB, if there is the Python 3.12 that it needs.
FOCUS_VENV ?= .venv-focus
PYTHON312 := $(or $(PYTHON312),$(shell for python in python3.12 "$$HOME"/.pyenv/versions/3.12.*/bin/python; do \
  "$$python" -c "" 2>/dev/null && echo "$$python" && break; done))
# How long the pool is put under fire. From six minutes on with 300 pages, below with three quarters of them.
CHAOS_MINUTES ?= 10
BENCH_ARGS ?=
LOCK_ARGS ?=
SUDO := $(shell [ "$$(id -u)" = 0 ] || echo sudo)

.DEFAULT_GOAL := help
.PHONY: help install run test test-vllm chaos check bench lock lock-vllm lock-focus clean system-packages test-packages
.DELETE_ON_ERROR:

help:
	@echo "make install system packages and the Python environment, in .venv"
	@echo "make run     read every document in samples/ into out/"
	@echo "make test    run the tests"
	@echo "make test-vllm run the tests that need a real vLLM, on this processor"
	@echo "make chaos   put a pool of workers under fire: CHAOS_MINUTES=3 for fewer pages"
	@echo "make check   lint, formatting, types and import fences"
	@echo "make bench   measure speed and memory, and print tables"
	@echo "make lock    pin the requirements again, with hashes"
	@echo "make clean   remove the environment and everything built"

install: $(VENV)/runtime.stamp

run: install
	$(BIN)/doctriage ingest samples --out out

test: $(VENV)/dev.stamp test-packages $(if $(PYTHON312),$(FOCUS_VENV)/focus.stamp)
	OMP_THREAD_LIMIT=1 FOCUS_VENV=$(FOCUS_VENV) $(BIN)/python -m pytest -n $(PYTEST_WORKERS) $(PYTEST_SHARES) $(PYTEST_ARGS)

test-vllm: $(VENV)/dev.stamp $(VLLM_VENV)/checkpoints.stamp
	$(BIN)/python -m pytest tests/vllm --vllm-venv $(VLLM_VENV) $(PYTEST_ARGS)

chaos: $(VENV)/dev.stamp test-packages
	$(BIN)/python -m pytest tests/chaos --minutes $(CHAOS_MINUTES) --timeout 1200 $(PYTEST_ARGS)

check: $(VENV)/dev.stamp
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo

bench: $(VENV)/dev.stamp
	$(BIN)/python -m benchmarks $(BENCH_ARGS)

# Installs the packages in requirements/debian.txt that are missing; says what they are where there is no apt-get.
system-packages:
	@missing=""; \
	for name in $$(cat requirements/debian.txt); do \
	  [ "$$(dpkg-query -W -f '$${db:Status-Status}' $$name 2>/dev/null)" = installed ] || missing="$$missing $$name"; \
	done; \
	[ -n "$$missing" ] || exit 0; \
	if command -v apt-get >/dev/null 2>&1; then \
	  $(SUDO) apt-get update -qq && \
	  $(SUDO) env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $$missing >/dev/null; \
	else \
	  echo "No apt-get here; install what these Debian packages hold, if you have not yet:$$missing"; \
	fi

test-packages: | system-packages
	@requirements/debian_test.sh

$(VENV)/bin/python: | system-packages
	@command -v "$(PYTHON)" >/dev/null || { echo "Install Python 3.11 or newer, or name it: make PYTHON=…"; exit 1; }
	$(PYTHON) -m venv $(VENV)

# The opencv builds conflict, so some packages come without their dependencies: docs/decisions/0002.
$(VENV)/runtime.stamp: requirements/runtime.txt requirements/nodeps.txt pyproject.toml | system-packages $(VENV)/bin/python
	$(PIP_INSTALL) --require-hashes -r requirements/runtime.txt
	$(PIP_INSTALL) --require-hashes --no-deps -r requirements/nodeps.txt
	$(PIP_INSTALL) --no-deps --no-build-isolation --editable .
	@touch $@

$(VENV)/dev.stamp: requirements/dev.txt $(VENV)/runtime.stamp
	$(PIP_INSTALL) --require-hashes -r requirements/dev.txt
	@touch $@

# Nothing is compiled to bytecode but what is imported: most of torch and transformers never is.
$(VLLM_VENV)/vllm.stamp: requirements/vllm.txt $(wildcard tests/vllm/environment/*.py) | system-packages
	$(PYTHON) -m venv $(VLLM_VENV)
	$(VLLM_VENV)/bin/python -m pip install --quiet --disable-pip-version-check --no-compile \
	  --require-hashes --no-deps -r requirements/vllm.txt
	$(VLLM_VENV)/bin/python tests/vllm/environment/complete.py
	@touch $@

$(VLLM_VENV)/checkpoints.stamp: $(VLLM_VENV)/vllm.stamp tests/vllm/tiny_checkpoints.py $(wildcard tests/vllm/chat_templates/*.jinja)
	$(VLLM_VENV)/bin/python tests/vllm/tiny_checkpoints.py $(VLLM_VENV)/checkpoints
	@touch $@

$(FOCUS_VENV)/focus.stamp: requirements/focus.txt
	$(PYTHON312) -m venv $(FOCUS_VENV)
	$(FOCUS_VENV)/bin/python -m pip install --quiet --disable-pip-version-check --no-compile \
	  --require-hashes --no-deps -r requirements/focus.txt
	@touch $@

lock: $(VENV)/dev.stamp
	requirements/lock.sh $(LOCK_ARGS)

lock-vllm: $(VENV)/dev.stamp
	requirements/lock_vllm.sh $(LOCK_ARGS)

lock-focus:
	requirements/lock_focus.sh $(PYTHON312) $(LOCK_ARGS)

clean:
	rm -rf $(VENV) .venv-vllm .venv-focus build out .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis *.egg-info
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
