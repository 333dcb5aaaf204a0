CARGO ?= cargo
TARGET := $(or $(CARGO_TARGET_DIR),target)

build:  ## make bin/worker
	@echo "Building bin/worker (the first time also gRPC: two minutes) ..."
	@$(CARGO) build --quiet
	@mkdir -p bin && cp -f $(TARGET)/debug/worker bin/worker.new && mv -f bin/worker.new bin/worker

test:  ## rustfmt, build, the policies' tests
	@$(CARGO) fmt --check
	@$(MAKE) --no-print-directory build
	@$(CARGO) test --quiet

Cargo.lock: Cargo.toml sdk/Cargo.toml
	@$(CARGO) generate-lockfile --quiet

image: Cargo.lock

clean:  ## remove what the other targets made
	@rm -rf target bin .run
