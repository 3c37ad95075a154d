package control_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/guardyn-edge/guardyn/control"
	"github.com/guardyn-edge/guardyn/internal/nodeproto"
	"github.com/guardyn-edge/guardyn/zone"
)

func TestPoolStatus(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	z := w.zone(t, w.editor, "example.com")
	no := false
	_, err := w.svc.Pools().Put(ctx, w.editor, "example.com", "main", zone.Pool{Origins: []zone.Origin{
		{Name: "a", Address: "192.0.2.1:80"}, {Name: "b", Address: "192.0.2.2:80"}, {Name: "off", Address: "192.0.2.3:80", Enabled: &no},
	}}, control.Any)
	if err != nil {
		t.Fatal(err)
	}
	earlier, later := time.Unix(1000, 0).UTC(), time.Unix(2000, 0).UTC()
	down := func(origin, state string, since time.Time, text string) nodeproto.OriginDown {
		return nodeproto.OriginDown{Zone: string(z.ID), Pool: "main", Origin: origin, State: state, Since: since, Error: text}
	}
	foreign := down("a", nodeproto.OriginUnhealthy, earlier, "of another zone")
	foreign.Zone = "018f0000-0000-7000-8000-000000000000"
	many := make([]nodeproto.OriginDown, nodeproto.MaxOriginsDown+1)
	for i := range many {
		many[i] = down(fmt.Sprintf("o%d", i), nodeproto.OriginUnhealthy, earlier, "")
	}
	for name, pools := range map[string]*nodeproto.Pools{
		"old":  nil,
		"well": {Checked: 2},
		"one": {Down: []nodeproto.OriginDown{
			down("a", nodeproto.OriginUnhealthy, later, strings.Repeat("x", 300)), down("a", nodeproto.OriginUnhealthy, later, "twice"), foreign,
			down("b", "made up", later, ""), down("../x", nodeproto.OriginEjected, later, ""),
		}},
		"two":  {Down: []nodeproto.OriginDown{down("a", nodeproto.OriginEjected, earlier, "older")}},
		"full": {Down: many},
	} {
		if err := w.svc.Ack(ctx, w.node(t, name), nodeproto.Ack{Boot: boot, Pools: pools}); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	for _, row := range []struct {
		name   string
		as     control.Principal
		downOn string
	}{{"editor", w.editor, ""}, {"operator", w.operator, "one two"}} {
		got, err := w.svc.PoolStatus(ctx, row.as, "example.com", "main")
		if err != nil {
			t.Fatal(err)
		}
		if got.Nodes != 3 || got.Unknown != 2 || len(got.Origins) != 3 {
			t.Fatalf("%s: %+v", row.name, got)
		}
		a, b, off := got.Origins[0], got.Origins[1], got.Origins[2]
		if a.Serving != 1 || a.Unhealthy != 1 || a.Ejected != 1 || !a.Since.Equal(earlier) || a.Error != strings.Repeat("x", 200) {
			t.Errorf("%s: a %+v", row.name, a)
		}
		if strings.Join(a.DownOn, " ") != row.downOn {
			t.Errorf("%s: down on %v, want %s", row.name, a.DownOn, row.downOn)
		}
		if b.Serving != 3 || b.Error != "" || off.Enabled || off.Serving != 0 {
			t.Errorf("%s: b %+v, off %+v", row.name, b, off)
		}
	}
	// All pools of the zone in one pass, each as it is told of by itself.
	if _, err := w.svc.Pools().Put(ctx, w.editor, "example.com", "alone", zone.Pool{Origins: []zone.Origin{{Name: "a", Address: "192.0.2.9:80"}}}, control.Any); err != nil {
		t.Fatal(err)
	}
	for _, as := range []control.Principal{w.editor, w.operator} {
		all, err := w.svc.PoolStatuses(ctx, as, "example.com")
		if err != nil || len(all) != 2 || all[0].Pool != "alone" || all[1].Pool != "main" {
			t.Fatalf("%+v, %v", all, err)
		}
		for _, got := range all {
			if one, err := w.svc.PoolStatus(ctx, as, "example.com", got.Pool); err != nil || !reflect.DeepEqual(got, one) {
				t.Errorf("%+v, by itself %+v, %v", got, one, err)
			}
		}
		if a := all[0].Origins[0]; a.Serving != 3 || a.Error != "" {
			t.Errorf("an origin of the same name in another pool: %+v", a)
		}
	}
	w.zone(t, w.editor, "empty.example")
	if all, err := w.svc.PoolStatuses(ctx, w.editor, "empty.example"); len(all) > 0 || err != nil {
		t.Errorf("%+v, %v", all, err)
	}
	_, err = w.svc.PoolStatuses(ctx, w.editor, "none.example")
	wantError(t, "no such zone", err, control.ErrNotFound)
	_, err = w.svc.PoolStatus(ctx, w.editor, "example.com", "none")
	wantError(t, "no such pool", err, control.ErrNotFound)
}
