# The one place for developer commands. docs/testing.md says what each tier of tests needs and how long it takes.

# Two starts of the control plane at a time are gentle on two cores; E2E_THREADS=4 uses a larger machine.
E2E_THREADS ?= 2
# The tests that have required-features; a test in skctl compares this with the manifests.
E2E_TESTS = accepted cluster cluster_e2e control_plane process_runner recorder s3 simulation smoke tracer webhook

.DEFAULT_GOAL := help
.PHONY: help test lint fmt deny control-plane e2e record-fixtures bench docs ci

help: ## list these commands
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## /{printf "  make %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

test: ## the hermetic tests: nothing but the Rust toolchain
	cargo test --workspace

lint: ## format and lints, warnings are errors
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --all-features -- -D warnings

fmt: ## format everything
	cargo fmt --all

deny: ## licences, bans and sources of dependencies (needs cargo-deny)
	cargo deny check bans licenses sources

control-plane: ## build the real control plane's binaries into the cache (once; needs Go)
	@tools/control-plane/build

e2e: control-plane ## tests against the real control plane, and against a real S3 server
	cargo build --workspace --all-features --bins
	SIMKUBE_PROGRAMS="$(abspath $(or $(CARGO_TARGET_DIR),target))/debug" \
		cargo test --workspace --all-features $(E2E_TESTS:%=--test %) -- --test-threads=$(E2E_THREADS)

record-fixtures: control-plane ## record anew what the real control plane does; SCENARIOS="a b" for some of them
	cargo run -p sk-testkit --features control-plane --bin record-fixtures -- $(SCENARIOS)

bench: ## traces and recording against the plain way: size, speed, memory (docs/benchmarks.md; Linux)
	cargo bench -p sk-trace --bench traces
	cargo bench -p sk-ingest --bench record
	cargo bench -p sk-store --bench log

docs: ## write the generated pages of docs/ anew
	UPDATE_DOCS=1 cargo test -p skctl --test reference
	UPDATE_DOCS=1 cargo test -p sk-report --test figures

ci: ## everything, as CI does it
	.ci/run
