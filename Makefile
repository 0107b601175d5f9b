# Two commands matter: `make demo` and `make test`. Both set up .venv first.

PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
PIP    ?= $(BIN)/pip
TORCH  ?= 2.13.0
STAMP  := $(VENV)/.installed

.DEFAULT_GOAL := help
.PHONY: help install dev demo demo-all docs checks test pages test-all mutants test-gpu adversarial clean

help:  ## List the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

# torch first and alone: which build fits depends on the hardware. A venv that sees a torch already
# (made with --system-site-packages, say) keeps it. On a machine without an NVIDIA GPU the CPU build
# is asked for by name, from the configured index if it has it, else from PyTorch's own. It comes
# without Triton, which judges Triton candidates there, and interprets them with NumPy.
$(STAMP): pyproject.toml | $(BIN)/python
	@if $(BIN)/python -c 'import torch' 2>/dev/null; then echo "torch is there"; \
	elif nvidia-smi -L 2>/dev/null | grep -q GPU; then \
	    echo "NVIDIA GPU found: installing torch with CUDA"; $(PIP) install torch; \
	else \
	    echo "no NVIDIA GPU: installing the CPU build of torch"; \
	    $(PIP) install "torch==$(TORCH)+cpu" || \
	    $(PIP) install "torch==$(TORCH)" --index-url https://download.pytorch.org/whl/cpu || exit 1; \
	    $(PIP) install triton numpy || \
	    echo "no Triton for this platform: --language triton needs it, all else works"; \
	fi
	$(PIP) install -e .
	@touch $@

install: $(STAMP)  ## Set up .venv with the torch build that fits this machine

$(VENV)/.dev: $(STAMP)
	$(PIP) install -e '.[dev]'
	$(PIP) install --no-deps -e lab
	@touch $@

dev: $(VENV)/.dev  ## The same, with the tools for working on adaexplore

# uv leaves bytecode out, and fork servers write none: without it every process that tests start would
# compile torch anew, which doubles the time of importing it.
$(VENV)/.compiled: $(VENV)/.dev
	@echo "compiling what processes of tests import"
	@$(BIN)/python -m compileall -q $(VENV)/lib src lab/src >/dev/null 2>&1 || true  # templates of packages
	@touch $@

demo: $(STAMP)  ## Optimize a real problem, with a table, best.py and report.html at the end
	$(BIN)/adaexplore explore examples/problems/mlp_block.py --steps 8 --run runs/demo-$$(date +%Y%m%d-%H%M%S)

demo-all: $(STAMP)  ## The same for every example; ends with a table over all (an hour or less)
	$(BIN)/adaexplore campaign examples/problems/*.py --steps 8 --run runs/all-$$(date +%Y%m%d-%H%M%S)

checks: $(VENV)/.dev  ## Lint, types and layers
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# A file's tests share servers and judges, so they stay in one process.
test: checks $(VENV)/.compiled  ## The checks and every kind of test: minutes on two cores
	$(BIN)/pytest -m "not slow and not gpu" -n 2 --dist loadfile --no-loadscope-reorder --max-worker-restart=0 --hypothesis-profile=fast --durations=25 --durations-min=5

pages: $(VENV)/.dev  ## Run the README and all tutorials as they stand
	$(BIN)/pytest tests/docs/test_tutorials.py -n 2

test-all: checks $(VENV)/.compiled  ## The checks and all tests that need no GPU: also the long corpora, searches, kills and resumes
	$(BIN)/pytest -m "not gpu" -n 2 --dist loadfile --no-loadscope-reorder
	$(MAKE) mutants

mutants: $(VENV)/.dev  ## Put single defects into copies of the source, for 25 minutes: 90 % must be noticed
	@mkdir -p build && rm -f build/mutants.jsonl
	$(BIN)/adaexplore-lab mutate --sample 16 --seed 15 --minutes 20
	$(BIN)/adaexplore-lab mutate src/adaexplore/search/policies --sample 24 --seed 17 --minutes 5

test-gpu: $(VENV)/.dev  ## The tests that need an NVIDIA GPU
	$(BIN)/pytest -m gpu

adversarial: $(VENV)/.dev  ## Judge the cheating and the honest corpus; prints both counts
	$(BIN)/python -m tests.adversarial

$(VENV)/.docs: $(STAMP)
	$(PIP) install -e '.[docs]'
	@touch $@

docs: $(VENV)/.docs  ## Build the site into build/site
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build

clean:  ## Remove what `make` made (runs/ stays)
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis build dist
