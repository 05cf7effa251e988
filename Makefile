# The one place for developer commands. docs/testing.md says what each tier of tests needs and how long it takes.

# How many test programs run at a time, and how many tests in each. Tests mostly wait for their cluster: one keeps less
# than half a processor busy, so four fit on two cores. A larger machine takes more.
E2E_JOBS ?= 2
E2E_THREADS ?= 2
# The tests that have required-features; a test in skctl compares this with the manifests.
# The longest come first, so that no long one is left alone at the end.
E2E_TESTS = simulation controller replays tracer cluster_e2e recorder control_plane process_runner smoke s3 accepted webhook api_live examples
# These keep every core busy for minutes, so nothing else runs beside them.
E2E_ALONE = differential_live

.DEFAULT_GOAL := help
.PHONY: help test lint light fmt deny control-plane e2e record-fixtures live differential swarm bench bench-engine bench-variants instructions records bench-report browser docs ci

help: ## list these commands
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## /{printf "  make %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

test: ## the hermetic tests: nothing but the Rust toolchain
	cargo test --workspace

lint: ## format and lints, warnings are errors; also of the build without what talks to a cluster
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --all-features -- -D warnings
	cargo clippy --package skctl --no-default-features -- -D warnings

light: ## the README's first command, and what that build says of the commands it lacks
	tools/light

fmt: ## format everything
	cargo fmt --all

deny: ## licences, bans, duplicates and sources of dependencies; builds cargo-deny once, into the cache
	@tools/deny

control-plane: ## build the real control plane's binaries into the cache (once; needs Go)
	@tools/control-plane/build

e2e: control-plane ## tests against the real control plane, and against a real S3 server
	cargo build --workspace --all-features --bins
	SIMKUBE_PROGRAMS="$(abspath $(or $(CARGO_TARGET_DIR),target))/debug" \
		tools/e2e $(E2E_JOBS) $(E2E_THREADS) $(E2E_TESTS)
	tools/e2e 1 $(E2E_THREADS) $(E2E_ALONE)

record-fixtures: control-plane ## record anew what the real control plane does; SCENARIOS="a b" for some of them
	cargo run -p sk-testkit --features control-plane --bin record-fixtures -- $(SCENARIOS)

live: control-plane ## every recorded scenario once more on the real control plane, compared with its recording
	LIVE=all cargo test -p sk-testkit --features control-plane --test recorder -- --nocapture

# GOGC: the control plane has memory to spare and little processor time, so it collects garbage less often.
differential: control-plane ## random pods to our scheduler and to the real one; SEEDS=20 FIRST=0 PODS=5000 unless told; KEPT=FOLDER keeps the real one's answers
	GOGC=800 DIFFERENTIAL_KEPT=$(if $(KEPT),$(abspath $(KEPT))) DIFFERENTIAL_SEEDS=$(or $(SEEDS),20) DIFFERENTIAL_FIRST=$(or $(FIRST),0) DIFFERENTIAL_PODS=$(or $(PODS),5000) \
		cargo test --release -p sk-testkit --features control-plane --test differential_live random -- --nocapture

swarm: ## random clusters and the laws they keep, many seeds; SEEDS=100000 FIRST=1 unless told
	SWARM_SEEDS=$(or $(SEEDS),100000) SWARM_FIRST=$(or $(FIRST),1) \
		cargo test --release -p sk-engine --test swarm random -- --nocapture

bench: ## traces and recording against the plain way: size, speed, memory (docs/benchmarks.md; Linux)
	cargo bench -p sk-trace --bench traces
	cargo bench -p sk-ingest --bench record
	cargo bench -p sk-store --bench log

bench-engine: ## a whole embedded run against a plain loop over nodes: time and memory (docs/benchmarks.md; Linux)
	cargo bench -p sk-replay --bench engine

bench-variants: ## eight variants of one trace on two cores against one run; fails above 4.5 times (docs/benchmarks.md; Linux)
	tools/variants

bench-report: ## the report of 100,000 pods against its run, how fast pages open, the memory of comparing ten (Linux)
	tools/browser/bench

instructions: ## what a simulated pod costs, counted by valgrind; fails if it grew by more than a tenth; UPDATE=1 keeps it
	tools/instructions $(if $(UPDATE),--update)

records: ## a fresh run record opened with DuckDB, and the questions of docs/analysis.md (needs Python 3; fetches duckdb once)
	tools/records/run

browser: ## report and comparison in a headless Chromium (installs Chromium and Node.js where they are missing)
	tools/browser/run

docs: ## write the generated pages of docs/ anew
	UPDATE_DOCS=1 cargo test -p skctl --test reference
	UPDATE_DOCS=1 cargo test -p sk-report --test figures
	UPDATE_DOCS=1 cargo test -p sk-testkit --test fixtures
	UPDATE_DOCS=1 cargo test -p skctl --test tutorial
	UPDATE_DOCS=1 cargo test -p sk-apiserver --test corpus

ci: ## everything, as CI does it
	.ci/run
