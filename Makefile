# The everyday commands. `make control-plane` builds what `make e2e` and `make record-fixtures` start;
# docs/testing.md says what each tier of tests needs and how long it takes.

# Two control planes at a time suit two cores; E2E_THREADS=4 uses a larger machine.
E2E_THREADS ?= 2

.PHONY: control-plane e2e record-fixtures

control-plane: ## build the real control plane's binaries into the cache (once)
	@tools/control-plane/build

e2e: control-plane ## tests against the real control plane
	cargo test -p sk-testkit --features control-plane -- --test-threads=$(E2E_THREADS)

record-fixtures: control-plane ## record anew what the real control plane does; SCENARIOS="a b" for some of them
	cargo run -p sk-testkit --features control-plane --bin record-fixtures -- $(SCENARIOS)
