# PML: two targets matter. `make run` sets everything up and runs the examples on
# real servers; `make test` runs everything that CI runs.

VERSION  ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
GO       ?= go
PML_HOME ?= $(CURDIR)/.pml
TOOLS    := $(CURDIR)/.tools
# SEARCH_DATA has a folder for each data set of bench-search.
SEARCH_DATA ?= ../shared/data/retrieval
LDFLAGS  := -s -w -X main.version=$(VERSION)

export PML_HOME
export PML_TOOLS := $(TOOLS)

.PHONY: build run test chaos test-short test-native bench bench-search calibrate lint fuzz clean help

help: ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 14

build: ## build bin/pml (the TypeScript parser needs a C compiler)
	$(GO) build -trimpath -ldflags '$(LDFLAGS)' -o bin/pml ./cmd/pml

run: build ## set up, serve the example configuration over HTTP and run the examples through it
	scripts/run.sh

setup: build
	bin/pml setup

test: setup ## run every test (real Deno, embedded Postgres, real MCP servers), with the race detector
	$(GO) vet ./...
	$(GO) test -race -timeout 30m ./...

test-short: ## run the tests that need no process
	$(GO) test -short ./...

chaos: setup ## kill the gateway at 100 random moments and look for what was done twice or lost (CHAOS, SEED)
	PML_CHAOS=$(or $(CHAOS),100) PML_CHAOS_SEED=$(or $(SEED),1) $(GO) test -count=1 -timeout 60m -v -run TestChaos ./cmd/pml | grep -v INFO

test-native: setup ## run the tests of the store and of the whole program on a native Postgres with pgvector
	PML_TEST_DATABASE_URL="$$(scripts/native-postgres.sh start)" $(GO) test -count=1 -timeout 40m ./internal/store/... ./cmd/pml

bench: setup ## print the figures of the README
	scripts/bench.sh

bench-search: setup ## measure the search on the data sets in SEARCH_DATA
	bin/pml bench-search $(wildcard $(SEARCH_DATA)/*)

calibrate: setup ## fit the confidence of a match to the data sets whose queries ask for one tool each
	bin/pml bench-search --calibrate $(SEARCH_DATA)/livemcp-steps $(SEARCH_DATA)/metatool

lint: ## run golangci-lint (built once from its pinned version)
	test -x $(TOOLS)/bin/golangci-lint || $(GO) build -modfile=scripts/tools.mod -o $(TOOLS)/bin/golangci-lint github.com/golangci/golangci-lint/v2/cmd/golangci-lint
	$(TOOLS)/bin/golangci-lint run ./...

clean: ## remove what was built and the example data folder
	rm -rf bin .pml
