package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"

	"github.com/guardyn-edge/guardyn/internal/failpoint"
)

// PostgresTools is the Debian package that has pg_dump and pg_restore.
const PostgresTools = "postgresql-client"

// MissingToolError says that a program which a backup of Postgres needs is not installed.
type MissingToolError struct{ Tool string }

func (e *MissingToolError) Error() string {
	return fmt.Sprintf("%s is not installed: install the Debian package %s, of the server's version or a newer one", e.Tool, PostgresTools)
}

// dumpPostgres runs pg_dump, which reads one state of the database.
func dumpPostgres(ctx context.Context, rawURL, path string) error {
	_, err := runPostgresTool(ctx, "pg_dump", rawURL,
		"--format=custom", "--schema=edge", "--schema=barrier", "--no-owner", "--no-privileges", "--file="+path)
	return err
}

// restorePostgres runs pg_restore in one transaction, so that nothing stays of a restore that failed.
func restorePostgres(ctx context.Context, rawURL, backup string) error {
	db, err := connect(ctx, rawURL, false)
	if err != nil {
		return err
	}
	var edge, cohort bool // the schemas stand
	var things int
	err = db.reader.QueryRowContext(ctx, `SELECT to_regnamespace('edge') IS NOT NULL, to_regnamespace('barrier') IS NOT NULL,
		(SELECT count(*) FROM pg_class WHERE relnamespace IN (to_regnamespace('edge'), to_regnamespace('barrier')))`).Scan(&edge, &cohort, &things)
	if err := errors.Join(err, db.Close()); err != nil {
		return err
	}
	if things > 0 {
		return fmt.Errorf("schemas edge and barrier: %w", ErrNotEmpty)
	}
	contents, err := runPostgresTool(ctx, "pg_restore", "", "--list", backup)
	if err != nil {
		return err
	}
	if !bytes.Contains(contents, []byte(" TABLE edge schema_version ")) {
		return fmt.Errorf("%s: it is not a backup of a control plane: it has none of its tables", backup)
	}
	if err := checkPostgresArchive(ctx, backup); err != nil {
		return fmt.Errorf("%s: %w", backup, err)
	}
	args := []string{"--single-transaction", "--exit-on-error", "--no-owner", "--no-privileges"}
	if edge || cohort {
		// A schema stands ready, perhaps because this role may not make one: all else is restored into it.
		list, err := contentsWithout(contents, map[string]bool{" SCHEMA - edge ": edge, " SCHEMA - barrier ": cohort})
		if err != nil {
			return err
		}
		defer os.Remove(list)
		args = append(args, "--use-list="+list)
	}
	if _, err = runPostgresTool(ctx, "pg_restore", rawURL, append(args, backup)...); err != nil {
		return err
	}
	return failpoint.Hit(failpoint.Restored)
}

// checkPostgresArchive reads the schema's version out of the archive before anything is restored.
func checkPostgresArchive(ctx context.Context, backup string) error {
	text, err := runPostgresTool(ctx, "pg_restore", "", "--data-only", "--schema=edge", "--table=schema_version", "--file=-", backup)
	if err != nil {
		return err
	}
	var have int64
	column := -1
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSuffix(line, "\n")
		switch {
		case strings.HasPrefix(line, "COPY edge.schema_version ("):
			_, rest, _ := strings.Cut(line, "(")
			names, _, _ := strings.Cut(rest, ")")
			column = slices.Index(strings.Split(names, ", "), "version_id")
		case line == `\.`:
			column = -1
		case column >= 0:
			if fields := strings.Split(line, "\t"); column < len(fields) {
				version, err := strconv.ParseInt(fields[column], 10, 64)
				if err != nil {
					return fmt.Errorf("version of its schema: %w", err)
				}
				have = max(have, version)
			}
		}
	}
	want := postgresDialect{}.schemaWanted()
	switch {
	case have == 0:
		return errors.New("it does not say which version its schema is")
	case have > want:
		return &SchemaError{Have: have, Want: want}
	}
	return nil
}

// contentsWithout writes the archive's contents, less the making of the schemas that stand, for pg_restore.
func contentsWithout(contents []byte, standing map[string]bool) (path string, err error) {
	f, err := os.CreateTemp("", "gdn-restore-*")
	if err != nil {
		return "", err
	}
	for line := range bytes.Lines(contents) {
		made := false
		for schema, stands := range standing {
			made = made || stands && bytes.Contains(line, []byte(schema))
		}
		if !made {
			if _, err := f.Write(line); err != nil {
				return "", errors.Join(err, f.Close(), os.Remove(f.Name()))
			}
		}
	}
	if err := f.Close(); err != nil {
		return "", errors.Join(err, os.Remove(f.Name()))
	}
	return f.Name(), nil
}

// maxToolWords bounds what is repeated of a program's complaint, in bytes.
const maxToolWords = 4 << 10

// runPostgresTool runs a program of PostgreSQL against the database, unless rawURL is empty. A password goes by
// the environment: arguments are everybody's to read. The program ends when ctx does.
func runPostgresTool(ctx context.Context, tool, rawURL string, args ...string) ([]byte, error) {
	program, err := findPostgresTool(tool)
	if err != nil {
		return nil, err
	}
	env := os.Environ()
	if rawURL != "" {
		name, password, err := withoutPassword(rawURL)
		if err != nil {
			return nil, err
		}
		if password != "" {
			env = append(env, "PGPASSWORD="+password)
		}
		args = append([]string{"--dbname=" + name, "--no-password"}, args...)
	}
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = env
	var out, complaint bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaint
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		words := strings.TrimSpace(complaint.String())
		if len(words) > maxToolWords {
			words = words[:maxToolWords] + "…"
		}
		return nil, fmt.Errorf("%s: %w: %s", tool, err, words)
	}
	return out.Bytes(), nil
}

// withoutPassword takes the password out of a URL.
func withoutPassword(rawURL string) (name, password string, err error) {
	u, err := url.Parse(rawURL)
	if err != nil {
		return "", "", errors.New("open database: the postgres URL does not parse: write postgres://USER:PASSWORD@HOST:PORT/DATABASE")
	}
	if u.User != nil {
		password, _ = u.User.Password()
		u.User = url.User(u.User.Username())
	}
	q := u.Query()
	if p := q.Get("password"); p != "" {
		password = p
		q.Del("password")
		u.RawQuery = q.Encode()
	}
	return u.String(), password, nil
}

// findPostgresTool finds a program in PATH. Debian puts one there that takes the server's version.
func findPostgresTool(tool string) (string, error) {
	path, err := exec.LookPath(tool)
	if err != nil {
		return "", &MissingToolError{Tool: tool}
	}
	return path, nil
}
