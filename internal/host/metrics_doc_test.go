package host_test

import (
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/guardyn-edge/guardyn/edge/perzone"
	"github.com/guardyn-edge/guardyn/internal/host"
)

// metric is one as a process shows it, or as the page describes it.
type metric struct {
	kind   string
	labels string // in order, with a comma between
}

var (
	typeLine   = regexp.MustCompile(`(?m)^# TYPE (guardyn_\w+) (\w+)$`)
	sampleLine = regexp.MustCompile(`(?m)^(guardyn_\w+?)(?:\{(.*)\})? \S+$`)
	labelName  = regexp.MustCompile(`(\w+)="`)
	metricRow  = regexp.MustCompile("(?m)^\\| `(guardyn_\\w+)` \\| (\\w+) \\| (.*?) ?\\| (.+) \\|$")
	labelCode  = regexp.MustCompile("`(\\w+)`")
)

// shownMetrics reads what a process shows.
func shownMetrics(t *testing.T, url string) map[string]metric {
	t.Helper()
	text := metricsOf(t, url)
	kinds, labels := map[string]string{}, map[string][]string{}
	for _, m := range typeLine.FindAllStringSubmatch(text, -1) {
		kinds[m[1]] = m[2]
	}
	for _, m := range sampleLine.FindAllStringSubmatch(text, -1) {
		name := m[1]
		if kinds[name] == "" { // of a histogram
			name = strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(name, "_bucket"), "_sum"), "_count")
		}
		for _, l := range labelName.FindAllStringSubmatch(m[2], -1) {
			if l[1] != "le" && !slices.Contains(labels[name], l[1]) {
				labels[name] = append(labels[name], l[1])
			}
		}
	}
	out := map[string]metric{}
	for name, kind := range kinds {
		slices.Sort(labels[name])
		out[name] = metric{kind, strings.Join(labels[name], ",")}
	}
	return out
}

// documentedMetrics reads the rows of the page.
func documentedMetrics(t *testing.T) map[string]metric {
	t.Helper()
	page, err := os.ReadFile("../../docs/operations/observability.md")
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]metric{}
	for _, m := range metricRow.FindAllStringSubmatch(string(page), -1) {
		var labels []string
		for _, l := range labelCode.FindAllStringSubmatch(m[3], -1) {
			labels = append(labels, l[1])
		}
		slices.Sort(labels)
		if _, twice := out[m[1]]; twice {
			t.Errorf("%s has two rows", m[1])
		}
		out[m[1]] = metric{m[2], strings.Join(labels, ",")}
	}
	return out
}

// TestMetricsAreDocumented: the page has a row for each metric that a node and a control plane show, with its type and labels, and no
// row of which there is no metric.
func TestMetricsAreDocumented(t *testing.T) {
	c := startCollector(t)
	cfg := controlConfig(t)
	cfg.TraceEndpoint = c.URL + "/otlp/"
	dir := t.TempDir()
	f := startFleet(t, cfg, func(e *host.EdgeConfig) {
		e.AccessLog, e.MetricsZones = filepath.Join(dir, "access.log"), perzone.Selection{All: true}
	})
	one := origin(t, "one")
	f.edit("1", one)
	f.apply(nil)
	f.serves("1", "one")
	f.tells(map[string]any{"cohort": true, "stale": false})
	f.edit("2", one)
	if ro := f.apply(toConfirm()); ro.State != "confirmed" {
		t.Fatalf("%+v", ro)
	}
	if res, err := http.Get("http://" + f.control.Addr() + "/nothing"); err != nil {
		t.Error(err)
	} else {
		_ = res.Body.Close()
	}
	shown := shownMetrics(t, "http://"+f.nodes[0].AdminAddr())
	for name, m := range shownMetrics(t, "http://"+f.control.Addr()) {
		if _, both := shown[name]; both {
			t.Errorf("node and control plane both show %s", name)
		}
		shown[name] = m
	}
	documented := documentedMetrics(t)
	for _, name := range slices.Sorted(maps.Keys(shown)) {
		if documented[name] != shown[name] {
			t.Errorf("%s: %+v is shown, the page says %+v", name, shown[name], documented[name])
		}
	}
	// What this fleet gives no occasion for; other tests have it.
	rare := []string{
		"guardyn_edge_config_refused", "guardyn_edge_tls_certificate_expires_seconds", "guardyn_rollbacks_total",
		"guardyn_edge_zone_function_calls_total", "guardyn_edge_zone_function_seconds_total", "guardyn_edge_zone_function_memory_peak_bytes",
	}
	for _, name := range slices.Sorted(maps.Keys(documented)) {
		if _, is := shown[name]; !is && !slices.Contains(rare, name) {
			t.Errorf("the page has %s, and nothing shows it", name)
		}
	}
}
