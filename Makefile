# Every target stands on `setup`, which makes .venv with p4cc in it and is quick when there is nothing to do.
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
PYTHON ?= python3

.PHONY: setup demo test lint bench attack docs clean
.PHONY: reproduce reproduce-reference reproduce-fairness reproduce-accurate reproduce-smartt reproduce-3cpo reproduce-sperc
.PHONY: reproduce-isolation reproduce-dart

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

bench: setup
	@$(BIN)/p4cc bench

# A site without anything from elsewhere, which opens from disk.
docs: setup
	@$(BIN)/python -c 'import material' 2>/dev/null || $(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[docs]'
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict
	@echo build/docs/index.html

# Fuzzers and killers, MINUTES of each kind (docs/security.md); with SEED=n the same ones again.
MINUTES ?= 1
attack: setup
	@$(BIN)/python -m tools.attack --minutes $(MINUTES) $(addprefix --seed ,$(SEED))

# The figures of docs/reproduction/ and docs/reference-runs.md: a folder each, of which the name exists when all of it is
# there. So an interrupted `make reproduce` goes on where it was, and `rm -r reproduction` has everything made anew. One
# part of it: `make reproduce-accurate`, for example, or `make reproduction/smartt-fig6`.
REFERENCE := $(addprefix reproduction/,incast-delay)
FAIRNESS := $(addprefix reproduction/fairness-,fig1 fig4.csv fig5 fig5c fig10 fig11)
ACCURATE := $(addprefix reproduction/,accurate-fig3 accurate-fig4 accurate-fig5 accurate-scenarios.csv)
SMARTT := $(addprefix reproduction/smartt-,fig1 fig1b fig3 fig5b fig6 fig7 fig7c fig8 fig9 fig9b fig10 fig11 fig12 fig13 \
	fig13b reps wait-gain near time-out baselines)
COLLECTIVES := $(addprefix reproduction/3cpo-,fig10 fig12 fig13 fig15 fig17 arbiter choices starts windows) \
	$(addprefix reproduction/collective-,compare buffers)
ISOLATION := $(addprefix reproduction/isolation-,fig9 fig10 fig11 fig12 matrix)
SPERC := $(addprefix reproduction/sperc-,fig5 fig7 fig8 fig9 choices scenarios.csv)
DART := $(addprefix reproduction/dart-,fig3 fig9 fig10 fig11 fig14 fig15 sensitivity expresspass order deadlock.csv \
	choices) \
	$(addprefix reproduction/,dctcp-choices rcp-choices expresspass-choices infiniband-choices)
SWEEPS := $(addprefix reproduction/,incast-delay accurate-fig5 smartt-fig10 smartt-reps smartt-wait-gain smartt-near \
	smartt-time-out smartt-baselines sperc-choices isolation-matrix 3cpo-choices \
	3cpo-starts 3cpo-windows dart-fig11 dart-fig14 dart-choices dctcp-choices rcp-choices \
	expresspass-choices infiniband-choices)

reproduce: $(REFERENCE) $(FAIRNESS) $(ACCURATE) $(SMARTT) $(COLLECTIVES) $(ISOLATION) $(SPERC) $(DART)
reproduce-reference: $(REFERENCE)
reproduce-fairness: $(FAIRNESS)
reproduce-accurate: $(ACCURATE)
reproduce-smartt: $(SMARTT)
reproduce-sperc: $(SPERC)
reproduce-3cpo: $(COLLECTIVES)
reproduce-isolation: $(ISOLATION)
reproduce-dart: $(DART)
reproduce reproduce-reference reproduce-fairness reproduce-accurate reproduce-smartt reproduce-3cpo reproduce-sperc \
reproduce-isolation reproduce-dart:
	@printf '%s\n' 'Results:' $^

reproduction/%: | setup
	$(BIN)/p4cc run $* --out $@

$(SWEEPS): reproduction/%: | setup
	$(BIN)/p4cc sweep $* --out $@

reproduction/accurate-scenarios.csv: | setup
	@mkdir -p $(@D)
	$(BIN)/python tools/accurate_scenarios.py --csv $@

reproduction/sperc-scenarios.csv: | setup
	@mkdir -p $(@D)
	$(BIN)/python tools/sperc_scenarios.py --csv $@

reproduction/dart-deadlock.csv: | setup
	@mkdir -p $(@D)
	$(BIN)/python tools/dart_deadlock.py --csv $@

reproduction/fairness-fig4.csv: | setup
	@mkdir -p $(@D)
	$(BIN)/python tools/sampling_fluid.py --csv $@

clean:
	rm -rf coverage demo runs reproduction build
