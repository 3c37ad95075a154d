package archtest

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// limit is a row of docs/operations/limits.md: the constant that it shows, in which unit (see shown), and the tests that go beyond it.
type limit struct {
	source, unit string
	tests        string // directory and names
}

// inOrder are the rows of the page, each by what its first column says, in the order of the page.
var inOrder = []struct {
	name string
	limit
}{
	// DNS.
	{"answers by UDP to one /24 or /64 for one name", limit{"edge/dns .RateLimit", "n", "edge/dns TestRateLimit TestRateLimitDefault"}},
	{"pairs of prefix and name that are counted", limit{"edge/dns rateTableSize", "n", "edge/dns TestLimiterForgetsTheQuiet"}},
	{"a message by UDP", limit{"edge/dns readSize", "n", "edge/dns TestMalformed TestBatchCut"}},
	{"an answer by UDP", limit{"edge/dns udpSize", "n", "edge/dns TestTruncation TestEDNS"}},
	{"a message by TCP", limit{"edge/dns tcpSize", "n", "edge/dns TestTCPLargeQuery FuzzRespond"}},
	{"messages that one system call takes in or out", limit{"edge/dns batchSize", "n", "edge/dns TestBatch"}},
	{"UDP sockets", limit{"edge/dns maxSockets", "n", "edge/dns TestSocketsAreBounded"}},
	{"DNS connections over TCP", limit{"edge/dns .MaxConnections", "n", "edge/dns TestTCPCaps"}},
	{"DNS connections over TCP of one IPv4 address or /64", limit{"edge/dns .MaxConnectionsPerSource", "n", "edge/dns TestTCPCaps"}},
	{"time for a message over TCP, in or out", limit{"edge/dns .IdleTimeout", "t", "edge/dns TestTCPDeadlines TestTCPSlowOctets"}},
	{"time on a TCP connection", limit{"edge/dns .ConnectionTimeout", "t", "edge/dns TestTCPTotalTime"}},
	{"aliases that one answer follows", limit{"edge/dns maxChain", "n", "edge/dns TestConformance"}},
	{"targets that the additional section has addresses of", limit{"edge/dns maxTargets", "n", "edge/dns TestTargetsAreBounded"}},
	{"addresses of a node", limit{"edge MaxServiceAddresses", "n", "edge TestCompileErrors"}},
	{"NSID", limit{"edge/dns maxNSID", "b", "edge/dns TestConfigErrors"}},
	// HTTP: clients.
	{"client connections, HTTP and HTTPS together", limit{"edge/web .MaxConnections", "n", "edge/web TestConnectionsOverTheBoundWait"}},
	{"requests handled at once, WebSockets included", limit{"edge/web .MaxRequests", "n", "edge/web TestRequestsOverTheBoundAreShed TestShedStreams"}},
	{"requests of one zone handled at once", limit{"", "", "edge/web TestRequestsOfOneZoneAreBounded TestMostOfTheSlots"}},
	{"requests of one zone", limit{"zone .RequestRate", "n", "edge/web TestRateLimit"}},
	{"body of a request", limit{"zone .RequestBody", "b", "edge/web TestBodyCeiling"}},
	{"head of a request", limit{"edge/http1 MaxHead", "b", "edge/http1 TestRequests"}},
	{"fields of a request", limit{"edge/http1 MaxFields", "n", "edge/http1 TestRequests"}},
	{"time for a head", limit{"edge/web .HeaderTimeout", "t", "edge/web TestClientsThatStall"}},
	{"time between requests", limit{"edge/web .IdleTimeout", "t", "edge/web TestClientsThatStall"}},
	{"silence in a body", limit{"edge/web .BodyStall", "t", "edge/web TestClientsThatStall"}},
	{"a client that takes nothing of its answer", limit{"edge/web .WriteStall", "t", "edge/web TestClientThatTakesNothing TestStreamThatTakesNothingIsReset"}},
	{"the line before a chunk", limit{"edge/http1 MaxChunkLine", "b", "edge/http1 TestRequests"}},
	{"digits of a chunk's size", limit{"edge/http1 maxChunkDigits", "n", "edge/http1 TestRequests"}},
	{"octets that frame chunks, beyond 8 for each octet in them", limit{"edge/http1 maxFraming", "b", "edge/http1 TestRequests"}},
	{"trailer section of a request", limit{"edge/http1 maxTrailer", "b", "edge/http1 TestRequests"}},
	{"what is read of a body that nobody wants", limit{"edge/http1 maxDrain", "b", "edge/http1 TestBodyThatNobodyReads"}},
	{"time for that", limit{"edge/web lingerTime", "t", "edge/http1 TestBodyThatDoesNotCome"}},
	{"addresses of `X-Forwarded-For` that are believed", limit{"edge/web maxChain", "n", "edge/web TestChainIsBounded"}},
	{"nodes of the platform that a request may pass", limit{"edge/web maxLoops", "n", "edge/web TestLoopsEnd"}},
	{"TLS handshakes that are worked on at once", limit{"edge/web .MaxHandshakes", "n", "edge/web TestHandshakesAreBounded TestHandshakeSlots"}},
	{"time for a handshake", limit{"edge/web .HandshakeTimeout", "t", "edge/web TestHandshakesAreBounded"}},
	{"streams of a connection by HTTP/2", limit{"edge/web maxStreams", "n", "edge/web TestBoundsOfHTTP2"}},
	{"frame by HTTP/2", limit{"edge/web maxFrame", "b", "edge/web TestBoundsOfHTTP2"}},
	{"body that a stream may send before it is read", limit{"edge/web streamWindow", "b", "edge/web TestBoundsOfHTTP2"}},
	{"bodies that a connection may send before they are read", limit{"edge/web connWindow", "b", "edge/web TestBoundsOfHTTP2"}},
	{"table of header compression", limit{"edge/web maxHeaderTable", "b", "edge/web TestBoundsOfHTTP2"}},
	{"time for requests to end when a node stops", limit{"edge/web .Grace", "t", "edge/web TestStopWithTLSConnections"}},
	// HTTP: origins.
	{"time to connect to an origin, and again for TLS", limit{"edge/web .DialTimeout", "t", "edge/web TestOriginErrors"}},
	{"origins that a request goes on to when none can be connected to", limit{"edge/pool MaxRetries", "n", "edge/pool TestNext"}},
	{"an origin's thinking", limit{"edge/web .OriginHeaderTimeout", "t", "edge/web TestOriginErrors TestOriginErrorsOverHTTP2"}},
	{"an origin that takes nothing of a body", limit{"edge/web .WriteStall", "t", "edge/web TestOriginThatTakesNothing"}},
	{"silence, either way, of an answer that has begun, a stream of both directions or a WebSocket", limit{"edge/web .StreamIdleTimeout", "t", "edge/web TestAnswerThatFallsSilent TestStreamsOfBothDirections TestTunnelIdle"}},
	{"silence of a WebSocket of which one side is done", limit{"edge/web .IdleTimeout", "t", "edge/web TestTunnelOfWhichOneSideIsSilentEnds"}},
	{"head of an answer", limit{"edge/web maxHeaderBytes", "b", "edge/web TestMalformedAnswers"}},
	{"interim answers", limit{"edge/web maxInterim", "n", "edge/web TestMalformedAnswers"}},
	{"fields of an answer", limit{"edge/http1 MaxFields", "n", "edge/web TestMalformedAnswers TestAnswersOfManyFields"}},
	{"trailers of an answer", limit{"edge/web maxHeaderBytes", "b", "edge/web TestTrailersAreBounded"}},
	{"idle connections to origins by HTTP/1.1, and again those by HTTP/2", limit{"edge/web .MaxIdleOriginConns", "n", "edge/web TestIdleConnectionsAreBounded"}},
	{"of them to one origin of one zone", limit{"edge/web .MaxIdleConnsPerOrigin", "n", "edge/web TestIdleConnectionsAreBounded"}},
	{"time that one is idle", limit{"edge/web .OriginIdleTimeout", "t", "edge/web TestIdleConnectionsAreBounded"}},
	{"health checks under way", limit{"edge/health DefaultWorkers", "n", "edge/health TestWorkers"}},
	{"head of an answer to a health check", limit{"edge/health maxHead", "b", "edge/health TestClient"}},
	{"body of one that is read", limit{"edge/health maxBody", "b", "edge/health TestClient"}},
	{"error that is kept of an origin", limit{"edge/pool maxReason", "b", "internal/host TestPoolReport"}},
	{"an ejection", limit{"edge/pool maxEjectionTime", "t", "edge/pool TestEjection"}},
	{"origins named in an acknowledgement", limit{"internal/nodeproto MaxOriginsDown", "n", "internal/host TestPoolReportIsBounded"}},
	// Rules, lists, rate limits.
	{"keys that rate limits count", limit{"edge/ratelimit DefaultEntries", "n", "edge/ratelimit TestFloodOfNewKeysDoesNotEraseWhoIsAtTheLimit"}},
	{"compiled expressions that zones share", limit{"edge/rules DefaultPrograms", "n", "edge/rules TestProgramsAreSharedAndBounded"}},
	{"characters of an expression", limit{"internal/expr MaxSource", "n", "internal/expr TestBounds"}},
	{"nodes of an expression", limit{"internal/expr MaxNodes", "n", "internal/expr TestBounds"}},
	{"levels of an expression", limit{"internal/expr MaxDepth", "n", "internal/expr TestBounds"}},
	{"cost of an expression, for the largest request", limit{"internal/expr MaxCost", "n", "internal/expr TestBounds"}},
	{"rules that a record of the access log names", limit{"edge/web maxLogged", "n", "edge/web TestRulesOfARecordAreBounded"}},
	// Plan ceilings.
	{"records", limit{"zone .Records", "n", ceilings}},
	{"rules, over all phases", limit{"zone .Rules", "n", ceilings}},
	{"lists", limit{"zone .Lists", "n", ceilings}},
	{"items, over all lists", limit{"zone .ListItems", "n", ceilings}},
	{"pools", limit{"zone .Pools", "n", ceilings}},
	{"origins, over all pools", limit{"zone .Origins", "n", ceilings}},
	{"load balancers", limit{"zone .LoadBalancers", "n", ceilings}},
	{"TLS hosts", limit{"zone .TLSHosts", "n", ceilings}},
	{"functions", limit{"zone .Functions", "n", ceilings}},
	{"a function's module", limit{"zone .FunctionSize", "b", ceilings}},
	{"a function's memory", limit{"zone .FunctionMemory", "b", ceilings}},
	{"a function's time", limit{"zone .FunctionTime", "t", ceilings}},
	{"a function's output", limit{"zone .FunctionOutput", "b", ceilings}},
	// Logs, metrics and the admin address.
	{"records that wait for the access log", limit{"internal/host accessLogWaiting", "n", "internal/host TestAccessLogNobodyReads"}},
	{"octets of them", limit{"internal/host accessLogWaitingBytes", "b", "internal/host TestAccessLogBytes"}},
	{"spans that wait for the collector", limit{"internal/telemetry maxQueue", "n", "internal/telemetry TestSendingDoesNotWait"}},
	{"of them those of requests", limit{"internal/telemetry maxRequests", "n", "internal/telemetry TestQueueIsBounded"}},
	{"spans of one request", limit{"edge/web maxSpans", "n", "edge/web TestTraceIsBounded"}},
	{"attributes of a span", limit{"edge/web maxAttributes", "n", "edge/web TestTraceIsBounded"}},
	{"events of a span", limit{"edge/web maxEvents", "n", "edge/web TestTraceIsBounded"}},
	{"`tracestate` that is passed on", limit{"edge/web maxTracestate", "b", "edge/web TestTracestate"}},
	{"members of `tracestate`", limit{"edge/web maxStateMembers", "n", "edge/web TestTracestate"}},
	{"zones with metrics of their own", limit{"edge/perzone Max", "n", "edge/perzone TestSetIsBounded"}},
	{"connections to the admin address", limit{"internal/host maxAdminConns", "n", "internal/host TestAdminIsBounded"}},
	{"time for an answer of it, a profile included", limit{"internal/host adminWriteTimeout", "t", "internal/host TestAdminIsBounded"}},
	// The agent.
	{"payload of a snapshot", limit{"seal MaxPayload", "b", "api TestNodeClientTransfer"}},
	{"document that it unpacks to", limit{"seal MaxDocument", "b", "seal TestUnpackIsBounded"}},
	{"levels of a document", limit{"snapshot maxNesting", "n", "snapshot TestVectors"}},
	{"wait for the first octet, after the poll's own wait", limit{"api answerSlack", "t", "api TestNodeClientSilence"}},
	{"a payload brings at least", limit{"api transferFloor", "b", "api TestNodeClientTransfer"}},
	{"pause between polls that fail", limit{"internal/nodeproto MaxBackoff", "t", "node TestBackoff"}},
	{"identities that open private keys", limit{"internal/host maxIdentities", "n", "internal/host TestIdentities"}},
	{"file of them", limit{"internal/host maxIdentityFile", "b", "internal/host TestIdentities"}},
	{"zones that a trial of a rollout asks for", limit{"edge/probe MaxZones", "n", "edge/probe TestBounds"}},
	{"hosts that it asks for", limit{"edge/probe MaxHosts", "n", "edge/probe TestBounds"}},
	{"pools that it asks", limit{"edge/probe MaxPools", "n", "edge/probe TestBounds"}},
	// The control plane.
	{"connections to the API", limit{"internal/host DefaultMaxConns", "n", "internal/host TestControlBoundsConnections"}},
	{"requests at once on one connection by HTTP/2", limit{"api maxStreams", "n", "api TestStreamsOfTheAPI"}},
	{"head of a request to the API", limit{"api maxHeaderBytes", "b", "api TestSlowClients"}},
	{"time for a head of one", limit{"api readHeaderTimeout", "t", "api TestSlowClients"}},
	{"time for a body of one; more for a large one, at 64 KiB a second", limit{"api readTimeout", "t", "api TestSlowClients"}},
	{"time for an answer; more for one that takes the whole configuration", limit{"api writeTimeout", "t", "api TestSlowClients"}},
	{"time between requests to the API", limit{"api idleTimeout", "t", "api TestSlowClients"}},
	{"body in JSON", limit{"api MaxBody", "b", "api TestMalformedRequests"}},
	{"body of a list or a function", limit{"api MaxLargeBody", "b", "api TestLargeBodiesAreBounded"}},
	{"zone file", limit{"control MaxImport", "b", "api TestMalformedRequests"}},
	{"bodies over 1 MiB at once", limit{"api maxLargeBodies", "n", "api TestLargeBodiesAreBounded"}},
	{"of them of one user", limit{"api maxLargeBodiesPerUser", "n", "api TestLargeBodiesAreBounded"}},
	{"an acknowledgement of a node", limit{"api maxAckBody", "b", "api TestAck"}},
	{"a message of a member of the cohort", limit{"barrier/remote maxRequest", "b", "barrier/remote TestLargeBodies"}},
	{"rows of a page", limit{"control MaxPage", "n", "api TestMalformedRequests"}},
	{"message of an apply", limit{"control MaxMessage", "b", "control TestApplyRefusesMalformedRequests"}},
	{"idempotency key", limit{"control MaxIdempotencyKey", "b", "api TestIdempotencyKey"}},
	{"polls that wait", limit{"control DefaultMaxLongPolls", "n", "control TestLongPollEnds"}},
	{"purges of a zone in a minute", limit{"control MaxZonePurges", "n", "control TestPurgeRate"}},
	{"purges of a workspace in a minute", limit{"control MaxWorkspacePurges", "n", "store TestStore"}},
}

const ceilings = "edge TestCeilingsAreJudgedAgain"

// TestLimitsAreAsTheyAreShown: each row shows what the source says, and has a test that goes beyond it; no row has neither.
func TestLimitsAreAsTheyAreShown(t *testing.T) {
	s := newSources(t)
	page, err := os.ReadFile(filepath.Join(top(t), "docs/operations/limits.md"))
	if err != nil {
		t.Fatal(err)
	}
	var rows [][]string
	for line := range strings.Lines(string(page)) {
		if cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|"); strings.HasPrefix(line, "| ") && len(cells) == 4 {
			for i := range cells {
				cells[i] = strings.TrimSpace(cells[i])
			}
			if cells[0] != "limit" && !strings.HasPrefix(cells[0], "---") {
				rows = append(rows, cells)
			}
		}
	}
	for i := range max(len(rows), len(inOrder)) {
		if i >= len(rows) || i >= len(inOrder) || rows[i][0] != inOrder[i].name {
			t.Fatalf("row %d of the page and of this test are of different limits: %v", i+1, rows[min(i, len(rows)-1)])
		}
		row, l := rows[i], inOrder[i].limit
		if l.source != "" {
			n, err := s.value(l.source)
			if err != nil {
				t.Errorf("%s: %v", row[0], err)
			} else if want := shown(n, l.unit); !regexp.MustCompile(`(^|\s)` + regexp.QuoteMeta(want) + `\b`).MatchString(row[1]) {
				t.Errorf("%s: the page shows %q, the source says %s", row[0], row[1], want)
			}
		}
		if row[2] == "" || row[3] == "" {
			t.Errorf("%s: who sets it, or what happens beyond it, is missing", row[0])
		}
		dir, names, _ := strings.Cut(l.tests, " ")
		for name := range strings.FieldsSeq(names) {
			if !hasTest(t, dir, name) {
				t.Errorf("%s: there is no %s in %s", row[0], name, dir)
			}
		}
		if names == "" {
			t.Errorf("%s: no test goes beyond it", row[0])
		}
	}
}

func hasTest(t *testing.T, dir, name string) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(top(t), dir, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), fmt.Sprintf("func %s(", name)) {
			return true
		}
	}
	return false
}

// elsewhere are constants of the edge that bound something, and are no limit of a page: what they stand for is in a row under another
// name, within one message, or on the page of what they belong to.
var elsewhere = map[string]string{
	"edge":       "maxErrors",        // of one error's text
	"edge/dns":   "maxPointer",       // of the format
	"edge/rrset": "MaxName maxLabel", // of the format
	"edge/probe": "maxDetail",        // of one report
	"edge/web":   "maxFetches maxRefused maxRounds maxSmallBody maxSweep maxTold",
}

// ownPages are rooms of the edge whose bounds are on a page of their own, docs/guide/cache.md and docs/guide/functions.md.
var ownPages = map[string]bool{"cache": true, "function": true}

// TestBoundsOfTheEdgeAreLimits: a new constant that reads like a bound has a row of the page, or a place among elsewhere.
func TestBoundsOfTheEdgeAreLimits(t *testing.T) {
	s := newSources(t)
	dirs, err := filepath.Glob(filepath.Join(top(t), "edge", "*"))
	if err != nil {
		t.Fatal(err)
	}
	known := make(map[string]bool)
	for _, row := range inOrder {
		known[row.source] = true
	}
	for dir, names := range elsewhere {
		for name := range strings.FieldsSeq(names) {
			known[dir+" "+name] = true
			if !slices.Contains(s.bounds(dir), name) {
				t.Errorf("%s has no %s any more", dir, name)
			}
		}
	}
	all := []string{"edge"}
	for _, d := range dirs {
		if ownPages[filepath.Base(d)] {
			continue
		}
		if i, err := os.Stat(d); err == nil && i.IsDir() {
			all = append(all, "edge/"+filepath.Base(d))
		}
	}
	for _, dir := range all {
		for _, name := range s.bounds(dir) {
			if !known[dir+" "+name] {
				t.Errorf("%s in %s: a bound without a row in docs/operations/limits.md", name, dir)
			}
		}
	}
}
