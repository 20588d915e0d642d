# A newcomer needs make run, make test and make lint. Everything is kept in .venv; some
# targets below have an environment of their own beside it.
PYTHON ?= python3
BIN := .venv/bin
PACKAGES := cli core gateway hooks markets models server simulator strategy wallet web workers

# Tests start Pythons by the hundred: each would compile everything anew, which doubles their cost.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: run test test-fast test-postgresql test-ray fuzz mutants coverage faults soak soak-month lint lint-api format lock setup bench clean

setup: .venv/.ok

.venv/.ok: setup.py pyproject.toml requirements.lock
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Bidkeeper needs Python 3.11 or newer (PYTHON=... names one)"; exit 1; }
	@echo "setting up .venv ..."
	@$(PYTHON) -m venv .venv || { rm -rf .venv; echo "on Debian: apt-get install python3-venv"; exit 1; }
	@$(BIN)/python -m pip install -q --disable-pip-version-check --only-binary :all: --no-binary embit --require-hashes -r requirements.lock
	@$(BIN)/python -m pip install -q --disable-pip-version-check --no-deps --no-build-isolation -e .
	@$(BIN)/python -m compileall -q $(PACKAGES)
	@touch .venv/.ok

run: setup
	@exec $(BIN)/bidkeeper demo

# Six more than there are processors: what a test has started is mostly waited for. Of what thousands of examples say
# again it tries a twelfth, always the same; all of them are in make faults. MARKS="not faults" is what CI runs: those of
# tests/thorough.py, too.
test: setup
	EXAMPLES_PART=12 $(BIN)/python -m tests.side_by_side $$(($$(nproc) + 6)) \
		-m "$(if $(MARKS),$(MARKS),not faults and not thorough)"

# What touches the database, on a PostgreSQL of its own: it needs the server's programs, not a running server. The driver
# stands in an environment of its own, since peewee loads it wherever it is installed, also for SQLite.
# ARGS=part is what CI runs (tests/postgresql.py), ARGS="tests/models" a folder of yours.
test-postgresql: setup .venv-postgresql/.ok
	.venv-postgresql/bin/python -m tests.postgresql --side-by-side $$(($$(nproc) + 2)) \
		-m "$(if $(MARKS),$(MARKS),not faults)" $(if $(ARGS),$(ARGS),all)

.venv-postgresql/.ok: requirements-postgresql.lock
	@echo "setting up .venv-postgresql ..."
	@$(PYTHON) -m venv .venv-postgresql && echo '*' > .venv-postgresql/.gitignore
	@.venv-postgresql/bin/python -m pip install -q --disable-pip-version-check --only-binary :all: --no-binary embit --require-hashes -r requirements-postgresql.lock
	@.venv-postgresql/bin/python -m pip install -q --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch .venv-postgresql/.ok

# Managers that a real Ray cluster keeps running, on this machine, with PostgreSQL; and what is shipped for Kubernetes against
# its schemas. Ten minutes, and 400 MB to install.
test-ray: setup .venv-ray/.ok
	.venv-ray/bin/python -m tests.postgresql -s $(if $(ARGS),$(ARGS),tests/engines)

.venv-ray/.ok: requirements-ray.lock
	@echo "setting up .venv-ray ..."
	@$(PYTHON) -m venv .venv-ray && echo '*' > .venv-ray/.gitignore
	@.venv-ray/bin/python -m pip install -q --disable-pip-version-check --only-binary :all: --no-binary embit --require-hashes -r requirements-ray.lock
	@.venv-ray/bin/python -m pip install -q --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch .venv-ray/.ok

# On a disk, where each commit waits for it; the other tests' databases lie in memory. With pictures of every screen.
faults: setup
	@export TMPDIR=$${TMPDIR:-/tmp} BIDKEEPER_SCREENS=$${BIDKEEPER_SCREENS:-build/screens}; \
		$(BIN)/python -m pytest -s -m alone tests/models; alone=$$?; \
		$(BIN)/python -m tests.side_by_side $$(($$(nproc) + 2)) -s -m "(faults or sampled or thorough) and not alone" && exit $$alone

# The demo for some minutes, watched: its results, its use of the machine, and whether it would go on.
MINUTES ?= 60
soak: setup
	TMPDIR=$${TMPDIR:-/tmp} BIDKEEPER_SOAK_MINUTES=$(MINUTES) $(BIN)/python -m pytest -s -m "not faults" tests/soak

# Thirty simulated days of ladders on every course; ARGS="drift --days 2" for less, ARGS="--life 120" for bids of two hours.
# Hours without.
soak-month: setup
	$(BIN)/python -m tests.endurance.month $(ARGS)

# The signer's PSBT checks and its three attackers, each of a million and 50,000 tries, and 10,000 sets of listings; half
# an hour.
fuzz: setup
	PSBT_MUTANTS=1000000 EVIL_REQUESTS=50000 PAYOUT_SETS=10000 $(BIN)/python -m tests.side_by_side $$(nproc) -s \
		tests/wallet/test_psbt_fuzz.py tests/wallet/test_payout_sets.py tests/wallet/test_evil_worker.py \
		tests/wallet/test_evil_gateway.py tests/wallet/test_evil_venue.py

# The slips in wallet/ that the tests would not notice; ARGS="--most 40 policy" for fewer. An hour without.
mutants: setup
	$(BIN)/python -m tests.wallet.mutants $(ARGS)

# Every branch of the files that decide about signatures is taken by their fast tests: below 100 % it fails.
coverage: setup
	$(BIN)/python -m coverage run -m pytest -m "not slow and not faults" tests/wallet
	$(BIN)/python -m coverage report

test-fast: setup
	EXAMPLES_PART=16 $(BIN)/python -m tests.side_by_side $$(nproc) -m "not slow and not faults"

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m tools.vendor --check

# Node and the network are needed, so CI does without: whether other people's tools take the described interface.
lint-api: setup
	$(BIN)/python -m server.describe > .openapi.json
	npx -y @redocly/cli@2.77.0 lint --config redocly.yaml .openapi.json; found=$$?; rm -f .openapi.json; exit $$found

format: setup
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: setup .venv-bench/.ok
	$(BIN)/python -m bench

.venv-bench/.ok: requirements-bench.lock
	@echo "setting up .venv-bench, for the programs to compare with ..."
	@$(PYTHON) -m venv .venv-bench && echo '*' > .venv-bench/.gitignore
	@.venv-bench/bin/python -m pip install -q --disable-pip-version-check --only-binary :all: --no-binary embit --require-hashes -r requirements-bench.lock
	@touch .venv-bench/.ok

# Developers only: exact pins with hashes from the ranges in setup.py (needs uv).
lock:
	uv pip compile --quiet --generate-hashes --universal --python-version 3.11 --no-header --extra test setup.py -o requirements.lock
	uv pip compile --quiet --generate-hashes --universal --python-version 3.11 --no-header --extra bench setup.py -o requirements-bench.lock
	uv pip compile --quiet --generate-hashes --universal --python-version 3.11 --no-header --extra test --extra postgres setup.py -c requirements.lock -o requirements-postgresql.lock
	uv pip compile --quiet --generate-hashes --universal --python-version 3.11 --no-header --extra test --extra postgres --extra ray --extra manifests setup.py -c requirements-postgresql.lock -o requirements-ray.lock

clean:
	rm -rf .venv .venv-bench .venv-postgresql .venv-ray build dist *.egg-info .mypy_cache .pytest_cache .ruff_cache
