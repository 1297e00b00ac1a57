# make build          bin/lockproxy; it shares what is compiled with the first command of README.md
# make check          what to run before every change: format, vet, lint, unit tests without the race detector, the style of the tree, a few
#                     seeds; under five minutes on two cores. make test and .ci/run do the rest
# make test           all tests, under the race detector; installs redis-server and a C compiler if it can
# make test-clients   client libraries, old and new, through the same scenarios; UPDATE=1 writes their tables into docs/clients.md and
#                     docs/upstream.md
# make test-fencing   guards of docs/fencing.md on PostgreSQL, SQLite, files, HTTP and Redis, with holders that are stopped past their locks
# make test-deploy    the chart of deploy/helm, and what make dist builds, in a bare root; minutes when nothing is compiled yet
# make test-versions  the tests that talk to masters, with masters of other versions, from package registries; VERSIONS="…"
#                     takes a part
# make dist           what a release consists of, in dist/: archives, deb, rpm, OCI image, SBOMs, checksums; the version is in VERSION
# make lint           format, vet (for other systems and 32 bits too), linters
# make fuzz           every fuzz target for FUZZTIME
# make bench          lockproxy beside bare Redis, redsync, etcd and ZooKeeper, in one run; BENCHFLAGS="-only cost,size" runs a part
# make bench-go       Go benchmarks of the hot pieces
# make chaos          faults of real masters, links and proxies, one after another, the last of them begun within DURATION
# make sim            one world of the simulation, SEED=fenced+voted/17, with a trace of all that happens in it
# make sim-soak       worlds of the simulation on all cores, for DURATION
# make sim-small      every sequence of DEPTH actions in small worlds; ALPHABET=late: of one alphabet; ACTIONS="…": one sequence, with a trace
# make sim-soak-front worlds whose clients speak to the front end, on one core, for DURATION
# make mutants        the engine without one of its rules, for each of them: does the known seed, or which of SEEDS seeds, find
#                     out? ANEW=1: as if no seed were known; ONLY="^no undo": the mutants whose names match. All of them take
#                     about half an hour of processor time, most of it builds

# It includes vet and staticcheck.
GOLANGCI_LINT = github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0

VERSION  ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
FUZZTIME ?= 60s
DURATION ?= 10m
SEEDS    ?= 5000
DEPTH    ?= 5

# The race detector needs a C compiler. The recipe asks Go whether there is one, and not make, which would ask before .ci/need has
# installed it. The race detector mixes goroutines up on purpose: what needs them in order is tested without it.
RACE = race=$$([ "$$(go env CGO_ENABLED)" = 1 ] && echo -race)

FORMATTED = files=$$(gofmt -l cmd deploy integration quorum resp script); \
	if [ -n "$$files" ]; then echo "not in gofmt's format:"; echo "$$files"; exit 1; fi

.PHONY: all check test test-clients test-fencing test-deploy test-versions lint bench bench-go chaos fuzz sim sim-soak sim-soak-front sim-small mutants build dist
all: lint build test

# -count=1: Go keeps results of tests, and does not see that the proxies which tests build and start have changed.
test:
	@.ci/need
	$(RACE); go test $$race -count=1 -timeout 30m ./...
	$(RACE); [ -z "$$race" ] || go test -run ^TestASeedDecides ./resp/sim

# CLIENTSFLAGS="-languages python -libraries Lock" runs a part; -upstream puts an upstream behind the proxy; -speed compares Redisson through lockproxy and without.
test-clients:
	@.ci/need clients
	go run ./integration/clients/run $(if $(UPDATE),-update) $(CLIENTSFLAGS)

# A module of its own: lockproxy depends on no driver of a database.
test-fencing:
	@.ci/need
	cd integration/fencing && go test -count=1 -timeout 10m ./...

test-deploy:
	@LOCKPROXY_REQUIRE_DEPLOY=1 .ci/need
	LOCKPROXY_REQUIRE_DEPLOY=1 go test -count=1 -timeout 30m ./integration/deploy

test-versions:
	@.ci/need
	.ci/test-versions

# Of the packages below integration only the tests that read the tree and its pages; of the simulations a few seeds.
check:
	@echo '== format, vet, lint'
	@$(FORMATTED)
	go vet ./...
	go run $(GOLANGCI_LINT) run
	@echo '== unit tests'
	go test $$(go list ./... | grep -v '/integration\|/sim$$')
	@echo '== style and pages'
	go test ./integration -run 'Style|LinksInThePages|EveryWarning'
	go test ./integration/clients/run
	@echo '== seeds'
	go test ./quorum/sim -run '^TestFixedSeeds$$' -fixed 6
	go test ./resp/sim -run '^TestFixedSeeds$$' -fixed 3

lint:
	@$(FORMATTED)
	CGO_ENABLED=0 GOARCH=386 go vet ./...
	CGO_ENABLED=0 GOOS=darwin GOARCH=arm64 go vet ./...
	CGO_ENABLED=0 GOOS=windows go build -o /dev/null ./cmd/lockproxy
	go run $(GOLANGCI_LINT) run
	cd integration/fencing && go run $(GOLANGCI_LINT) run
	cd deploy/image && go run $(GOLANGCI_LINT) run

bench:
	@.ci/need bench
	go run ./integration/bench $(BENCHFLAGS)

bench-go:
	go test -run '^$$' -bench . -benchmem ./...

chaos:
	@.ci/need
	go test -timeout 0 -v -run NoFault ./integration/chaos -duration $(DURATION)

fuzz:
	.ci/fuzz $(FUZZTIME)

sim:
	GODEBUG=asyncpreemptoff=1 go test ./quorum/sim ./resp/sim -v -count=1 -run '^TestReplay$$' -seed $(SEED)

sim-soak:
	go test ./quorum/sim -v -count=1 -timeout 0 -run '^TestSoak$$' -soak $(DURATION)

sim-soak-front:
	GODEBUG=asyncpreemptoff=1 go test ./resp/sim -v -count=1 -timeout 0 -run '^TestFreshSeeds$$' -fresh $(DURATION)

sim-small:
	GODEBUG=asyncpreemptoff=1 GOGC=800 go test ./quorum/sim -v -count=1 -timeout 0 -run '^TestSmallWorlds$$/^$(or $(ALPHABET),.*)$$' -depth $(DEPTH) $(if $(ACTIONS),-actions "$(ACTIONS)")

mutants:
	go test ./quorum/sim -v -count=1 -timeout 0 -run '^TestMutants$$' -mutants $(SEEDS) $(if $(ANEW),-anew) $(if $(ONLY),-only "$(ONLY)")

build:
	CGO_ENABLED=0 go build -trimpath -ldflags "-s -w -X main.version=$(VERSION)" -o bin/lockproxy ./cmd/lockproxy

dist:
	.ci/dist dist
