package testdynamo

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha512"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// The server comes in an npm package, whose licence forbids to hand it on: each machine fetches its own.
const (
	npmPackage = "amplify-dynamodb-simulator"
	npmVersion = "2.9.30"
	// npmSHA512 is of the package as npm delivers it: what is run is what was looked at.
	npmSHA512 = "c5379e44bbf311fab2779961ddb1f8734907bd21c79a6843e590ec1c5280439836665e89aa515dbad6908422c7cf1129e91cb5a3b4c1ea7888a17b9002749ec1"
	jar       = "DynamoDBLocal.jar"

	maxUnpacked = 256 << 20 // bytes
)

// serverDirectory returns the directory of the server's programs, fetched once for all runs of this user.
func serverDirectory(ctx context.Context) (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("a place for DynamoDB Local: %w", err)
	}
	parent := filepath.Join(cache, "guardyn")
	dir := filepath.Join(parent, "dynamodb-local-"+npmVersion)
	if _, err := os.Stat(filepath.Join(dir, jar)); err == nil {
		return dir, nil
	}
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return "", err
	}
	tmp, err := os.MkdirTemp(parent, "fetch-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(tmp)
	packed, err := fetch(ctx, tmp)
	if err != nil {
		return "", fmt.Errorf("fetch DynamoDB Local: %w", err)
	}
	ready := filepath.Join(tmp, "ready")
	if err := unpack(packed, ready); err != nil {
		return "", fmt.Errorf("unpack DynamoDB Local: %w", err)
	}
	if err := os.Rename(ready, dir); err != nil {
		// Another process may have been first.
		if _, there := os.Stat(filepath.Join(dir, jar)); there != nil {
			return "", err
		}
	}
	return dir, nil
}

func fetch(ctx context.Context, tmp string) ([]byte, error) {
	npm, err := exec.LookPath("npm")
	if err != nil {
		return nil, errors.New("npm is not installed: apt-get install npm")
	}
	cmd := exec.CommandContext(ctx, npm, "pack", "--silent", npmPackage+"@"+npmVersion)
	cmd.Dir = tmp
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("npm pack: %w\n%s", err, out)
	}
	packed, err := os.ReadFile(filepath.Join(tmp, npmPackage+"-"+npmVersion+".tgz"))
	if err != nil {
		return nil, err
	}
	if sum := sha512.Sum512(packed); hex.EncodeToString(sum[:]) != npmSHA512 {
		return nil, fmt.Errorf("%s@%s is not the package that was looked at: its SHA-512 is %x", npmPackage, npmVersion, sum)
	}
	return packed, nil
}

// unpack writes the server's files under dir.
func unpack(packed []byte, dir string) error {
	const prefix = "package/emulator/"
	zipped, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return err
	}
	files := tar.NewReader(io.LimitReader(zipped, maxUnpacked))
	for {
		h, err := files.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		name, ok := strings.CutPrefix(h.Name, prefix)
		if !ok || h.Typeflag != tar.TypeReg || !filepath.IsLocal(name) {
			continue
		}
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		content, err := io.ReadAll(files)
		if err != nil {
			return err
		}
		if err := os.WriteFile(path, content, 0o644); err != nil {
			return err
		}
	}
}
