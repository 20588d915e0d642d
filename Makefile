# `make help` prints the targets; to start, you need run, test and lint. Everything is kept in .venv; some targets have
# another environment. deploy/venv.sh makes each, and remakes it when Python, path or locks have changed.
export PYTHON ?= python3
BIN := .venv/bin
VENV := @deploy/venv.sh

# Tests start hundreds of Pythons, and compiling everything again in each would double their cost.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: run test test-fast test-postgresql test-ray fuzz mutants coverage faults drills soak soak-month lint lint-api format lock \
	setup tools bench scales clean help .venv-postgresql/.ok .venv-ray/.ok .venv-bench/.ok

setup: ## installs only what Bidkeeper needs to run
	$(VENV) .venv requirements.lock

tools:
	$(VENV) .venv requirements.lock requirements-test.lock

run: setup ## starts the demo
	@exec $(BIN)/bidkeeper demo

help: ## prints this list
	@sed -n 's/^\([a-z-]*\):.* ## /\1\t/p' Makefile | expand -t 20

# Six more than there are processors, because the tests mostly wait for programs they started. Of the thousands of
# similar examples it tries a fixed twelfth; make faults tries all. MARKS="not faults" is CI's choice: it adds the mark
# thorough.
test: tools ## runs the tests, ten minutes (MARKS="not faults": what CI runs)
	EXAMPLES_PART=12 $(BIN)/python -m tests.side_by_side $$(($$(nproc) + 6)) \
		-m "$(if $(MARKS),$(MARKS),not faults and not thorough)"

# The tests of the database, on a PostgreSQL server of their own: it needs the server's programs, not a running server.
# The driver has a separate environment, because peewee loads it wherever it is installed, also for SQLite. ARGS=part is
# what CI runs (tests/postgresql.py), ARGS="tests/models" one folder.
test-postgresql: tools .venv-postgresql/.ok ## runs the database's tests on PostgreSQL
	.venv-postgresql/bin/python -m tests.postgresql --side-by-side $$(($$(nproc) + 2)) \
		-m "$(if $(MARKS),$(MARKS),not faults)" $(if $(ARGS),$(ARGS),all)

.venv-postgresql/.ok:
	$(VENV) .venv-postgresql requirements.lock requirements-test.lock requirements-postgresql.lock

# A real Ray cluster on this machine keeps managers running, with PostgreSQL; the files for Kubernetes are checked
# against its schemas. Ten minutes, and 400 MB to install.
test-ray: tools .venv-ray/.ok ## tests managers on a real Ray cluster
	.venv-ray/bin/python -m tests.postgresql -s $(if $(ARGS),$(ARGS),drills/engines)

.venv-ray/.ok:
	$(VENV) .venv-ray requirements.lock requirements-test.lock requirements-postgresql.lock \
		requirements-ray.lock requirements-manifests.lock

# On a disk, where each commit waits for it; other tests' databases are in memory. With pictures of every screen.
faults: tools ## kills, pauses and starves whole installations, an hour or two
	@export TMPDIR=$${TMPDIR:-/tmp} BIDKEEPER_SCREENS=$${BIDKEEPER_SCREENS:-build/screens}; \
		$(BIN)/python -m pytest -s -m alone tests/models; alone=$$?; \
		$(BIN)/python -m tests.side_by_side $$(($$(nproc) + 2)) -s -m "(faults or sampled or thorough) and not alone" && exit $$alone

# All of drills/, parts of which are in the other targets; ARGS="drills/machine drills/faults" runs some of them.
drills: tools ## runs the drills: storms, planted bugs, machines that die, simulated days; an hour
	TMPDIR=$${TMPDIR:-/tmp} $(BIN)/python -m tests.side_by_side $$(($$(nproc) + 2)) -s $(if $(ARGS),$(ARGS),drills)

# Watches the demo for some minutes: its results, its use of the machine, and whether it could run on.
MINUTES ?= 60
soak: tools ## watches the demo for an hour (MINUTES=60)
	TMPDIR=$${TMPDIR:-/tmp} BIDKEEPER_SOAK_MINUTES=$(MINUTES) $(BIN)/python -m pytest -s -m "not faults" drills/soak

# Thirty simulated days of ladders on every course, hours; ARGS="drift --days 2" for less, ARGS="--life 120" for bids of
# two hours.
soak-month: tools ## simulates thirty days of bidding, hours
	$(BIN)/python -m drills.endurance.month $(ARGS)

# The signer's PSBT checks with a million tries, the four attackers with 50,000 each, and 10,000 sets of listings; half
# an hour.
fuzz: tools ## attacks the signer, and the proof of purchases, with random requests, half an hour
	PSBT_MUTANTS=1000000 EVIL_REQUESTS=50000 PAYOUT_SETS=10000 $(BIN)/python -m tests.side_by_side $$(nproc) -s \
		tests/wallet/test_psbt_fuzz.py tests/wallet/test_payout_sets.py tests/wallet/test_evil_worker.py \
		tests/wallet/test_evil_gateway.py tests/wallet/test_evil_venue.py tests/workers/manager/test_evil_sales.py

# Mistakes planted in wallet/ that the tests do not notice; ARGS="--most 40 policy" for fewer. An hour without.
mutants: tools ## lists planted mistakes in wallet/ that no test notices, an hour
	$(BIN)/python -m tests.wallet.mutants $(ARGS)

# The fast tests must take every branch of the files that decide about signatures: below 100 % it fails.
coverage: tools ## checks that the fast tests take every branch of the signing decisions
	$(BIN)/python -m coverage run -m pytest -m "not slow and not faults" tests/wallet
	$(BIN)/python -m coverage report

test-fast: tools ## runs the fast tests, a minute
	EXAMPLES_PART=16 $(BIN)/python -m tests.side_by_side $$(nproc) -m "not slow and not faults"

lint: tools ## runs ruff and mypy
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m tools.vendor --check

# Checks the interface's description with another project's tool. CI skips it: it needs Node and the network.
lint-api: tools ## checks the interface's description with another tool (needs Node)
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

# Exact pins with hashes from the ranges in setup.py. A lock contains the packages that the locks it adds to lack, at
# the versions pinned there; the bench's lock, for a separate environment, is complete.
UV := uv pip compile --quiet --generate-hashes --universal --python-version 3.11 --no-header setup.py
ADDED = -c requirements.lock $$(sed -n 's/==.*//; s/^[a-z]/--no-emit-package &/p' requirements.lock)
lock: ## renews the locks from the ranges in setup.py (needs uv)
	$(UV) --extra build -o requirements.lock
	$(UV) --extra test $(ADDED) -o requirements-test.lock
	$(UV) --extra postgres $(ADDED) -c requirements-test.lock -o requirements-postgresql.lock
	$(UV) --extra ray $(ADDED) -c requirements-test.lock -o requirements-ray.lock
	$(UV) --extra manifests $(ADDED) -c requirements-ray.lock -c requirements-test.lock -o requirements-manifests.lock
	$(UV) --extra bench -o requirements-bench.lock

clean: ## removes the environments and the tools' caches
	rm -rf .venv .venv-bench .venv-postgresql .venv-ray .venv-machines build dist *.egg-info .mypy_cache .pytest_cache .ruff_cache
