PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
DEV_STAMP := $(VENV)/.installed-dev
# uv takes a fraction of pip's time; pip installs it into .venv if it is not on the PATH. Modules are
# compiled when they are first imported: few of the training environment's ever are.
UV := $(or $(shell command -v uv),$(abspath $(BIN)/uv))
INSTALL_INTO = $(UV) pip install -q --python $(1)/bin/python
TRAIN := .venv-train
MODEL ?= build/model
NANO ?= build/nano
# Half of the tests' time is spent waiting for processes, so there are two jobs for each core.
JOBS ?= $(shell $(PYTHON) -c "import os; print(2 * (os.cpu_count() or 1))")
BY_SCOPE := --dist loadscope --no-loadscope-reorder
PARALLEL := -n $(JOBS) $(BY_SCOPE)
# Trainings wait for nothing, and each job imports PyTorch and its libraries: one job for each core.
TRAIN_JOBS ?= $(shell $(PYTHON) -c "import os; print(os.cpu_count() or 1)")
SERVICE := --ignore=tests/models --ignore=tests/export --ignore=tests/research
# What depends on the broker or the database.
SERVED := --services tests/e2e tests/notifications/test_delivery.py tests/web/api \
  tests/worker/test_codecs.py tests/worker/test_crash.py tests/worker/test_kafka_security.py \
  tests/worker/test_topics.py tests/test_compose_kafka.py tests/chaos \
  --ignore=tests/web/api/test_document.py --ignore=tests/web/api/test_docs.py
# For what never waits, so that it slows down nothing beside it that does.
NICE := nice -n 19
# The tests start hundreds of processes, and each would compile the sources again.
unexport PYTHONDONTWRITEBYTECODE
PACKAGES := stream_app benchmarks servers models export research
# Threads of one BLAS in each of the tests' processes only wait for each other.
test-fast test-slow test-services test-nightly test-training: export OMP_NUM_THREADS = 1

.DEFAULT_GOAL := help

.PHONY: help install demo test test-fast test-slow test-services test-nightly chaos gallery fuzz properties soak test-models test-training test-research check check-models format docs release release-notes schemas lock train-env folds evaluate research test-research train bundle reader nano bench benchmarks compare clean

help: ## Show the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  %-14s %s\n", $$1, $$2}'

$(abspath $(BIN)/uv): requirements/uv.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -q --no-deps --require-hashes -r requirements/uv.txt
	@touch $@

$(STAMP): requirements/service.txt pyproject.toml | $(UV)
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(call INSTALL_INTO,$(VENV)) --no-deps --require-hashes -r requirements/service.txt
	$(call INSTALL_INTO,$(VENV)) --no-deps -e .
	@touch $@

$(DEV_STAMP): $(STAMP) requirements/dev.txt
	$(call INSTALL_INTO,$(VENV)) --no-deps --require-hashes -r requirements/dev.txt
	@touch $@

install: $(STAMP) ## Create .venv with the rapport command (the service, no torch)

demo: install ## Run broker, worker, store and sample sessions on this machine; Ctrl-C stops it
	$(BIN)/rapport up

test: check test-fast ## Lint, types, import directions and all but the slow tests

# Without compiled tests each of the jobs would compile all of them, at the same time.
test-fast: $(DEV_STAMP)
	$(BIN)/python -m pytest -q --collect-only $(SERVICE) > /dev/null
	$(BIN)/python -m pytest $(PARALLEL) $(SERVICE) -m "not slow"

test-slow: $(DEV_STAMP) ## Browsers, commands, wheels, short runs of fuzzing and soak
	$(BIN)/python -m pytest $(PARALLEL) $(SERVICE) -m "slow and not nightly"

test-services: $(DEV_STAMP) ## The integration tests on Apache Kafka and PostgreSQL, and a short chaos run
	$(BIN)/python -m pytest $(PARALLEL) -m "not nightly" $(SERVED)

test-nightly: $(DEV_STAMP) ## What CI leaves out: whole services on the embedded parts, benchmarks, long fuzzing
	$(BIN)/python -m pytest $(PARALLEL) $(SERVICE) -m nightly
	$(BIN)/python -m pytest $(PARALLEL) -m nightly $(SERVED)

gallery: $(DEV_STAMP) ## Pictures of every page as each role sees it, in build/gallery
	RAPPORT_GALLERY=build/gallery $(BIN)/python -m pytest -n 0 tests/web/browser/test_gallery.py

chaos: $(DEV_STAMP) ## Run twenty long chaos runs (hours)
	$(BIN)/python -m tests.chaos --seeds 1-20

fuzz: $(DEV_STAMP) ## Send 200,000 mutated messages through the decoder and the worker's batches
	$(BIN)/python -m tests.fuzz --messages 200000

properties: $(DEV_STAMP) ## Try 2,000 examples of the properties that the tests try with 100
	$(BIN)/python -m pytest $(PARALLEL) $(SERVICE) --hypothesis-profile=many -m hypothesis

soak: $(DEV_STAMP) ## Send a million turns through a worker's processor and check its memory
	$(BIN)/python -m tests.soak

# Where their environment exists, models/ and export/ are checked, too: one run instead of two.
TYPES = $(NICE) $(if $(wildcard $(TRAIN)/.installed),$(TRAIN)/bin/mypy $(addprefix -p ,$(PACKAGES)),$(BIN)/mypy)

check: $(DEV_STAMP) ## Run lint, type and import checks
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(TYPES)
	$(BIN)/lint-imports

format: $(DEV_STAMP) ## Format the code
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

schemas: install ## Regenerate the JSON Schemas
	$(BIN)/python -m stream_app.contracts.schema

lock: ## Re-resolve the dependencies (needs uv)
	uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header --upgrade --excludes requirements/excluded.txt --extra apprise --extra cpu --extra tracing pyproject.toml -o requirements/worker.txt
	uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header --upgrade --excludes requirements/excluded.txt --extra gpu --extra tracing -c requirements/worker.txt pyproject.toml -o requirements/gpu.txt
	uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header --upgrade --excludes requirements/excluded.txt --extra cpu --extra web --extra analytics --extra importers --extra tracing -c requirements/worker.txt pyproject.toml -o requirements/web.txt
	echo "hatchling<2" | uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header --upgrade - -o requirements/build.txt
	uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header --upgrade --excludes requirements/excluded.txt --extra demo -c requirements/worker.txt -c requirements/web.txt pyproject.toml -o requirements/service.txt
	uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header --upgrade --excludes requirements/excluded.txt --extra demo --extra analytics --extra tracing --extra dev -c requirements/service.txt pyproject.toml -o requirements/dev.txt
	echo uv | uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header -c requirements/dev.txt - -o requirements/uv.txt
	uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header --upgrade --extra demo --extra analytics --extra tracing --extra dev --extra train -c requirements/dev.txt pyproject.toml -o requirements/train.txt

$(TRAIN)/.installed: requirements/train.txt | $(UV)
	test -x $(TRAIN)/bin/python || $(PYTHON) -m venv $(TRAIN)
	$(call INSTALL_INTO,$(TRAIN)) --no-deps --require-hashes -r requirements/train.txt
	$(call INSTALL_INTO,$(TRAIN)) --no-deps -e .
	@touch $@

train-env: $(TRAIN)/.installed ## Create .venv-train with torch, for models/ and export/

test-models: test-training check-models ## Types and tests of models/ and export/

test-training: train-env
	$(NICE) $(TRAIN)/bin/python -m pytest --timeout 1200 -n $(TRAIN_JOBS) $(BY_SCOPE) tests/models tests/export

test-research: train-env ## Tests of research/: the published methods and the comparison
	$(TRAIN)/bin/python -m pytest -n $(TRAIN_JOBS) $(BY_SCOPE) tests/research

check-models: train-env ## Types, with those of models/ and export/
	$(NICE) $(TRAIN)/bin/mypy $(addprefix -p ,$(PACKAGES))

DATA_DIR := $(if $(DATA),--data-dir $(DATA))
TRAIN_PY := $(TRAIN)/bin/python

folds: train-env ## Train one model per fold, with its outcome heads (hours on two cores)
	$(TRAIN_PY) -m models.fit.crossvalidate $(DATA_DIR)
	for fold in 0 1 2 3 4; do \
	  $(TRAIN_PY) -m models.fit.perceived --model build/folds/$$fold $(DATA_DIR) || exit 1; done

evaluate: train-env ## Regenerate docs/evaluation from the folds
	$(TRAIN_PY) -m research run micromodels --threads 1 $(DATA_DIR)
	$(TRAIN_PY) -m models.construct evaluate $(DATA_DIR)
	$(TRAIN_PY) -m models.outcomes ratings $(DATA_DIR)
	$(TRAIN_PY) -m models.outcomes evaluate $(DATA_DIR)
	$(TRAIN_PY) -m models.evaluate.baselines $(DATA_DIR)
	$(TRAIN_PY) -m models.evaluate.multitrait $(DATA_DIR)
	$(TRAIN_PY) -m models.probes --bundle stream_app/bundles/default --name ours $(DATA_DIR)
	$(TRAIN_PY) -m research.recipe.ablation --threads 2 $(DATA_DIR)
	$(TRAIN_PY) -m models.evaluate $(DATA_DIR)
	$(TRAIN_PY) -m models.card

research: train-env ## Run the published methods on our folds, and compare all (hours on two cores)
	$(TRAIN_PY) -m research.recipe.masked_language $(DATA_DIR)
	for method in micromodel_seeds transfer low_resource; do \
	  $(TRAIN_PY) -m research run $$method --threads 1 $(DATA_DIR) || exit 1; done
	for method in frozen_levels bi_encoder window_classifier; do \
	  $(TRAIN_PY) -m research run $$method $(DATA_DIR) || exit 1; done
	$(TRAIN_PY) -m research.compare $(DATA_DIR)

train: train-env ## Train a model on nine tenths of the corpora (DATA=folder)
	$(TRAIN_PY) -m models.fit.train --out $(MODEL) $(DATA_DIR)
	$(TRAIN_PY) -m models.fit.perceived --model $(MODEL) --no-inner $(DATA_DIR)

bundle: train-env ## Calibrate from the folds, export MODEL=folder as the default bundle, fit its index and outcomes
	$(TRAIN_PY) -m models.fit.calibrate --out $(MODEL)/calibration.json $(DATA_DIR)
	$(TRAIN_PY) -m export --model $(MODEL) --out stream_app/bundles/default $(DATA_DIR)
	$(TRAIN_PY) -m export.reactions --bundle stream_app/bundles/default $(DATA_DIR)
	$(TRAIN_PY) -m models.construct fit --bundle stream_app/bundles/default $(DATA_DIR)
	$(TRAIN_PY) -m models.outcomes fit --bundle stream_app/bundles/default $(DATA_DIR)
	$(TRAIN_PY) -m models.fit.distress fit --bundle stream_app/bundles/default $(DATA_DIR)
	$(TRAIN_PY) -m models.evaluate.multitrait $(DATA_DIR)
	$(TRAIN_PY) -m models.evaluate.multitrait --bundle stream_app/bundles/default
	$(TRAIN_PY) -m models.construct shipped $(DATA_DIR)
	$(TRAIN_PY) -m models.evaluate.gold_rationales $(DATA_DIR)

# An accelerator does each training in minutes; two cores take an hour.
reader: train-env ## Train the reader (ENCODER=folder) and its two calibrating folds, add it to the default bundle
	for fold in 0 1; do \
	  $(TRAIN_PY) -m models.reader.train --encoder $(ENCODER) --fold $$fold --out build/reader/$$fold $(DATA_DIR) || exit 1; done
	$(TRAIN_PY) -m models.reader.evaluation.evaluate build/reader/0 build/reader/1 --out docs/evaluation/reader/minilm-two-folds.json $(DATA_DIR)
	$(TRAIN_PY) -m models.reader.train --encoder $(ENCODER) --keep --out build/reader $(DATA_DIR)
	$(TRAIN_PY) -m models.reader.calibrate build/reader/0 build/reader/1 --ordinary build/reader/ordinary.npy --out build/reader/calibration.json $(DATA_DIR)
	$(TRAIN_PY) -m export.reader --model build/reader --encoder $(ENCODER) $(DATA_DIR)
	$(TRAIN_PY) -m models.reader.blend build/reader/0 build/reader/1 --calibration build/reader/calibration.json $(DATA_DIR)
	$(TRAIN_PY) -m models.reader.evaluation.index $(DATA_DIR)
	$(TRAIN_PY) -m models.reader.evaluation.baselines $(DATA_DIR)
	$(TRAIN_PY) -m models.reader.evaluation.ceilings $(DATA_DIR)
	$(TRAIN_PY) -m models.reader.evaluation.page

nano: train-env ## Distil MODEL=folder into the small bundle and compare the two (hours on two cores)
	$(TRAIN_PY) -m models.distil train --teacher $(MODEL) --out $(NANO) --resume $(DATA_DIR)
	$(TRAIN_PY) -m models.fit.perceived --model $(NANO) --no-inner $(DATA_DIR)
	$(TRAIN_PY) -m models.distil calibrate --teacher $(MODEL) --student $(NANO) $(DATA_DIR)
	$(TRAIN_PY) -m export --model $(NANO) --out stream_app/bundles/nano --name rapport-nano $(DATA_DIR)
	$(TRAIN_PY) -m export.reactions --bundle stream_app/bundles/nano $(DATA_DIR)
	$(TRAIN_PY) -m models.distil outcomes
	$(TRAIN_PY) -m models.fit.distress fit --bundle stream_app/bundles/nano $(DATA_DIR)
	$(TRAIN_PY) -m models.construct fit --bundle stream_app/bundles/nano --own $(DATA_DIR)
	$(TRAIN_PY) -m models.evaluate.multitrait --bundle stream_app/bundles/nano
	$(TRAIN_PY) -m models.distil compare $(DATA_DIR)

docs: $(DEV_STAMP) ## Build the documentation site in build/site
	$(BIN)/python -m sphinx -q -E -W --keep-going -d build/doctrees docs build/site

release: $(DEV_STAMP) ## Build, check and describe VERSION in dist, and print the steps that publish it
	$(BIN)/python -m servers.release $(VERSION)

release-notes: $(DEV_STAMP) ## Print a release's part of the changelog (VERSION=0.1.0)
	$(BIN)/keepachangelog show $(VERSION) CHANGELOG.md

bench: install ## Compare the throughput of the pipeline and of the ONNX sessions alone
	$(BIN)/rapport demo bench

benchmarks: $(DEV_STAMP) train-env ## Measure the tables of docs/performance.md (an hour on an idle machine)
	$(BIN)/python -m benchmarks $(if $(ONLY),--only $(ONLY))

compare: $(DEV_STAMP) ## Compare this checkout's speed with a release's, REF=git reference (ten minutes)
	$(BIN)/python -m benchmarks.release_comparison $(REF)

clean: ## Remove environments and caches
	rm -rf $(VENV) $(TRAIN) build .mypy_cache .ruff_cache .pytest_cache .hypothesis
