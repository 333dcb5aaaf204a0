# The two commands: `make run` shows the gateway at work, `make test` proves it. Both set up all they need.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
ARGS ?=
# A registry that is slow, or answers once with an error, is asked again; so do npm, Cargo and Maven (workers/*).
PIP_INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --retries 10 --timeout 60
export CARGO_NET_RETRY ?= 10
PROTO := admission/worker/v1/worker.proto
# What gateways and bridges say to each other through Redis: no SDK needs it.
QUEUE_PROTO := admission/queue/v1/queue.proto
# Where the generated messages live: the gateway's own copy and the Python SDK's, which is a distribution of its own.
GENERATED := gateway/transports/proto workers/python/admission_worker/proto workers/conformance/worker_conformance/proto
LANGUAGES := python go node rust java

.DEFAULT_GOAL := help
.PHONY: help run test integration lint format path cardinality bench bench-matching bench-startup bench-policies bench-prefetch bench-cache bench-workers bench-observe bench-heavy bench-holds bench-overload bench-cluster \
  properties faults fuzz fuzz-long workers $(LANGUAGES:%=worker-%) worker-conformance build-workers build-agnhost build-migrate build-apiserver e2e e2e-beside build-helm build-collector build-prometheus build-compose demo-processes demo-checks soak deploy-checks manifests kit workers-gateway proto docs crds lock sbom audit-dependencies clean

help:  ## this list
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

$(VENV)/.run: requirements/run.txt pyproject.toml workers/python/pyproject.toml
	@echo "Setting up $(VENV) (once; about a minute) ..."
	@$(BIN)/python -m pip --version >/dev/null 2>&1 || $(PYTHON) -m venv $(VENV)
	@$(PIP_INSTALL) --require-hashes -r requirements/run.txt
	@$(PIP_INSTALL) --no-deps --no-build-isolation --no-index -e . -e workers/python
	@touch $@

$(VENV)/.dev: $(VENV)/.run requirements/dev.txt workers/conformance/pyproject.toml
	@echo "Setting up the tools that tests and lint need ..."
	@$(PIP_INSTALL) --require-hashes -r requirements/dev.txt
	@$(PIP_INSTALL) --no-deps --no-build-isolation --no-index -e workers/conformance
	@touch $@

$(VENV)/.fuzz: $(VENV)/.dev requirements/fuzz.txt
	@$(PIP_INSTALL) --require-hashes -r requirements/fuzz.txt
	@touch $@

run: $(VENV)/.run  ## set up, start gateway and sample worker, judge recorded reviews, keep serving (ARGS=--once: end by itself)
	@$(BIN)/admission-gateway demo $(ARGS)

# Shell hooks need jq. Where it is neither there nor to be had, their tests say that they are skipped.
.PHONY: jq
jq:
	@command -v jq >/dev/null || { command -v apt-get >/dev/null && test "$$(id -u)" = 0 \
	  && apt-get update -qq >/dev/null 2>&1 && apt-get install -qq -y jq >/dev/null 2>&1; } \
	  || echo "There is no jq, and it cannot be installed: the tests of shell hooks are skipped."

# The clock of a gateway jumps by libfaketime.
.PHONY: faketime
faketime:
	@command -v faketime >/dev/null || { command -v apt-get >/dev/null && test "$$(id -u)" = 0 && apt-get update -qq >/dev/null 2>&1 \
	  && apt-get install -qq -y --no-install-recommends faketime >/dev/null 2>&1; } \
	  || echo "There is no faketime, and it cannot be installed: the tests of jumping clocks are skipped."

# Prometheus and promtool check metrics, rules and dashboards.
.PHONY: promtool
promtool:
	@command -v promtool >/dev/null || { command -v apt-get >/dev/null && test "$$(id -u)" = 0 \
	  && apt-get update -qq >/dev/null 2>&1 && apt-get install -qq -y --no-install-recommends prometheus >/dev/null 2>&1; } \
	  || echo "There is no promtool, and it cannot be installed: tests of rules and dashboards are skipped."

# The browser of the dashboard's tests.
.PHONY: chromium browser pictures
chromium:
	@command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null \
	  || { apt-get update -qq >/dev/null && DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends chromium >/dev/null; }

tests/browser/node_modules: tests/browser/package-lock.json
	@npm ci --prefix tests/browser --ignore-scripts --no-audit --no-fund --loglevel error >/dev/null
	@touch $@

test: $(VENV)/.dev  ## set up and run the tests that start no process (under three minutes)
	@$(BIN)/python -m pytest -m "not integration and not long and not workers and not faults and not e2e and not deploy and not demo and not browser" -n auto --dist loadfile $(ARGS)

integration: $(VENV)/.dev jq promtool  ## the tests that start processes: the whole gateway, workers, hooks, Redis, commands (under five minutes)
	@$(BIN)/python -m pytest -m "integration and not long and not workers and not faults and not e2e and not deploy and not demo and not browser" -n auto --dist loadfile $(ARGS)

properties: $(VENV)/.dev  ## the same properties with many more cases (under eight minutes)
	@HYPOTHESIS_PROFILE=long $(BIN)/python -m pytest -m "(long or property) and not workers and not faults and not e2e and not deploy and not demo and not browser" -n auto --dist worksteal --timeout 900 $(ARGS)

faults: $(VENV)/.dev faketime  ## faults of every link, whose table is printed; and Redis, bridges and workers killed, stopped and restarted (under six minutes)
	@$(BIN)/python -m pytest -m faults -n 2 --dist loadfile --timeout 300 $(ARGS)

fuzz: $(VENV)/.fuzz  ## coverage-guided fuzzing of all that comes from outside, always the same inputs (three minutes; Linux on x86_64)
	@$(BIN)/python -m tests.fuzz

fuzz-long: $(VENV)/.fuzz  ## by hand: one target for as long as you like (ARGS="entry --runs 1000000 --seed 7")
	@$(BIN)/python -m tests.fuzz $(ARGS)

workers: $(VENV)/.dev  ## all SDKs: their own tests, the conformance kit, and all of them behind the gateway (ten minutes)
	@echo "Building and testing the SDKs of all languages, two at a time; each tells when it is done ..."
	@$(MAKE) --no-print-directory --jobs 2 --output-sync=target $(LANGUAGES:%=worker-%) worker-conformance
	@$(MAKE) --no-print-directory kit workers-gateway

$(LANGUAGES:%=worker-%) worker-conformance: worker-%: $(VENV)/.dev  ## build and test the SDK of one language: worker-go, worker-rust, ...
	@$(MAKE) --no-print-directory -C workers/$* test build

build-workers: $(VENV)/.dev
	@for language in $(LANGUAGES); do $(MAKE) --no-print-directory -C workers/$$language build ARGS= || exit 1; done

kit: $(VENV)/.dev  ## the conformance kit against the sample workers of all languages (ARGS="go rust": of these)
	@for language in $(or $(ARGS),$(LANGUAGES)); do $(MAKE) --no-print-directory -C workers/$$language build ARGS= || exit 1; done
	@$(BIN)/python -m tests.workers.kit $(ARGS)

build-agnhost:
	@$(MAKE) --no-print-directory -C tests/webhooks/agnhost build

build-migrate:
	@$(MAKE) --no-print-directory -C tests/migrate/controller-runtime build

workers-gateway: build-workers build-agnhost build-migrate jq  ## the same reviews through the gateway to the workers of all languages, new projects, agnhost, a manager
	@$(BIN)/python -m pytest -m workers tests/workers tests/webhooks tests/migrate tests/integration -n 2 --dist loadfile --timeout 600 $(ARGS)

build-apiserver:  # KUBE=1.N.P: that release of Kubernetes instead of the one in tests/e2e/apiserver/go.mod
	@$(MAKE) --no-print-directory -C tests/e2e/apiserver build

e2e: $(VENV)/.dev build-apiserver build-agnhost build-collector build-workers  ## gateways behind a real kube-apiserver (under five minutes; building that, once, takes up to fifteen; KUBE=1.N.P: an older one)
	@$(BIN)/python -m pytest -m e2e tests/e2e $(ARGS)

e2e-beside: $(VENV)/.dev build-apiserver  ## by hand: gateways of this version beside those of another commit, PREVIOUS=COMMIT, which clients do not notice
	@commit=$$(git rev-parse --verify --quiet "$(PREVIOUS)^{commit}") || { echo "PREVIOUS=$(PREVIOUS): expected a commit that this clone has" >&2; exit 2; }; \
	  tree=$(CURDIR)/.run/previous/$$commit; mkdir -p $$tree; git archive $$commit | tar -x -C $$tree; \
	  $(MAKE) --no-print-directory -C $$tree $(VENV)/.run && \
	  PREVIOUS_TREE=$$tree $(BIN)/python -m pytest -m e2e tests/e2e/beside.py -rP --timeout 600 $(ARGS)

build-helm:
	@$(MAKE) --no-print-directory -C tests/deploy/helm build

build-collector build-prometheus: build-%:
	@$(MAKE) --no-print-directory -C deploy/demo/$* build

build-compose:
	@$(MAKE) --no-print-directory -C tests/deploy/compose build

# The balancer of the demo. RUNLEVEL: do not start it as a service.
.PHONY: haproxy
haproxy:
	@command -v haproxy >/dev/null || { command -v apt-get >/dev/null && test "$$(id -u)" = 0 && apt-get update -qq >/dev/null 2>&1 \
	  && RUNLEVEL=1 apt-get install -qq -y --no-install-recommends haproxy >/dev/null 2>&1; } \
	  || echo "There is no haproxy, and it cannot be installed: the demo cannot start, and the test of its configuration is skipped."

demo-processes: $(VENV)/.dev haproxy build-workers build-collector build-prometheus  ## docker-compose.yml without containers: all of it but Jaeger and Grafana (ARGS=--once: end when it is alive; builds for up to ten minutes, once)
	@$(BIN)/python -m deploy.demo $(ARGS)

soak: $(VENV)/.dev haproxy build-workers build-collector build-prometheus  ## the same for ten minutes, under kills and intruders, which must not make it grow (ARGS="--minutes 3")
	@$(BIN)/python -m tests.soak.soak $(ARGS)

demo-checks: $(VENV)/.dev haproxy build-workers build-collector build-prometheus  ## the same, alive, and again after gateway, worker and Redis were killed (two minutes and, once, the builds)
	@$(BIN)/python -m pytest -m demo tests/demo --timeout 600 $(ARGS)

manifests: $(VENV)/.dev build-helm  ## make deploy/manifests, and what the tests compare, from the chart
	@$(BIN)/python -m tests.deploy.chart

deploy-checks: $(VENV)/.dev build-helm build-compose promtool  ## what deploy/ holds: images, compose file, manifests, alerts, without a container engine (under eight minutes)
	@$(BIN)/python -m pytest -m deploy tests/deploy --timeout 600 $(ARGS)

browser: $(VENV)/.dev chromium tests/browser/node_modules  ## the dashboard in a real browser, with pictures of its pages in .run/browser (under three minutes)
	@for script in gateway/serving/dashboard/static/*.js; do node --check --input-type=module <$$script || exit 1; done
	@$(BIN)/python -m pytest -m browser tests/browser $(ARGS)

pictures: browser  ## copy the pictures of the dashboard into docs/images
	@mkdir -p docs/images && cp .run/browser/dashboard-*.jpg docs/images/

lint: $(VENV)/.dev  ## ruff, mypy, the import contract, the words of names
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports
	@$(BIN)/python -m tests.repository.words

format: $(VENV)/.dev  ## let ruff format and fix
	@$(BIN)/ruff check --fix-only --quiet . ; $(BIN)/ruff format .

bench: $(VENV)/.dev  ## CPU per review, mutating and validating, with one worker (a quiet machine, please)
	@$(BIN)/python benchmarks/reviews.py $(ARGS)

bench-matching: $(VENV)/.dev  ## CPU to find out whether a policy judges a request: rules, selectors, conditions
	@$(BIN)/python benchmarks/matching.py $(ARGS)

bench-startup: $(VENV)/.dev  ## CPU until a command has answered, a TAB is completed, and serve is ready
	@$(BIN)/python benchmarks/startup.py $(ARGS)

bench-policies: $(VENV)/.dev  ## CPU per review, until ready and of check, with 3, 200 and 2,000 policies loaded
	@$(BIN)/python benchmarks/policies.py $(ARGS)

bench-prefetch: $(VENV)/.dev  ## how long a mutating chain takes, asked early and one after another, with real workers
	@$(BIN)/python benchmarks/prefetch.py $(ARGS)

bench-cache: $(VENV)/.dev  ## CPU of a verdict from memory, from Redis, and from the worker, by size of the review
	@$(BIN)/python benchmarks/cache.py $(ARGS)

bench-workers: $(VENV)/.dev  ## CPU of a call to a gRPC worker, by stream, by call and through a queue
	@$(BIN)/python benchmarks/workers.py $(ARGS)

bench-observe: $(VENV)/.dev  ## CPU that a review pays for traces if it is not sampled, and per review with everything on and off
	@$(BIN)/python benchmarks/not_sampled.py
	@$(BIN)/python benchmarks/observe.py $(ARGS)

bench-overload: $(VENV)/.dev  ## offered load against goodput and latency, from half to ten times the capacity; needs Go (a quiet machine, please)
	@$(BIN)/python benchmarks/overload.py $(ARGS)

bench-holds: $(VENV)/.dev  ## the longest call of the event loop for each of the largest things that may be sent
	@$(BIN)/python benchmarks/holds.py $(ARGS)

bench-heavy: $(VENV)/.dev  ## CPU and memory of twelve large reviews at once, and what small ones beside them notice
	@$(BIN)/python benchmarks/heavy.py $(ARGS)

bench-cluster: $(VENV)/.dev build-apiserver  ## time from an applied policy to its being enforced by all of three gateways
	@$(BIN)/python benchmarks/cluster.py $(ARGS)

cardinality: $(VENV)/.dev  ## /metrics after a million reviews with names that their senders choose (ten minutes; .ci/run has ARGS="--reviews 100000")
	@$(BIN)/python -m tests.telemetry.hostile_reviews $(ARGS)

path: $(VENV)/.dev  ## the functions that one review passes: how many, in how many modules, how deep (ARGS="-o tree": which)
	@$(BIN)/python benchmarks/path.py $(ARGS)

proto: $(VENV)/.dev  ## generate the Python messages from proto/
	@for out in $(GENERATED); do $(BIN)/python -m grpc_tools.protoc -Iproto --python_out=pyi_out:$$out $(PROTO) 2>/dev/null || exit 1; done
	@$(BIN)/python -m grpc_tools.protoc -Iproto --python_out=pyi_out:gateway/transports/proto $(QUEUE_PROTO) 2>/dev/null
	@sed -i 's/^from admission\./from gateway.transports.proto.admission./' $(QUEUE_PROTO:%.proto=gateway/transports/proto/%_pb2.py*)

docs: $(VENV)/.dev  ## make docs/reference from the source
	@$(BIN)/python -m docs.generator

crds: $(VENV)/.dev  ## make deploy/chart/crds from the readers of the gateway's kinds, and deploy/chart/dashboards
	@$(BIN)/python -m deploy.generator

lock: $(VENV)/.dev  ## lock requirements/*.in again, with hashes
	@for name in run dev fuzz audit; do (cd requirements && ../$(BIN)/uv pip compile --quiet --universal --python-version 3.11 \
	  --generate-hashes --custom-compile-command 'make lock' --no-emit-index-url $$name.in -o $$name.txt) || exit 1; done

sbom: $(VENV)/.dev  ## a CycloneDX bill of materials of all that the locks pin, in dist/sbom.cdx.json
	@$(BIN)/python -m deploy.dependencies.sbom dist/sbom.cdx.json

.run/audit/.pip-audit: requirements/audit.txt
	@$(PYTHON) -m venv --clear .run/audit
	@.run/audit/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/audit.txt
	@touch $@

audit-dependencies: $(VENV)/.dev .run/audit/.pip-audit  ## known vulnerabilities of the pins, and which are not the newest (by hand; five minutes and a network)
	@PATH="$(CURDIR)/.run/audit/bin:$$PATH" $(BIN)/python -m deploy.dependencies.audit

clean:  ## remove everything that the other targets made
	rm -rf $(VENV) .run .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
