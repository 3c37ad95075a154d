package cli

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/guardyn-edge/guardyn/api"
	"github.com/guardyn-edge/guardyn/edge/function"
	"github.com/guardyn-edge/guardyn/edge/web"
	"github.com/guardyn-edge/guardyn/internal/metering"
	"github.com/guardyn-edge/guardyn/zone"
)

func (a *app) functionCommand() *cobra.Command {
	cmd := objectCommand(a, objects[zone.Function, api.FunctionSummary]{
		verb: "function", short: "WebAssembly functions", noun: "function", arg: "NAME",
		put: (*api.Client).PutFunction, get: (*api.Client).Function,
		remove: (*api.Client).DeleteFunction, list: (*api.Client).Functions,
		size:    func(f zone.Function) string { return fmt.Sprintf("%d bytes", len(f.Module)) },
		summary: func(f api.FunctionSummary) string { return fmt.Sprintf("%d bytes", f.Bytes) },
	})
	cmd.AddCommand(a.functionAddCommand(), a.functionTestCommand())
	return cmd
}

// functionFlags are what a function may have beside its module.
type functionFlags struct {
	memory, timeout, output string
	environment             []string
}

func (f *functionFlags) register(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.memory, "memory", "", "bound of one call's memory, as `16MiB`")
	cmd.Flags().StringVar(&f.timeout, "timeout", "", "bound of one call's time, as `200ms`")
	cmd.Flags().StringVar(&f.output, "output", "", "bound of one call's output, as `1MiB`")
	cmd.Flags().StringArrayVar(&f.environment, "env", nil, "variable that the module sees, `NAME=VALUE`; may be given several times")
}

// apply changes what the flags say of a function, and tells all that is wrong with them.
func (f *functionFlags) apply(to *zone.Function) error {
	var problems []error
	set := func(flag, text string, parse func(string) error) {
		if text == "" {
			return
		}
		if err := parse(text); err != nil {
			problems = append(problems, fmt.Errorf("--%s: %w", flag, err))
		}
	}
	set("memory", f.memory, func(s string) (err error) { to.Memory, err = zone.ParseSize(s); return err })
	set("timeout", f.timeout, func(s string) (err error) { to.Timeout, err = zone.ParseDuration(s); return err })
	set("output", f.output, func(s string) (err error) { to.Output, err = zone.ParseSize(s); return err })
	for _, v := range f.environment {
		name, value, ok := strings.Cut(v, "=")
		if !ok {
			problems = append(problems, fmt.Errorf("--env: %q is not NAME=VALUE", v))
			continue
		}
		if to.Environment == nil {
			to.Environment = make(map[string]string)
		}
		to.Environment[name] = value
	}
	return errors.Join(problems...)
}

// readModule reads a module and judges it as nodes do.
func (a *app) readModule(path string, f *zone.Function) error {
	code, name, err := a.readFile(path, int64(zone.MaxModule))
	if err != nil {
		return err
	}
	f.Module = code
	if _, err := f.Normalize(); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if _, err := metering.Rewrite(code, int64(function.LimitsOf(*f, zone.Ceilings{}).Memory)); err != nil {
		return hint(fmt.Errorf("%s: nodes refuse it: %w", name, err), "build it for WASI preview 1, as GOOS=wasip1 GOARCH=wasm go build does")
	}
	return nil
}

func (a *app) functionAddCommand() *cobra.Command {
	var flags functionFlags
	cmd := a.jsonFlag(&cobra.Command{
		Use:   "add ZONE NAME FILE.wasm",
		Short: "Create a function from a module, or give one that there is another module",
		Long: `Create a function from a module, or give one that there is another module. What the flags do not say stays as it is; at first
it is what the plan allows. A rule of the function phase calls it. The module is one of WASI preview 1; it is judged here as nodes do,
before anything is sent.`,
		Args: args(3, 3),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.client()
			if err != nil {
				return err
			}
			var f zone.Function
			var problem *api.Error
			before, _, err := c.Function(cmd.Context(), args[0], args[1])
			switch {
			case err == nil:
				f = *before
			case !errors.As(err, &problem) || problem.Status != http.StatusNotFound:
				return err
			}
			if err := flags.apply(&f); err != nil {
				return err
			}
			if err := a.readModule(args[2], &f); err != nil {
				return err
			}
			now, _, err := c.PutFunction(cmd.Context(), args[0], args[1], f, api.WriteOptions{})
			if err != nil {
				return err
			}
			if a.json {
				return a.printJSON(now)
			}
			a.printf("%s: function %s has %d bytes; %s\n", args[0], args[1], len(now.Module), nextApply)
			return nil
		},
	})
	flags.register(cmd)
	return cmd
}

// functionRequest is the file that gdn function test reads.
type functionRequest struct {
	testRequest
	Body string `json:"body"`
}

func (a *app) functionTestCommand() *cobra.Command {
	var flags functionFlags
	var file, module string
	cmd := a.jsonFlag(&cobra.Command{
		Use:   "test ZONE NAME --request FILE",
		Short: "Call a function on this machine as a node would, and tell what it answers and takes",
		Long: `Call a function on this machine as a node would, and tell what it answers and takes. The function is the edited one, or with
--module what a file has; then nothing is asked of a control plane. Its bounds are its own, or the defaults of a plan. Rules are not run. Of a client
that is one of the zone's trusted_proxies, X-Forwarded-For and X-Forwarded-Proto are believed, as by nodes; with --module no proxy is known.
What is told of the answer is what a client gets of it.
FILE is that of gdn rules test, with the request's body:

  method: POST
  url: https://www.example.com/path?a=1
  headers: {content-type: text/plain}
  body: hello`,
		Args: args(2, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if file == "" {
				return usagef(cmd, "%s needs --request FILE", cmd.CommandPath())
			}
			var in functionRequest
			if err := a.readYAML(file, &in); err != nil {
				return err
			}
			name, err := zone.ParseName(args[0])
			if err != nil {
				return err
			}
			var f zone.Function
			settings := new(zone.Settings)
			if module == "" {
				c, err := a.client()
				if err != nil {
					return err
				}
				edited, _, err := c.Function(cmd.Context(), args[0], args[1])
				if err != nil {
					return err
				}
				f = *edited
				if settings, _, err = c.Settings(cmd.Context(), args[0]); err != nil {
					return err
				}
			}
			seen, err := in.request(name, settings)
			if err != nil {
				return fmt.Errorf("%s: %w", file, err)
			}
			if err := flags.apply(&f); err != nil {
				return err
			}
			if module != "" {
				if err := a.readModule(module, &f); err != nil {
					return err
				}
			}
			r := &function.Request{
				Method: seen.Method, Scheme: seen.Scheme, Host: seen.Host, Path: seen.Path, Query: seen.Query, Client: seen.Client, Header: seen.Header,
			}
			if in.Body != "" {
				r.Body, r.Length = strings.NewReader(in.Body), int64(len(in.Body))
			}
			return a.testFunction(cmd, args[1], f, r)
		},
	})
	flags.register(cmd)
	cmd.Flags().StringVar(&file, "request", "", "`FILE` of the request")
	cmd.Flags().StringVar(&module, "module", "", "module to call in place of the edited one, `FILE.wasm`")
	return cmd
}

// functionOutcome is what a function made of a request.
type functionOutcome struct {
	Status      int         `json:"status"` // that a node answers with
	Headers     http.Header `json:"headers,omitempty"`
	Body        string      `json:"body,omitempty"`
	Failure     string      `json:"failure,omitempty"`
	Stderr      string      `json:"stderr,omitempty"`
	CompileTime float64     `json:"compile_seconds"`
	Time        float64     `json:"seconds"`
	Memory      int64       `json:"memory_bytes"`
	Output      int         `json:"output_bytes"`
}

// testFunction calls a function and prints what comes of it. The error is of one that did not answer.
func (a *app) testFunction(cmd *cobra.Command, name string, f zone.Function, r *function.Request) error {
	engine, err := function.New(function.Config{Logger: a.logger()})
	if err != nil {
		return err
	}
	defer engine.Close() //nolint:errcheck // the process ends
	compiled, err := engine.Compile(name, f, zone.Ceilings{}, nil)
	if err != nil {
		return err
	}
	compileTime := engine.Metrics().CompileTime
	resp, err := compiled.Call(cmd.Context(), r)
	o := functionOutcome{CompileTime: compileTime.Seconds()}
	var usage function.Usage
	var failed *function.Error
	switch {
	case err == nil:
		defer resp.Close()
		h := make(http.Header, len(resp.Header)+1)
		if web.FunctionAnswer(h, resp); r.Method == http.MethodHead {
			resp.Body = nil
		}
		delete(h, "Cache-Tag")      // which the cache keeps
		delete(h, "Content-Length") // that of the body
		o.Status, o.Headers, o.Body, usage = resp.Status, h, string(resp.Body), resp.Usage
	case errors.As(err, &failed):
		if o.Status, usage = http.StatusBadGateway, failed.Usage; failed.Kind.Overrun() || failed.Kind == function.Busy {
			o.Status = http.StatusServiceUnavailable
		}
		o.Failure = failed.Kind.String() + ": " + failed.Reason
	default:
		return err
	}
	o.Stderr, o.Time, o.Memory, o.Output = string(usage.Stderr), usage.Time.Seconds(), usage.Memory, usage.Output
	limits := function.LimitsOf(f, zone.Ceilings{})
	if a.json {
		if err := a.printJSON(o); err != nil {
			return err
		}
	} else {
		a.printFunction(&o, &limits, compileTime, usage.Time)
	}
	if failed != nil {
		return fmt.Errorf("function %s failed, by %s", name, failed.Kind)
	}
	return nil
}

func (a *app) printFunction(o *functionOutcome, limits *function.Limits, compileTime, took time.Duration) {
	a.printf("answers %d %s\n", o.Status, http.StatusText(o.Status))
	for _, name := range slices.Sorted(maps.Keys(o.Headers)) {
		for _, v := range o.Headers[name] {
			a.printf("  %s: %s\n", name, v)
		}
	}
	if o.Failure != "" {
		a.printf("failed by %s\n", o.Failure)
	}
	if o.Body != "" {
		fmt.Fprintf(a.Stdout, "\n%s", inertLines(o.Body))
		if !strings.HasSuffix(o.Body, "\n") {
			a.printf("\n")
		}
	}
	if o.Stderr != "" {
		fmt.Fprintf(a.Stdout, "\nstandard error:\n%s\n", inertLines(strings.TrimSuffix(o.Stderr, "\n")))
	}
	a.printf("\ntime      %s of %s\nmemory    %s of %s\noutput    %s of %s\ncompiled  in %s\n",
		took.Round(time.Microsecond), time.Duration(limits.Timeout), zone.Size(o.Memory), limits.Memory, zone.Size(o.Output), limits.Output,
		compileTime.Round(time.Millisecond))
}
