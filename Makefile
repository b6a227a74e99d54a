# Run `make` to see what there is.
.DEFAULT_GOAL := help
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready
PIP    := $(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt

# The benchmark's peers need packages that do not agree with each other's declared versions; see benchmarks/constraints.txt.
BENCH_VENV  := .venv-bench
BENCH_READY := $(BENCH_VENV)/.ready

.PHONY: help setup check test browser reproduce results bench bench-federation defaults mutants \
	audit mutants-audit chaos liars randomness fuzz docs study-theory compare sampling

help: ## List these targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "anechoic needs Python 3.11 or newer")'
	$(PYTHON) -m venv $(VENV)
	$(PIP) --editable '.[dev]'
	@touch $@

setup: $(READY) ## Make the environment in .venv from constraints.txt

check: $(READY) ## Lint, format, types and the direction of imports
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

test: check browser ## All checks and all tests (under 10 minutes on 2 cores)
	@if command -v chromium >/dev/null; then $(BIN)/pytest -n 2; else \
	  echo "No chromium: the reports are not tried in a browser. To try them: apt-get install chromium chromium-driver"; \
	  $(BIN)/pytest -n 2 -m 'not browser'; fi

browser: # Where there is apt and the right to use it, Debian's Chromium is installed; CI cannot do without
	@command -v chromium >/dev/null || { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null \
	  && apt-get -qq update && apt-get -qq install -y chromium chromium-driver >/dev/null; } || [ -z "$$CI" ]

reproduce: $(READY) ## Both of the paper's tables, 3 seeds a cell, beside the paper's numbers (under 3 minutes)
	$(BIN)/anechoic reproduce --seeds 3 --out runs/paper

results: $(READY) ## The committed results at the full number of seeds, and the tables on the pages (about an hour)
	for study in participation heterogeneity alternatives schedules; do \
	  $(BIN)/anechoic study $$study --out results/studies || exit 1; done
	for study in epsilon rates; do $(BIN)/anechoic study $$study --out results/paper || exit 1; done
	$(BIN)/anechoic reproduce --out results/paper
	mkdir -p docs/pictures && cp results/paper/pictures/*.svg docs/pictures/
	$(BIN)/python -m anechoic.report.markdown results README.md docs/reproduction.md docs/choosing.md

defaults: $(READY) ## What planned runs reach on MNIST, beside what else there would be (about ten minutes)
	$(BIN)/python -m anechoic.studies.defaults --out results/defaults
	$(BIN)/python -m anechoic.report.markdown results README.md docs/reproduction.md docs/choosing.md

mutants: $(READY) ## Break the privacy code on purpose; every break must turn a test red
	$(BIN)/python tests/mutants/mutants.py

audit: $(READY) ## Attack every algorithm that promises privacy; exit code 1 if a certificate is contradicted (minutes)
	for algorithm in noise-cancelling full-participation fresh-noise noisy-sgd momentum-sgd localized-minibatch \
	  localized-accelerated trusted-server full-participation-trusted localized-minibatch-trusted; do \
	  $(BIN)/anechoic audit --algorithm $$algorithm --out results/audit/$$algorithm || exit 1; done
	$(BIN)/anechoic audit --strategy square-root --out results/audit/square-root
	$(BIN)/anechoic audit --strategy banded:4 --schedule capped --out results/audit/banded
	$(BIN)/anechoic audit --algorithm noisy-sgd --strategy optimised --out results/audit/optimised
	$(BIN)/anechoic audit --algorithm momentum-sgd --whole-shards --out results/audit/whole-shards
	$(BIN)/anechoic audit --algorithm momentum-sgd --strategy square-root --pooled --out results/audit/pooled
	$(BIN)/anechoic audit --grid 0.000004 --out results/audit/whole-numbers
	for sampling in poisson assigned; do $(BIN)/anechoic audit --algorithm noisy-sgd --sampling $$sampling \
	  --runs 240000 --out results/audit/secret-$$sampling || exit 1; done
	$(BIN)/anechoic audit --attack canaries --out results/audit/canaries
	$(BIN)/anechoic audit --attack membership --algorithm noisy-sgd --rho 8 --out results/audit/membership
	$(BIN)/python -m anechoic.report.markdown results docs/audit.md

mutants-audit: $(READY) ## Break the code that releases on purpose; an audit must notice (a quarter of an hour)
	$(BIN)/python -m tests.mutants.audits

chaos: $(READY) ## Thousands of schedules of faults, and runs whose real processes are killed (about an hour)
	$(BIN)/python -m tests.chaos --schedules 2000 --breakages 120 --out results/chaos
	$(BIN)/python -m tests.chaos --processes 20 --out results/chaos

liars: $(READY) ## A lying server: 12,000 messages to machines with real stores (about 5 minutes)
	$(BIN)/python -m tests.chaos.liars --tries 12000 --out results/chaos

randomness: $(READY) ## Every sampler of noise, examined at 100 million draws (about an hour)
	$(BIN)/python -m tests.randomness --out results/randomness

fuzz: $(READY) ## A million mutated inputs at everything that reads from outside, then atheris (about an hour)
	$(PIP) --editable '.[fuzz]'
	$(BIN)/python -m tests.fuzz --atheris 60 --out results/fuzz

docs: $(READY) ## The documentation as a site, in site/
	$(PIP) --editable '.[docs]'
	$(BIN)/mkdocs build --strict --quiet
	@echo "Written to site/: open site/index.html. To search in it: $(BIN)/python -m http.server -b 127.0.0.1 -d site 8000"

sampling: $(READY) ## Records drawn in secret beside the plan, on MNIST (a few minutes)
	$(BIN)/python -m anechoic.studies.secrets --out results/sampling

study-theory: $(READY) ## Fit the convergence theorems' exponents on a problem with known optimum
	$(BIN)/python -m anechoic.studies.theory --out results/theory

compare: $(READY) ## Every private algorithm under one guarantee, tuned alike, 10 seeds (about half an hour)
	$(BIN)/anechoic compare --seeds 10 --out results/comparison
	$(BIN)/python -m anechoic.report.markdown results docs/comparing.md

$(BENCH_READY): pyproject.toml constraints.txt benchmarks/constraints.txt
	$(PYTHON) -m venv $(BENCH_VENV)
	$(BENCH_VENV)/bin/pip install --quiet --disable-pip-version-check -c benchmarks/constraints.txt torch pytest --editable .
	$(BENCH_VENV)/bin/pip install --quiet --disable-pip-version-check -c benchmarks/constraints.txt --no-deps pfl prv-accountant multiprocess dill
	@touch $@

bench: $(BENCH_READY) ## Speed beside other implementations, as ratios in one run
	$(BENCH_VENV)/bin/python -m pytest -q -p no:cacheprovider --override-ini testpaths=benchmarks benchmarks
	$(BENCH_VENV)/bin/python -m benchmarks.run --out benchmarks

bench-federation: $(READY) ## What releases of large models and Flower's rounds cost, beside peers (about half an hour)
	$(BIN)/python -m benchmarks.release --out results/federation
	$(BIN)/python -m benchmarks.overhead --out results/federation
