package metering_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/guardyn-edge/guardyn/internal/metering"
	"github.com/guardyn-edge/guardyn/internal/wat"
)

func TestRefused(t *testing.T) {
	locals := strings.Repeat("(local i64)", 10_001)
	tests := []struct{ name, module, says string }{
		{"a foreign import", `(import "env" "open" (func $o)) ` + start, `imports "open" from "env"`},
		{"an import that WASI has not", `(import "wasi_snapshot_preview1" "fork" (func $o)) ` + start, `imports "fork"`},
		{"the host's own function", `(import "guardyn" "yield" (func $o (param i32) (result i32))) ` + start, `imports "yield" from "guardyn"`},
		{"an import of another type", `(import "wasi_snapshot_preview1" "proc_exit" (func $o (param i64))) ` + start, "another type"},
		{"an import that returns", `(import "wasi_snapshot_preview1" "proc_exit" (func $o (param i32) (result i32))) ` + start, "another type"},
		{"no _start", `(func)`, "_start"},
		{"a _start with a parameter", `(func (export "_start") (param i32))`, "_start"},
		{"a _start that returns", `(func (export "_start") (result i32) i32.const 1)`, "_start"},
		{"more memory than it may have", `(memory 65) ` + start, "begins with 4160 KiB"},
		{"a table beyond the bound", `(table 131073 funcref) ` + start, "tables have more than"},
		{"tables beyond the bound together", strings.Repeat("(table 70000 funcref) ", 2) + start, "tables have more than"},
		{"17 tables", strings.Repeat("(table 1 funcref) ", 17) + start, "17 tables"},
		{"too many globals", strings.Repeat("(global i32 (i32.const 0)) ", 16_385) + start, "globals"},
		{"too many locals", `(func (export "_start")` + locals + `)`, "locals"},
		{"blocks in each other", `(func (export "_start") ` + strings.Repeat("block ", 2001) + strings.Repeat("end ", 2001) + `)`, "blocks in each other"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := metering.Rewrite(assemble(t, tt.module), 4<<20)
			if err == nil || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("the error is %v, want one of %q", err, tt.says)
			}
		})
	}
	good := assemble(t, start+`(memory 1)`)
	for name, module := range map[string][]byte{
		"nothing": nil, "another format": []byte("\x7fELF"), "the head alone": good[:8],
		"a section of another proposal": append(good[:len(good):len(good)], 14, 0),
		"a section twice":               append(good[:len(good):len(good)], 5, 1, 0),
		"half a section":                append(good[:len(good):len(good)], 11, 9, 1),
	} {
		if out, err := metering.Rewrite(module, 4<<20); err == nil {
			t.Errorf("%s becomes %d bytes", name, len(out))
		}
	}
	for i := 9; i < len(good); i++ {
		if _, err := metering.Rewrite(good[:i], 4<<20); err == nil {
			t.Errorf("the first %d of %d bytes are taken for a module", i, len(good))
		}
	}
}

// FuzzRewrite sees that what is valid stays so, and that nothing else does harm.
func FuzzRewrite(f *testing.F) {
	for _, text := range []string{
		start,
		`(memory 1 2) (data (i32.const 8) "abc") (data (i32.const 12) "def")` + start,
		`(table 4 funcref) (elem (i32.const 0) $a) (func $a (param i32) (result i32) local.get 0 if (result i32) i32.const 0 call_indirect (param i32) (result i32) else i32.const 1 return end)` + start,
		`(memory 1) (func (export "_start") loop i32.const 0 i32.const 1 i32.const 2 memory.fill block br 1 end end)`,
		`(global $g (mut i64) (i64.const 1)) (func $two (result i64 i64) i64.const 1 i64.const 2 return) (func (export "_start") call $two drop global.set $g)`,
		`(import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32))) (func (export "_start") block block i32.const 1 br_table 0 1 0 end end i32.const 0 call $exit unreachable)`,
		`(func (export "_start") i32.const 3 i8x16.splat i32x4.extract_lane 2 f64.const 2.5 i32.trunc_sat_f64_u drop drop)`,
	} {
		module, err := wat.Assemble("(module " + text + ")")
		if err != nil {
			f.Fatal(err)
		}
		f.Add(module)
	}
	ctx := context.Background()
	config := wazero.NewRuntimeConfigInterpreter().WithCoreFeatures(api.CoreFeaturesV2).WithDebugInfoEnabled(false)
	compile := func(module []byte) (err error) {
		r := wazero.NewRuntimeWithConfig(ctx, config)
		defer r.Close(ctx)
		defer func() {
			if r := recover(); r != nil {
				err = fmt.Errorf("%v", r)
			}
		}()
		_, err = r.CompileModule(ctx, module)
		return err
	}
	f.Fuzz(func(t *testing.T, module []byte) {
		rewritten, err := metering.Rewrite(module, 4<<20)
		if err != nil || compile(module) != nil {
			return
		}
		if err := compile(rewritten); err != nil {
			t.Errorf("a valid module becomes an invalid one: %v", err)
		}
		if _, _, err := metering.Memory(rewritten); err != nil {
			t.Error(err)
		}
	})
}
