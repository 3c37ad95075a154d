package metering

// WASI is the module that a function may import from: WASI preview 1.
const WASI = "wasi_snapshot_preview1"

// wasiTypes are the functions of WASI preview 1 by their parameters, i for i32 and I for i64. All but proc_exit return an i32.
var wasiTypes = map[string]string{
	"args_get":                "ii",
	"args_sizes_get":          "ii",
	"clock_res_get":           "ii",
	"clock_time_get":          "iIi",
	"environ_get":             "ii",
	"environ_sizes_get":       "ii",
	"fd_advise":               "iIIi",
	"fd_allocate":             "iII",
	"fd_close":                "i",
	"fd_datasync":             "i",
	"fd_fdstat_get":           "ii",
	"fd_fdstat_set_flags":     "ii",
	"fd_fdstat_set_rights":    "iII",
	"fd_filestat_get":         "ii",
	"fd_filestat_set_size":    "iI",
	"fd_filestat_set_times":   "iIIi",
	"fd_pread":                "iiiIi",
	"fd_prestat_dir_name":     "iii",
	"fd_prestat_get":          "ii",
	"fd_pwrite":               "iiiIi",
	"fd_read":                 "iiii",
	"fd_readdir":              "iiiIi",
	"fd_renumber":             "ii",
	"fd_seek":                 "iIii",
	"fd_sync":                 "i",
	"fd_tell":                 "ii",
	"fd_write":                "iiii",
	"path_create_directory":   "iii",
	"path_filestat_get":       "iiiii",
	"path_filestat_set_times": "iiiiIIi",
	"path_link":               "iiiiiii",
	"path_open":               "iiiiiIIii",
	"path_readlink":           "iiiiii",
	"path_remove_directory":   "iii",
	"path_rename":             "iiiiii",
	"path_symlink":            "iiiii",
	"path_unlink_file":        "iii",
	"poll_oneoff":             "iiii",
	"proc_exit":               "i",
	"proc_raise":              "i",
	"random_get":              "ii",
	"sched_yield":             "",
	"sock_accept":             "iii",
	"sock_recv":               "iiiiii",
	"sock_send":               "iiiii",
	"sock_shutdown":           "ii",
}

// WASIParameters returns the types of the parameters of a function of WASI, as value types of the binary format, and whether it
// returns an i32. ok is false when there is no such function.
func WASIParameters(name string) (params []byte, errno, ok bool) {
	types, ok := wasiTypes[name]
	for _, c := range types {
		t := byte(i32)
		if c == 'I' {
			t = i64
		}
		params = append(params, t)
	}
	return params, ok && name != "proc_exit", ok
}

// WASIFunctions returns the names of the functions of WASI, in no order.
func WASIFunctions() []string {
	names := make([]string, 0, len(wasiTypes))
	for name := range wasiTypes {
		names = append(names, name)
	}
	return names
}

// Value types of the binary format.
const (
	i32 = 0x7f
	i64 = 0x7e
)
