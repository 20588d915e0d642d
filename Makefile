# `make help` prints the targets; a newcomer needs run, test and lint. Everything is kept in .venv; some targets have an
# environment of their own in addition. deploy/venv.sh makes each, and again when Python, place or locks have changed.
export PYTHON ?= python3
BIN := .venv/bin
VENV := @deploy/venv.sh

# Tests start Pythons by the hundred: each would compile everything anew, which doubles their cost.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: run test test-fast test-postgresql test-ray fuzz mutants coverage faults drills soak soak-month lint lint-api format lock \
	setup tools bench scales clean help .venv-postgresql/.ok .venv-ray/.ok .venv-bench/.ok

setup: ## installs what Bidkeeper needs to run, and no more
	$(VENV) .venv requirements.lock

tools:
	$(VENV) .venv requirements.lock requirements-test.lock

run: setup ## starts the demo
	@exec $(BIN)/bidkeeper demo

help: ## prints this list
	@sed -n 's/^\([a-z-]*\):.* ## /\1\t/p' Makefile | expand -t 20

# Six more than there are processors: what a test has started is mostly waited for. Of what thousands of examples say
# again it tries a twelfth, always the same; all of them are in make faults. MARKS="not faults" is what CI runs: those with
# the mark thorough, too.
test: tools ## runs the tests, five minutes (MARKS="not faults": what CI runs)
	EXAMPLES_PART=12 $(BIN)/python -m tests.side_by_side $$(($$(nproc) + 6)) \
		-m "$(if $(MARKS),$(MARKS),not faults and not thorough)"

# What touches the database, on a PostgreSQL of its own: it needs the server's programs, not a running server. The driver
# stands in an environment of its own, since peewee loads it wherever it is installed, also for SQLite.
# ARGS=part is what CI runs (tests/postgresql.py), ARGS="tests/models" a folder of yours.
test-postgresql: tools .venv-postgresql/.ok ## runs what touches the database on PostgreSQL
	.venv-postgresql/bin/python -m tests.postgresql --side-by-side $$(($$(nproc) + 2)) \
		-m "$(if $(MARKS),$(MARKS),not faults)" $(if $(ARGS),$(ARGS),all)

.venv-postgresql/.ok:
	$(VENV) .venv-postgresql requirements.lock requirements-test.lock requirements-postgresql.lock

# Managers that a real Ray cluster keeps running, on this machine, with PostgreSQL; and what is shipped for Kubernetes against
# its schemas. Ten minutes, and 400 MB to install.
test-ray: tools .venv-ray/.ok ## has a real Ray cluster keep managers running
	.venv-ray/bin/python -m tests.postgresql -s $(if $(ARGS),$(ARGS),drills/engines)

.venv-ray/.ok:
	$(VENV) .venv-ray requirements.lock requirements-test.lock requirements-postgresql.lock \
		requirements-ray.lock requirements-manifests.lock

# On a disk, where each commit waits for it; the other tests' databases lie in memory. With pictures of every screen.
faults: tools ## kills, pauses and starves whole installations, an hour or two
	@export TMPDIR=$${TMPDIR:-/tmp} BIDKEEPER_SCREENS=$${BIDKEEPER_SCREENS:-build/screens}; \
		$(BIN)/python -m pytest -s -m alone tests/models; alone=$$?; \
		$(BIN)/python -m tests.side_by_side $$(($$(nproc) + 2)) -s -m "(faults or sampled or thorough) and not alone" && exit $$alone

# All of drills/, which stands in the other targets in part; ARGS="drills/machine drills/faults" for some of them.
drills: tools ## runs the drills: storms, planted bugs, machines that die, simulated days; an hour
	TMPDIR=$${TMPDIR:-/tmp} $(BIN)/python -m tests.side_by_side $$(($$(nproc) + 2)) -s $(if $(ARGS),$(ARGS),drills)

# The demo for some minutes, watched: its results, its use of the machine, and whether it would go on.
MINUTES ?= 60
soak: tools ## watches the demo for an hour (MINUTES=60)
	TMPDIR=$${TMPDIR:-/tmp} BIDKEEPER_SOAK_MINUTES=$(MINUTES) $(BIN)/python -m pytest -s -m "not faults" drills/soak

# Thirty simulated days of ladders on every course; ARGS="drift --days 2" for less, ARGS="--life 120" for bids of two hours.
# Hours without.
soak-month: tools ## simulates thirty days of bidding, hours
	$(BIN)/python -m drills.endurance.month $(ARGS)

# The signer's PSBT checks and the four attackers, each of a million and 50,000 tries, and 10,000 sets of listings; half
# an hour.
fuzz: tools ## attacks the signer, and the proof of purchases, with random requests, half an hour
	PSBT_MUTANTS=1000000 EVIL_REQUESTS=50000 PAYOUT_SETS=10000 $(BIN)/python -m tests.side_by_side $$(nproc) -s \
		tests/wallet/test_psbt_fuzz.py tests/wallet/test_payout_sets.py tests/wallet/test_evil_worker.py \
		tests/wallet/test_evil_gateway.py tests/wallet/test_evil_venue.py tests/workers/manager/test_evil_sales.py

# The slips in wallet/ that the tests would not notice; ARGS="--most 40 policy" for fewer. An hour without.
mutants: tools ## lists the slips in wallet/ that no test notices, an hour
	$(BIN)/python -m tests.wallet.mutants $(ARGS)

# Every branch of the files that decide about signatures is taken by their fast tests: below 100 % it fails.
coverage: tools ## checks that the fast tests take every branch of what decides about signatures
	$(BIN)/python -m coverage run -m pytest -m "not slow and not faults" tests/wallet
	$(BIN)/python -m coverage report

test-fast: tools ## runs the fast tests, a minute
	EXAMPLES_PART=16 $(BIN)/python -m tests.side_by_side $$(nproc) -m "not slow and not faults"

lint: tools ## runs ruff and mypy
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m tools.vendor --check

# Node and the network are needed, so CI does without: whether other people's tools take the described interface.
lint-api: tools ## has another tool judge the described interface (needs Node)
	$(BIN)/python -m server.urls > .openapi.json
	npx -y @redocly/cli@2.77.0 lint --config redocly.yaml .openapi.json; found=$$?; rm -f .openapi.json; exit $$found

format: tools ## formats the code
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: tools .venv-bench/.ok ## measures, and compares with other programs
	$(BIN)/python -m bench

scales: tools ## measures the program's size, and how far one fact or request spreads in it, a minute
	$(BIN)/python -m bench.scales $(ARGS)

.venv-bench/.ok:
	$(VENV) .venv-bench requirements-bench.lock

# Exact pins with hashes from the ranges in setup.py. A lock has what those that it adds to have not, at the versions that
# they have; that of the bench, in an environment of its own, stands alone.
UV := uv pip compile --quiet --generate-hashes --universal --python-version 3.11 --no-header setup.py
ADDED = -c requirements.lock $$(sed -n 's/==.*//; s/^[a-z]/--no-emit-package &/p' requirements.lock)
lock: ## renews the locks from the ranges in setup.py (needs uv)
	$(UV) --extra build -o requirements.lock
	$(UV) --extra test $(ADDED) -o requirements-test.lock
	$(UV) --extra postgres $(ADDED) -c requirements-test.lock -o requirements-postgresql.lock
	$(UV) --extra ray $(ADDED) -c requirements-test.lock -o requirements-ray.lock
	$(UV) --extra manifests $(ADDED) -c requirements-ray.lock -c requirements-test.lock -o requirements-manifests.lock
	$(UV) --extra bench -o requirements-bench.lock

clean: ## removes the environments and what tools have cached
	rm -rf .venv .venv-bench .venv-postgresql .venv-ray .venv-machines build dist *.egg-info .mypy_cache .pytest_cache .ruff_cache
