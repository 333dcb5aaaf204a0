MAVEN ?= mvn
QUIET := $(MAVEN) --batch-mode --quiet --no-transfer-progress -Dstyle.color=never
ARGS ?=

build:  ## make bin/worker.jar
	@echo "Building bin/worker.jar (the first time Maven downloads dependencies: some minutes) ..."
	@$(QUIET) package -Dmaven.test.skip=true $(ARGS)

test:  ## build, with every warning of javac an error; the policies' tests
	@echo "Building and testing (the first time Maven downloads dependencies: some minutes) ..."
	@$(QUIET) package $(ARGS)

clean:  ## remove what the other targets made
	@rm -rf bin .run sdk/sdk/target worker/target
