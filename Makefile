# Guardyn. Needs Go 1.26; everything else is fetched or installed by the target that uses it.

STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2
GOFUMPT     := mvdan.cc/gofumpt@v0.12.0
GOVULNCHECK := golang.org/x/vuln/cmd/govulncheck@v1.9.0

# Packages whose tests also run under the race detector: those that share state between goroutines.
RACE ?= ./control ./node ./edge/... ./api ./internal/host ./internal/durable ./barrier ./barrier/slotfile ./barrier/memory ./barrier/remote \
	./bridge/host ./bridge/lease ./bridge/mqtt ./bridge/nats ./bridge/route ./bridge/run ./bridge/session ./bridge/webhook

# Half of the packages wait for a server, a lease or a deadline at any time: this many are tested at once. What go test vets, lint has.
GOTEST := go test -p 4 -vet=off -timeout 15m

# Runs a command with one of each server for all tests in it.
WITH_SERVERS := go run ./internal/testpg/with-postgres go run ./internal/testdynamo/with-dynamo

SOAK ?= 10m
SIM  ?= 1000000

.DEFAULT_GOAL := help
.PHONY: help build demo demo-bridge test interop check fmt lint covered race vuln bench bench-peers soak sim docs clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-11s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: ## build bin/gdn
	go build -o bin/gdn ./cmd/gdn

demo: build ## try it: a fleet on this machine until Ctrl-C (CHECK=1: assert every answer and end)
	@hack/need.sh curl
	@hack/need.sh dig
	@CHECK='$(CHECK)' examples/demo.sh bin/gdn

demo-bridge: build ## try it: a message bridge of three members between two brokers, until Ctrl-C (CHECK=1: assert and end)
	@CHECK='$(CHECK)' examples/demo-bridge.sh bin/gdn

test: ## run every test, those on a private PostgreSQL and DynamoDB Local too
	@hack/need.sh curl
	@hack/need.sh dig
	@hack/need.sh postgresql
	@hack/need.sh java
	@hack/need.sh npm
	@hack/need.sh knot
	@hack/need.sh nsd
	@hack/need.sh h2load
	@hack/need.sh clang
	@hack/need.sh mosquitto
	$(WITH_SERVERS) $(GOTEST) ./...

interop: ## ask a node, Knot and NSD the same 5,000 DNS queries and compare the answers
	@hack/need.sh knot
	@hack/need.sh nsd
	go test -count=1 -run TestInterop -v ./internal/e2e

check: fmt lint covered race vuln ## format, vet, staticcheck, race detector, known vulnerabilities

fmt: bin/gofumpt
	@bad=$$(bin/gofumpt -l . ); [ -z "$$bad" ] || { echo "not formatted (run bin/gofumpt -w):"; echo "$$bad"; exit 1; }

lint: bin/staticcheck
	go vet ./...
	go vet -tags failpoint ./internal/failpoint
	bin/staticcheck ./...

# Every statement of the rollout protocol is reached by a test.
covered:
	@hack/covered.sh

race:
	@hack/need.sh gcc
	@hack/need.sh postgresql
	@hack/need.sh mosquitto
	CGO_ENABLED=1 go run ./internal/testpg/with-postgres $(GOTEST) -race -short $(RACE)

# The vulnerability database is on the network: without it this step says so and passes.
vuln:
	@hack/vulnerabilities.sh '$(GOVULNCHECK)'

bench: ## measure build, verify, swap, poll, DNS and proxy, and print a table
	@hack/bench.sh

bench-peers: ## measure a node beside Knot, NSD, BIND, CoreDNS, nginx, HAProxy, Caddy, Varnish and Mosquitto (ONLY=dns|proxy|tls|rules|function|cache|bridge, ROUNDS=5)
	@hack/bench-peers.sh

soak: ## publish under load, to a cohort that is disturbed, and with processes killed, for SOAK=10m each; roll a bridge under traffic
	GUARDYN_TEST_SOAK=$(SOAK) go test -count=1 -timeout 0 -run 'AppliesUnderLoad|ProcessesDie|Coordinated$$|CoordinatorsDie|BridgeTraffic' -v ./internal/e2e

sim: ## run SIM=1000000 schedules of the rollout barrier's simulator
	go test -count=1 -timeout 0 -run TestSchedules -v ./barrier/sim -sim.count=$(SIM)

docs: ## write the pages of docs/guide that are made from the commands and the language
	go run ./internal/cli/commandref > docs/guide/commands.md
	go run ./internal/expr/exprref > docs/guide/expressions.md

clean: ## remove what the other targets made
	rm -rf bin

bin/staticcheck: Makefile
	GOBIN=$(CURDIR)/bin go install $(STATICCHECK)
	@touch $@

bin/gofumpt: Makefile
	GOBIN=$(CURDIR)/bin go install $(GOFUMPT)
	@touch $@
