# Every target stands on `setup`, which makes .venv with p4cc in it and is quick when there is nothing to do.
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
PYTHON ?= python3

.PHONY: setup demo test lint bench attack docs reproduce clean

setup: $(READY)

# What must come from the system: a Python with venv and headers, a C compiler.
$(READY): pyproject.toml Makefile
	@missing=""; \
	$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || missing="python3 python3-venv"; \
	test -n "$$missing" || $(PYTHON) -c 'import os, sysconfig; os.stat(os.path.join(sysconfig.get_path("include"), "Python.h"))' 2>/dev/null \
		|| missing="python3-dev"; \
	command -v cc >/dev/null || missing="$$missing gcc libc6-dev"; \
	case "$$missing" in *python3-venv*) missing="$$missing python3-dev";; esac; \
	if [ -n "$$missing" ]; then \
		if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
			echo "installing $$missing"; \
			apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $$missing; \
		else \
			echo "p4cc needs system packages; install them with: apt-get install $$missing" >&2; exit 1; \
		fi; \
	fi
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 10) <= sys.version_info < (3, 14))' \
		|| { echo "p4cc needs Python 3.10 to 3.13; name one with: make PYTHON=python3.x $(MAKECMDGOALS)" >&2; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "installing p4cc into $(VENV)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	@touch $@

demo: setup
	@rm -rf demo
	@$(BIN)/p4cc run incast incast-star --cc dcqcn --cc hpcc --out demo

# What needs Mininet, tshark or a browser is left out where they cannot be installed; the last lines say so. They also say
# that packet tests reach all of p4src: coverage/index.html shows where they do not.
test: setup
	@missing=; \
	command -v mnexec >/dev/null || missing=mininet; \
	command -v tshark >/dev/null || missing="$$missing tshark"; \
	{ command -v chromium || command -v chromium-browser || command -v google-chrome; } >/dev/null \
		|| missing="$$missing chromium"; \
	if [ -n "$$missing" ] && [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
		apt-get update -qq; \
		for package in $$missing; do \
			echo "installing $$package"; \
			DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $$package >/dev/null \
				|| echo "$$package could not be installed"; \
		done; \
	fi
	@$(BIN)/python -m pytest --p4-coverage coverage --p4-source p4src --p4-fail-under 100

lint: setup
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(BIN)/mypy --explicit-package-bases tests
	@$(BIN)/vulture
	@$(BIN)/python -m tools.import_circles

bench: setup
	@$(BIN)/p4cc bench

# A site without anything from elsewhere, which opens from disk.
docs: setup
	@$(BIN)/python -c 'import material' 2>/dev/null || $(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[docs]'
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict
	@echo build/docs/index.html

# Fuzzers and killers, MINUTES of each kind (docs/security.md); with SEED=n the same ones again. SHORT=1: a fixed number
# of turns of each, which with a seed is the same attack on every machine.
MINUTES ?= 1
attack: setup
	@$(BIN)/python -m tools.attack $(if $(SHORT),--short,--minutes $(MINUTES)) $(addprefix --seed ,$(SEED))

# The figures of papers/ and of docs/reference-runs.md: a folder each in reproduction/, of which the name exists when all of
# it is there. So an interrupted `make reproduce` goes on where it was, and `rm -r reproduction` has everything made anew.
# One paper: `make reproduce-accurate`; one figure: `make reproduction/smartt-fig6`; the names: `python -m papers.make --list`.
reproduce: setup
	@$(BIN)/python -m papers.make

reproduce-%: setup
	@$(BIN)/python -m papers.make $*

reproduction/%: | setup
	@$(BIN)/python -m papers.make $*

clean:
	rm -rf coverage demo runs reproduction build
