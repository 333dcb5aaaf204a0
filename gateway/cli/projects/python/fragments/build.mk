PYTHON ?= python3

.venv/.installed: requirements-dev.txt $(shell find sdk -name '*.py' -o -name pyproject.toml)
	@echo "Setting up .venv (the first time half a minute) ..."
	@test -x .venv/bin/python || $(PYTHON) -m venv .venv
	@.venv/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-dev.txt
	@.venv/bin/python -m pip install --quiet --disable-pip-version-check --force-reinstall --no-deps --no-build-isolation --no-index ./sdk
	@touch $@

build: .venv/.installed  ## set up .venv with the SDK

test: build  ## the policies' tests
	@.venv/bin/python -m pytest

clean:  ## remove what the other targets made
	@rm -rf .venv .run .pytest_cache
