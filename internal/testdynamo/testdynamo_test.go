package testdynamo_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/guardyn-edge/guardyn/internal/testdynamo"
)

func TestMain(m *testing.M) { testdynamo.Main(m) }

func TestClientReachesAServer(t *testing.T) {
	if _, err := testdynamo.Client(t).ListTables(t.Context(), &dynamodb.ListTablesInput{}); err != nil {
		t.Error(err)
	}
	if a, b := testdynamo.Name(), testdynamo.Name(); a == b || len(a) > 255 {
		t.Errorf("names %q and %q", a, b)
	}
}

func TestServerStops(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), testdynamo.StartTimeout)
	defer cancel()
	s, err := testdynamo.Start(ctx)
	if err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(s.URL())
	if err != nil {
		t.Fatal(errors.Join(err, s.Stop()))
	}
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	if conn, err := net.DialTimeout("tcp", u.Host, time.Second); err == nil {
		conn.Close()
		t.Error("the server listens after Stop")
	}
}

// What the package is must not be left to who delivers it.
func TestAnotherPackageIsRefused(t *testing.T) {
	var packed bytes.Buffer
	zipped := gzip.NewWriter(&packed)
	files := tar.NewWriter(zipped)
	if err := errors.Join(
		files.WriteHeader(&tar.Header{Name: "package/emulator/DynamoDBLocal.jar", Typeflag: tar.TypeReg, Size: 1, Mode: 0o644}),
		func() error { _, err := files.Write([]byte("x")); return err }(),
		files.Close(), zipped.Close(),
	); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	tarball := filepath.Join(dir, "package.tgz")
	npm := "#!/bin/sh\ncp '" + tarball + "' amplify-dynamodb-simulator-2.9.30.tgz\n"
	if err := errors.Join(
		os.WriteFile(tarball, packed.Bytes(), 0o600),
		os.WriteFile(filepath.Join(dir, "npm"), []byte(npm), 0o700),
	); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	cache := t.TempDir()
	t.Setenv("XDG_CACHE_HOME", cache)
	t.Setenv("HOME", cache)
	s, err := testdynamo.Start(t.Context())
	if err == nil {
		t.Fatal("another package was started", s.Stop())
	}
	if !strings.Contains(err.Error(), "is not the package that was looked at") {
		t.Error(err)
	}
	left, err := filepath.Glob(filepath.Join(cache, "guardyn", "*"))
	if err != nil || len(left) != 0 {
		t.Errorf("left in the cache: %q, %v", left, err)
	}
}

func TestWithoutJavaTestsAreTold(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	s, err := testdynamo.Start(t.Context())
	if err == nil {
		t.Fatal("started without java", s.Stop())
	}
	if !strings.Contains(err.Error(), "java is not installed: apt-get install") {
		t.Error(err)
	}
}

func TestWithDynamoPassesEnvironmentAndExitCode(t *testing.T) {
	command := filepath.Join(t.TempDir(), "with-dynamo")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", command, "./with-dynamo")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	run := func(args ...string) (string, int) {
		cmd := exec.CommandContext(context.WithoutCancel(t.Context()), command, args...)
		for _, v := range os.Environ() {
			if !strings.HasPrefix(v, testdynamo.EnvURL+"=") {
				cmd.Env = append(cmd.Env, v)
			}
		}
		out, err := cmd.CombinedOutput()
		if exit := new(exec.ExitError); err != nil && !errors.As(err, &exit) {
			t.Fatal(err)
		}
		return string(out), cmd.ProcessState.ExitCode()
	}
	if out, code := run("sh", "-c", `echo "$`+testdynamo.EnvURL+`"; exit 7`); code != 7 || !strings.HasPrefix(out, "http://127.0.0.1:") {
		t.Errorf("got code %d and %q, want 7 and a URL", code, out)
	}
	if out, code := run(); code != 2 || !strings.Contains(out, "usage") {
		t.Errorf("got code %d and %q, want 2 and how to use it", code, out)
	}
}
