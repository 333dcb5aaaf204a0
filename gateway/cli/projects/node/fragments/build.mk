node_modules/.installed: package.json package-lock.json sdk/package.json
	@echo "Installing packages (the first time half a minute) ..."
	@npm ci --silent --no-progress
	@touch $@

build: node_modules/.installed  ## install the dependencies

test: build  ## the policies' tests
	@node --test --test-reporter=spec tests/*.test.js

clean:  ## remove what the other targets made
	@rm -rf node_modules .run
