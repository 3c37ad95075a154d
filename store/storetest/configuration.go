package storetest

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/go-json-experiment/json"

	"github.com/guardyn-edge/guardyn/control"
	"github.com/guardyn-edge/guardyn/snapshot"
	"github.com/guardyn-edge/guardyn/zone"
)

func (f *fixture) configuration() []snapshot.ZoneInput {
	f.Helper()
	inputs, err := f.store.ReadConfiguration(f.ctx)
	f.ok(err)
	return inputs
}

// body prints an object as control stores it.
func body(v any) string {
	b, err := json.Marshal(v, json.Deterministic(true))
	if err != nil {
		panic(err)
	}
	return string(b)
}

var configurationClauses = []clause{
	{name: "no zones is no zones", alone: true, run: func(f *fixture) {
		if got := f.configuration(); len(got) != 0 {
			f.Errorf("got %v", got)
		}
	}},
	{name: "every zone of every workspace, ordered by id, with the ceilings of its plan", alone: true, run: func(f *fixture) {
		f.ok(f.store.PutPlan(f.ctx, zone.Plan{Name: "large", Ceilings: zone.Ceilings{Records: 77_000}}, f.entry("plan.put")))
		w, err := f.store.WorkspaceByID(f.ctx, f.other)
		f.ok(err)
		w.Plan = "large"
		f.ok(f.store.UpdateWorkspace(f.ctx, w, f.entry("workspace.update")))
		var want []string
		for i, ws := range []string{f.ws, f.other, f.ws, f.other} {
			z := control.ZoneRow{ID: zone.ID(id()), Name: zone.MustName(fmt.Sprintf("z%d.example", 9-i)), CreatedAt: f.now()}
			if i == 1 {
				z.ID = "00000000" + z.ID[8:] // created second, first by id
			}
			f.ok(f.store.CreateZone(f.ctx, ws, z, f.entry("zone.create")))
			want = append(want, fmt.Sprint(z.ID, ws, z.Name, ws == f.other))
		}
		slices.Sort(want)
		var got []string
		for _, in := range f.configuration() {
			got = append(got, fmt.Sprint(in.Zone.ID, in.Workspace, in.Zone.Name, in.Zone.Ceilings.Records == 77_000))
		}
		f.same("zones", got, want)
	}},
	{name: "a zone comes with its records and objects of every kind", alone: true, run: func(f *fixture) {
		percent := zone.Percent(2500)
		want := zone.Zone{
			Rulesets: map[zone.Phase][]zone.Rule{
				zone.PhaseCustom:   {{Description: "kept", Expression: "true", Action: zone.ActionBlock}},
				zone.PhaseRedirect: {{Expression: "false", Action: zone.ActionRedirect, Parameters: zone.Parameters{Location: "/"}}},
			},
			Lists:         map[string]zone.List{"office": {Kind: zone.ListIP, Items: []string{"192.0.2.0/24"}}},
			Pools:         map[string]zone.Pool{"main": {Origins: []zone.Origin{{Name: "a", Address: "192.0.2.10:443"}}}},
			LoadBalancers: map[zone.Name]zone.LoadBalancer{zone.MustName("www.whole.example"): {Pools: []string{"main"}}},
			CachePolicy:   zone.CachePolicy{Disabled: true},
			TLSHosts:      map[zone.Name]zone.TLSHost{zone.MustName("*.whole.example"): {Certificate: "C", SealedKey: "K"}},
			Functions:     map[string]zone.Function{"hello": {Module: []byte{0, 'a', 's', 'm'}}},
			Settings:      zone.Settings{TraceSampling: &percent},
		}
		z, empty := f.zone("whole.example"), f.zone("empty.example")
		want.ID, want.Name = z.ID, z.Name
		for phase, rules := range want.Rulesets {
			f.put(z, control.KindRuleset, string(phase), body(rules))
		}
		f.put(z, control.KindList, "office", body(want.Lists["office"]))
		f.put(z, control.KindPool, "main", body(want.Pools["main"]))
		f.put(z, control.KindLoadBalancer, "www.whole.example", body(want.LoadBalancers[zone.MustName("www.whole.example")]))
		f.put(z, control.KindCachePolicy, "zone", body(want.CachePolicy))
		f.put(z, control.KindTLSHost, "*.whole.example", body(want.TLSHosts[zone.MustName("*.whole.example")]))
		f.put(z, control.KindFunction, "hello", body(want.Functions["hello"]))
		f.put(z, control.KindSettings, "zone", body(want.Settings))
		rows := []control.RecordRow{
			{ID: id(), Record: zone.Record{Name: zone.MustName("www.whole.example"), Type: rrtype("A"), Content: "192.0.2.1", TTL: 60, Proxied: true}},
			{ID: id(), Record: zone.Record{Name: zone.MustName("whole.example"), Type: rrtype("TXT"), Content: "b"}},
			{ID: id(), Record: zone.Record{Name: zone.MustName("whole.example"), Type: rrtype("TXT"), Content: "a"}},
			{ID: id(), Record: zone.Record{Name: zone.MustName("whole.example"), Type: rrtype("MX"), Content: "10 mail.whole.example"}},
		}
		f.insert(z, rows...)
		for _, r := range sortRecords(rows) {
			want.Records = append(want.Records, r.Record)
		}
		slices.SortFunc(want.Records, zone.Record.Compare)
		got := f.configuration()
		slices.SortFunc(got, func(a, b snapshot.ZoneInput) int { return cmp.Compare(len(b.Zone.Records), len(a.Zone.Records)) })
		f.same("the zone", *got[0].Zone, want)
		if len(got[1].Zone.Records) != 0 {
			f.Errorf("the empty zone has records")
		}
		got[1].Zone.Records = nil
		f.same("the empty zone", *got[1].Zone, zone.Zone{ID: empty.ID, Name: empty.Name})
	}},
	{name: "it is one read, whatever is edited meanwhile", alone: true, run: func(f *fixture) {
		zones := []control.ZoneRow{f.zone("one.example"), f.zone("two.example")}
		rows := []control.RecordRow{record("one.example", "0"), record("two.example", "0")}
		edit := func(i, n int) error {
			// A record and a setting that say the same, in one transaction.
			percent := zone.Percent(n)
			ch := control.RecordChange{Settings: []byte(body(zone.Settings{TraceSampling: &percent}))}
			r := rows[i]
			r.Content = fmt.Sprint(n)
			if n == 0 {
				ch.Insert = []control.RecordRow{r}
			} else {
				ch.Update = []control.RecordRow{r}
			}
			return f.change(zones[i], ch)
		}
		f.ok(edit(0, 0))
		f.ok(edit(1, 0))
		written := make(chan error, 1)
		go func() {
			for n := 1; n <= 60; n++ {
				// The first zone is always edited first.
				for i := range zones {
					if err := edit(i, n); err != nil {
						written <- err
						return
					}
				}
			}
			written <- nil
		}()
		for done := false; !done; {
			select {
			case err := <-written:
				f.ok(err)
				done = true
			default:
			}
			var said []int
			for _, in := range f.configuration() {
				setting := int(*in.Zone.Settings.TraceSampling)
				if got := in.Zone.Records[0].Content; got != fmt.Sprint(setting) {
					f.Fatalf("%s: the record says %s, the setting %d", in.Zone.Name, got, setting)
				}
				said = append(said, setting)
			}
			if ahead := said[0] - said[1]; ahead != 0 && ahead != 1 {
				f.Fatalf("the zones are at %v: not one read", said)
			}
		}
	}},
}
