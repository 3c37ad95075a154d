package cli

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/guardyn-edge/guardyn/internal/durable"
)

var devCertificateFiles = []string{devCAFile, devCertFile, devKeyFile}

func readCertificate(t *testing.T, dir *durable.Dir) (texts [][]byte) {
	t.Helper()
	for _, name := range devCertificateFiles {
		text, err := dir.Read(name, maxPEMFile)
		must(t, err)
		texts = append(texts, text)
	}
	return texts
}

func TestCertificateOfDev(t *testing.T) {
	start := time.Now()
	file := func(dir *durable.Dir, name string) string { return filepath.Join(dir.Path(), name) }
	tests := []struct {
		name   string
		change func(t *testing.T, dir *durable.Dir)
		after  time.Duration // of the next start
		kept   bool
	}{
		{"the next day", nil, 24 * time.Hour, true},
		{"with enough left", nil, 15*24*time.Hour - time.Minute, true},
		{"with little left", nil, 15*24*time.Hour + time.Minute, false},
		{"past its end", nil, 60 * 24 * time.Hour, false},
		{"a clock that was set back", nil, -24 * time.Hour, false},
		{"without its authority", func(t *testing.T, dir *durable.Dir) { must(t, os.Remove(file(dir, devCAFile))) }, 0, false},
		{"without its key", func(t *testing.T, dir *durable.Dir) { must(t, os.Remove(file(dir, devKeyFile))) }, 0, false},
		{"damaged", func(t *testing.T, dir *durable.Dir) {
			must(t, os.WriteFile(file(dir, devCertFile), []byte("torn"), 0o600))
		}, 0, false},
		{"another's key", func(t *testing.T, dir *durable.Dir) {
			other, err := durable.Open(t.TempDir())
			must(t, err)
			defer other.Close()
			must(t, keepCertificate(other, start))
			must(t, os.WriteFile(file(dir, devKeyFile), readCertificate(t, other)[2], 0o600))
		}, 0, false},
		{"another's authority", func(t *testing.T, dir *durable.Dir) {
			other, err := durable.Open(t.TempDir())
			must(t, err)
			defer other.Close()
			must(t, keepCertificate(other, start))
			must(t, os.WriteFile(file(dir, devCAFile), readCertificate(t, other)[0], 0o600))
		}, 0, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir, err := durable.Open(t.TempDir())
			must(t, err)
			defer dir.Close()
			must(t, keepCertificate(dir, start))
			before := readCertificate(t, dir)
			if tt.change != nil {
				tt.change(t, dir)
			}
			now := start.Add(tt.after)
			must(t, keepCertificate(dir, now))
			after := readCertificate(t, dir)
			if kept := bytes.Equal(before[1], after[1]); kept != tt.kept {
				t.Errorf("it was kept: %v, want %v", kept, tt.kept)
			}
			checkCertificate(t, dir, now)
		})
	}
}

// checkCertificate is what gdn tls add and a client say to the files.
func checkCertificate(t *testing.T, dir *durable.Dir, now time.Time) {
	t.Helper()
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(readCertificate(t, dir)[0])
	for _, host := range []string{"amthalgroup.com", "www.amthalgroup.com", "*.example.com", "example.org"} {
		_, leaf, _, err := readPair(host, filepath.Join(dir.Path(), devCertFile), filepath.Join(dir.Path(), devKeyFile), now)
		if err != nil {
			t.Fatal(err)
		}
		if left := leaf.NotAfter.Sub(now); left < devCertificateRenew || left > devCertificateLife {
			t.Errorf("it is good for %s more", left)
		}
		if _, err := leaf.Verify(x509.VerifyOptions{Roots: roots, CurrentTime: now}); err != nil {
			t.Error(err)
		}
	}
	for _, name := range devCertificateFiles {
		info, err := os.Stat(filepath.Join(dir.Path(), name))
		must(t, err)
		if info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %o", name, info.Mode().Perm())
		}
	}
	block, _ := pem.Decode(readCertificate(t, dir)[0])
	authority, err := x509.ParseCertificate(block.Bytes)
	must(t, err)
	if !authority.IsCA || authority.MaxPathLen != 0 {
		t.Errorf("the authority is CA %v, path %d", authority.IsCA, authority.MaxPathLen)
	}
}

// TestCertificateOfDevSurvivesCrashes crashes at each step of each file that is written; the next start leaves what belongs together.
func TestCertificateOfDevSurvivesCrashes(t *testing.T) {
	crash := errors.New("crash")
	now := time.Now()
	for stop := 0; ; stop++ {
		path := t.TempDir()
		dir, err := durable.Open(path)
		must(t, err)
		steps := 0
		dir.AfterStep(func(string, durable.Step) error {
			if steps++; steps > stop {
				return crash
			}
			return nil
		})
		err = keepCertificate(dir, now)
		must(t, dir.Close())
		if err == nil {
			if stop < 3 {
				t.Errorf("there were %d steps", stop)
			}
			return
		}
		if !errors.Is(err, crash) {
			t.Fatal(err)
		}
		dir, err = durable.Open(path)
		must(t, err)
		must(t, keepCertificate(dir, now))
		checkCertificate(t, dir, now)
		must(t, dir.Close())
	}
}

func TestShellWord(t *testing.T) {
	for text, want := range map[string]string{
		"/tmp/fleet/ca.pem": "/tmp/fleet/ca.pem", "[::1]:80": "[::1]:80", "my fleet": "'my fleet'", "it's": `'it'\''s'`, "$HOME": "'$HOME'", "": "''",
	} {
		if got := shellWord(text); got != want {
			t.Errorf("shellWord(%q) = %s, want %s", text, got, want)
		}
	}
}
