# make demo   sets everything up, indexes examples/, checks it, asks three questions
# make test   sets everything up, runs the tests against real Postgres and Elasticsearch, except long ones
# make test-all runs every test, long ones as well
# make test-ci  runs all but nightly ones; at most three that failed are run once more, alone
# make test-core runs the core's unit tests as if no system but `documents` were installed
# make coverage runs every test, and measures which lines they execute: twice as long
# make test-unit runs the fast half of the unit tests, in less than a minute
# make test-kills kills runs, moves of builds, erasures, experience and code memory twenty times each (KILLS=…)
# make test-operator walks 300 random steps of an operator with two installations (STEPS=… SEED=…)
# make test-faults takes 200 random steps through faults of every kind (STEPS=… SEED=…)
# make fuzz   parses thousands of damaged documents of every format, asks in random trees of pages, others each time
# make bench  measures the chain beside bare Elasticsearch (benchmarks/README.md tells of others)
# make audit  compares licences, writes the bill of materials, asks for known vulnerabilities
# make docs   writes the documentation as a site into .local/site
# make screenshots takes the pictures of docs/images in a temporary installation
# make browser installs a Chromium for the tests that need one (Debian's, as root)
# make renderers installs mandoc and pandoc for the tests of man pages (Debian's, as root)
# make pooler installs PgBouncer for the tests of Postgres behind a pooler (Debian's, as root)
# make writer installs xllamacpp and gguf beside the project, for the test of answers offline
# make php    installs PHP and Laravel for the tests that compare with it (Debian's, as root)
# make up     starts Postgres, Elasticsearch, Dagster's UI and daemon; make down stops them

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
CODE := rag_assets resources sensors checks client tests benchmarks examples docs

# Hundreds of processes that tests and commands start would each compile the project anew, and
# each worker all tests: a quarter of what a process start computes, half of a collection.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: setup demo test test-all test-core test-ci coverage php browser screenshots pooler renderers writer test-unit test-security test-kills test-operator test-faults fuzz bench bench-linear bench-quality bench-rivals \
	bench-serving bench-guidelines bench-code bench-code-truth bench-django-truth bench-code-questions bench-code-repositories bench-code-identifiers bench-agents up down lint format lock lock-rivals audit sbom docs clean

setup: $(READY)

$(READY): requirements/bootstrap.txt requirements/lock.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "error: Python 3.11 or newer is needed (PYTHON=… chooses another)"; exit 1; }
	@echo "Setting up $(VENV): about a minute the first time"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check \
		--require-hashes -r requirements/bootstrap.txt
	@$(BIN)/uv pip install --quiet --compile-bytecode --python $(BIN)/python \
		--require-hashes --no-deps -r requirements/lock.txt
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation -e .
	@touch $(READY)

demo: setup
	@$(BIN)/rag-assets demo

TESTED := $(BIN)/python -m pytest -n 3 --dist loadfile --no-loadscope-reorder

# One integration test of each part: the chain, search, access, the service, and each system.
MAIN := $(addprefix tests/integration/,test_chain.py test_incremental.py test_search.py \
	test_access.py test_tenants.py test_secrets_end_to_end.py api/test_service.py \
	checks/test_index_checks.py storage/index/test_searching.py \
	$(addprefix systems/,agent_docs/test_agent_tenants.py code_memory/test_routes.py \
	experience/test_loop.py team_guidelines/test_routes.py workspace/test_records.py))

test: setup
	@$(TESTED) -m "not long" $(MAIN) tests/unit

test-all: setup
	@$(TESTED) --durations=40 --durations-min=20

# What is no unit test of the core: it needs the systems, or describes the whole project.
NOT_CORE := $(addprefix tests/unit/,systems docs benchmarks examples test_layout.py)
# Core tests that try what each installed system adds, and so are run with systems too.
WITH_SYSTEMS := $(addprefix tests/unit/ingest/,parsing/test_fuzz.py workers/test_tasks.py)
# The status 1 is that of a run that reached its end.
RERUN := test $$? -eq 1 && $(BIN)/python -m tests.rerun

test-core: setup
	@export RAG_ASSETS_TEST_SYSTEMS=documents; \
		$(TESTED) -m "not nightly" tests/unit $(NOT_CORE:%=--ignore=%) || { $(RERUN); }

test-ci: test-core
	@$(TESTED) -m "not nightly" --durations=40 --durations-min=20 tests/e2e tests/integration \
		tests/security $(NOT_CORE) $(WITH_SYSTEMS) || { $(RERUN); }

coverage: setup
	@$(TESTED) --cov --cov-report=term:skip-covered

php:
	@php -m 2> /dev/null | grep -q sqlite3 && test -d /usr/share/php/Illuminate \
		|| { apt-get update -qq && apt-get install -y -qq php-cli php-sqlite3 php-laravel-framework > /dev/null; }

renderers:
	@{ command -v mandoc && command -v pandoc; } > /dev/null \
		|| { apt-get update -qq && apt-get install -y -qq mandoc pandoc > /dev/null; }

screenshots: setup browser
	@$(BIN)/python -m docs.tools.screenshots

writer:
	@test -x .venv-writer/bin/python || $(PYTHON) -m venv .venv-writer
	@.venv-writer/bin/python -m pip install --quiet xllamacpp==2026.10.11549 gguf==0.19.0

pooler:
	@command -v pgbouncer > /dev/null || { apt-get update -qq && apt-get install -y -qq pgbouncer > /dev/null; }

browser:
	@command -v chromium > /dev/null || { apt-get update -qq && apt-get install -y -qq chromium > /dev/null; }

test-unit: setup
	@$(BIN)/python -m pytest -q -n 2 -m "not slow" tests/unit

test-security: setup
	@$(BIN)/python -m pytest -n 2 --dist loadfile tests/security

test-kills: setup
	@RAG_ASSETS_TEST_KILLS=$(or $(KILLS),20) $(BIN)/python -m pytest -n 2 --dist loadfile \
		-o timeout=7200 tests/e2e/test_kill.py tests/e2e/test_kill_builds.py \
		tests/e2e/test_kill_moves.py tests/e2e/test_kill_erasures.py tests/e2e/systems/experience/test_kill_experience.py \
		tests/e2e/systems/code_memory/test_kill_code.py

test-operator: setup
	@RAG_ASSETS_TEST_OPERATOR_STEPS=$(or $(STEPS),300) RAG_ASSETS_TEST_OPERATOR_SEED=$(or $(SEED),1) \
		$(BIN)/python -m pytest tests/e2e/test_operator.py

test-faults: setup
	@RAG_ASSETS_TEST_FAULT_STEPS=$(or $(STEPS),200) RAG_ASSETS_TEST_FAULT_SEED=$(or $(SEED),1) \
		$(BIN)/python -m pytest tests/e2e/test_faults.py

fuzz: setup
	@RAG_ASSETS_FUZZ_EXAMPLES=$(or $(EXAMPLES),2000) $(BIN)/python -m pytest -n 2 \
		-o timeout=7200 tests/unit/ingest/parsing/test_fuzz.py
	@RAG_ASSETS_TEST_TREES=$$(shuf -i 2-999999 -n $(or $(TREES),8) | paste -sd,) \
		$(BIN)/python -m pytest -n 2 --no-cov -o timeout=7200 tests/security/systems/workspace/test_workspace_readers.py

bench: setup
	@$(BIN)/python -m benchmarks.chain
	@$(BIN)/python -m docs.tools.pages

bench-linear: setup
	@$(BIN)/python -m benchmarks.chain --files 20000 --rounds 1 --ways inside --only cold noop edit \
		rename delete --name chain-20000
	@$(BIN)/python -m docs.tools.pages

bench-quality: setup
	@$(BIN)/python -m benchmarks.quality
	@if [ -n "$(DATA)" ]; then $(BIN)/python -m benchmarks.fusion.contest "$(DATA)"; \
		else echo "DATA=FOLDER compares with other programs on the sets of benchmarks/fusion/README.md"; fi
	@$(BIN)/python -m docs.tools.pages

bench-rivals: setup
	@$(BIN)/python -m benchmarks.rivals
	@$(BIN)/python -m benchmarks.parsing
	@$(BIN)/python -m docs.tools.pages

bench-serving: setup
	@$(BIN)/python -m benchmarks.serving
	@$(BIN)/python -m docs.tools.pages

bench-code: setup
	@$(BIN)/python -m benchmarks.code_memory
	@$(BIN)/python -m benchmarks.reported_to_searchable
	@$(BIN)/python -m benchmarks.code_scale
	@$(BIN)/python -m docs.tools.pages

bench-code-truth: setup php
	@$(BIN)/python -m benchmarks.code_truth --laravel $(LARAVEL) $(APPLICATIONS)
	@$(BIN)/python -m docs.tools.pages

bench-django-truth: setup
	@$(BIN)/python -m benchmarks.django_truth $(APPLICATIONS)
	@$(BIN)/python -m docs.tools.pages

bench-code-questions: setup
	@$(BIN)/python -m benchmarks.code_questions --repository $(REPOSITORY)
	@$(BIN)/python -m benchmarks.rivals.code --repository $(REPOSITORY)
	@$(BIN)/python -m docs.tools.pages

bench-code-repositories: setup
	@$(BIN)/python -m benchmarks.code_questions.repositories --checkouts $(CHECKOUTS)

bench-code-identifiers: setup
	@$(BIN)/python -m benchmarks.code_questions.identifiers --checkouts $(CHECKOUTS)

bench-agents: setup
	@$(BIN)/python -m benchmarks.agents

bench-guidelines: setup
	@$(BIN)/python -m benchmarks.guidelines
	@$(BIN)/python -m docs.tools.pages

up: setup
	@$(BIN)/rag-assets up

down: setup
	@$(BIN)/rag-assets down

lint: setup
	@$(BIN)/ruff check $(CODE)
	@$(BIN)/ruff format --check --quiet $(CODE)
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-cache
	@$(BIN)/python -m docs.tools.wording
	@$(BIN)/python -m docs.tools.pages --check
	@$(BIN)/zensical build --strict > /dev/null

format: setup
	@$(BIN)/ruff check --fix --quiet $(CODE)
	@$(BIN)/ruff format --quiet $(CODE)

lock: setup
	@$(BIN)/uv pip compile requirements/bootstrap.in --universal --python-version 3.11 \
		--generate-hashes --no-emit-index-url --no-header --quiet -o requirements/bootstrap.txt
	@$(BIN)/uv pip compile pyproject.toml --extra local --extra checks --extra ocr --group dev --override requirements/lock-overrides.txt \
		--universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header --quiet -o requirements/lock.txt
	@$(BIN)/uv pip compile requirements/agent.in --constraint requirements/lock.txt \
		--override requirements/agent-overrides.txt --universal --python-version 3.11 \
		--generate-hashes --no-emit-index-url --no-header --quiet -o requirements/agent.txt
	@rm -f $(READY)
	@$(MAKE) --no-print-directory setup
	@$(BIN)/python -m docs.tools.dependencies.licences

lock-rivals: setup
	@for name in langchain llamaindex cocoindex cocoindex-code code-review-graph \
		search-bm25s search-langchain search-llamaindex; do \
		$(BIN)/uv pip compile benchmarks/rivals/requirements/$$name.in --universal \
			--python-version 3.11 --generate-hashes --no-emit-index-url --no-header --quiet \
			-o benchmarks/rivals/requirements/$$name.txt || exit 1; \
	done
	@for name in codegraph gitnexus; do \
		cd benchmarks/rivals/requirements/$$name && npm install --package-lock-only \
			--omit-lockfile-registry-resolved --no-audit --no-fund && cd - > /dev/null || exit 1; \
	done

audit: setup
	@$(BIN)/python -m docs.tools.dependencies.audit

sbom: setup
	@$(BIN)/python -m docs.tools.dependencies.sbom $(OUT)

docs: setup
	@$(BIN)/python -m docs.tools.pages
	@$(BIN)/zensical build --strict > /dev/null
	@echo "open .local/site/index.html"

clean: down
	@rm -rf .local
