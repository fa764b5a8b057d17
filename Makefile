# Every target stands on `setup`, which makes .venv with p4cc in it and is quick when there is nothing to do.
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
PYTHON ?= python3

.PHONY: setup demo test lint bench reproduce clean

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

# What needs Mininet or tshark is left out where they cannot be installed; the last lines say so.
test: setup
	@if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && ! { command -v mnexec && command -v tshark; } >/dev/null; then \
		echo "installing mininet tshark"; \
		{ apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends mininet tshark; } \
			>/dev/null || echo "mininet and tshark could not be installed"; \
	fi
	@$(BIN)/python -m pytest

lint: setup
	@$(BIN)/ruff check .
	@$(BIN)/mypy

bench: setup
	@$(BIN)/p4cc bench

# The figures of docs/reproduction.md.
reproduce: setup
	@rm -rf reproduction
	@$(BIN)/p4cc run accurate-fig3 --out reproduction/accurate-fig3
	@$(BIN)/p4cc run accurate-fig4 --out reproduction/accurate-fig4
	@$(BIN)/p4cc sweep accurate-fig5 --out reproduction/accurate-fig5
	@$(BIN)/python tools/accurate_scenarios.py --csv reproduction/accurate-scenarios.csv
	@for figure in 1 5 5c 10 11; do $(BIN)/p4cc run fairness-fig$$figure --out reproduction/fairness-fig$$figure || exit 1; done
	@for figure in 1 1b 3 5b 7 8 9 9b 11 13; do $(BIN)/p4cc run smartt-fig$$figure --out reproduction/smartt-fig$$figure || exit 1; done
	@$(BIN)/p4cc run smartt-fig6 --out reproduction/smartt-fig6
	@$(BIN)/p4cc run smartt-fig7c --out reproduction/smartt-fig7c
	@$(BIN)/p4cc run smartt-fig12 --out reproduction/smartt-fig12
	@$(BIN)/p4cc sweep smartt-fig10 --out reproduction/smartt-fig10
	@$(BIN)/p4cc sweep smartt-wait-gain --out reproduction/smartt-wait-gain
	@$(BIN)/p4cc sweep smartt-near --out reproduction/smartt-near
	@$(BIN)/p4cc sweep smartt-time-out --out reproduction/smartt-time-out

clean:
	rm -rf demo runs reproduction build
