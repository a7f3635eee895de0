# Each target makes .venv and installs what it needs first.
PYTHON ?= python3
PORT ?= 8000
PIP = 26.1
BIN = .venv/bin
BUILD = $(BIN)/python scripts/build.py

PYTEST = $(BIN)/python -m pytest --numprocesses auto --dist loadfile

.PHONY: help serve site offline test test-fast test-all bench measure reproduce render check clean

help:
	@echo "make serve | site | offline | test | test-fast | test-all | bench | measure | reproduce | render | check | clean"

serve: .venv/site.installed
	$(BUILD) serve --address 127.0.0.1:$(PORT)

site: .venv/site.installed
	$(BUILD) site

offline: .venv/site.installed
	$(BUILD) site --offline

# Before every landing, and in CI: ten minutes on two idle cores.
test: .venv/test.installed
	$(PYTEST) -m "not slow"

# The laws of pages and data, and the tests of pages and snippets that differ from main.
test-fast: .venv/test.installed
	$(PYTEST) -m "not slow" $$($(BIN)/python -m tests.affected_tests)

# Every night and before a release: also what takes long.
test-all: .venv/test.installed
	$(PYTEST)

# Times with their spread. No test asserts a time.
bench: .venv/test.installed
	$(BIN)/python -m tests.bench

measure: .venv/run.installed
	$(BUILD) measure

# One experiment on this machine, its figure then beside the published one.
reproduce: .venv/run.installed
	@test -n "$(NAME)" || { echo "Which experiment? make reproduce NAME=init_gradients"; exit 1; }
	MACHINE=yours $(BUILD) measure $(NAME)
	$(BUILD) serve --address 127.0.0.1:$(PORT)

render: .venv/run.installed
	$(BUILD) render

check: .venv/test.installed
	$(BUILD) check

clean:
	rm -rf .venv .cache site site-offline

.venv/python.ready:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "Python 3.11 or newer is needed: make PYTHON=python3.12 ..."; exit 1; }
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check pip==$(PIP)
	touch $@

# Groups of pyproject.toml, at the versions of requirements.txt; so is what builds the
# one package that comes as source.
.venv/%.installed: .venv/python.ready pyproject.toml requirements.txt
	$(BIN)/python -m pip install --quiet --group $* \
	  --constraint requirements.txt --build-constraint requirements.txt
	touch $@
