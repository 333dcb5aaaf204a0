build:  ## make bin/worker
	@echo "Building bin/worker (the first time also gRPC: about a minute) ..."
	@go build -o bin/worker .

test: build  ## gofmt, go vet, the policies' tests
	@test -z "$$(gofmt -l *.go)" || { gofmt -d *.go; exit 1; }
	@go vet .
	@go test -timeout 300s .

clean:  ## remove what the other targets made
	@rm -rf bin .run
