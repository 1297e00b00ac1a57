# make test      all tests, under the race detector; installs redis-server if it can
# make lint      format, vet, linters
# make bench     lockproxy beside bare Redis and redsync, from one run; make bench-go: the hot pieces alone
# make chaos     faults of real masters, links and proxies, one after another for DURATION
# make fuzz      every fuzz target for FUZZTIME
# make build     bin/lockproxy

# It includes staticcheck.
GOLANGCI_LINT = github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0

VERSION  ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
FUZZTIME ?= 60s
DURATION ?= 10m

# The race detector needs a C compiler. .ci/need says so where there is none.
RACE = $(shell command -v $$(go env CC) >/dev/null 2>&1 && echo -race)

.PHONY: all test lint bench bench-go chaos fuzz build
all: lint build test

test:
	@.ci/need
	go test $(RACE) -timeout 30m ./...

lint:
	@files=$$(gofmt -l cmd integration quorum resp script); \
	if [ -n "$$files" ]; then echo "not in gofmt's format:"; echo "$$files"; exit 1; fi
	go vet ./...
	go run $(GOLANGCI_LINT) run

bench:
	@.ci/need
	go run ./integration/bench $(BENCHFLAGS)

bench-go:
	go test -run '^$$' -bench . -benchmem ./...

chaos:
	@.ci/need
	go test -timeout 0 -v -run NoFault ./integration/chaos -duration $(DURATION)

fuzz:
	.ci/fuzz $(FUZZTIME)

build:
	CGO_ENABLED=0 go build -trimpath -ldflags "-s -w -X main.version=$(VERSION)" -o bin/lockproxy ./cmd/lockproxy
