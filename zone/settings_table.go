package zone

import (
	"fmt"
	"strings"
)

// byDefault is how a setting shows whose default is not one value.
const byDefault = "default"

// setting is one setting as people change and compare it.
type setting struct {
	key   string // the JSON name
	label string // as plans print it
	show  func(*Settings) string
	set   func(*Settings, string) error
}

// settingTable lists the settings in the order of the fields of Settings, but for error pages, which are one
// for each status.
func settingTable() []setting {
	percent := func(key, label string, field func(*Settings) **Percent, def Percent) setting {
		return setting{
			key, label,
			func(s *Settings) string { return percentOr(*field(s), def).String() },
			func(s *Settings, v string) error {
				p, err := ParsePercent(v)
				*field(s) = &p
				return err
			},
		}
	}
	boolean := func(key, label string, field func(*Settings) *bool) setting {
		return setting{
			key, label,
			func(s *Settings) string { return onOff(*field(s)) },
			func(s *Settings, v string) (err error) {
				*field(s), err = parseOnOff(v)
				return err
			},
		}
	}
	list := func(key, label string, field func(*Settings) *[]string) setting {
		return setting{
			key, label,
			func(s *Settings) string { return orWord(strings.Join(*field(s), ","), byDefault) },
			func(s *Settings, v string) error {
				if *field(s) = nil; v == byDefault {
					return nil
				}
				*field(s) = strings.FieldsFunc(v, func(r rune) bool { return r == ',' || r == ' ' })
				return nil
			},
		}
	}
	out := []setting{
		percent("trace_sampling", "trace sampling", func(s *Settings) **Percent { return &s.TraceSampling }, DefaultTraceSampling),
		percent("log_sampling", "log sampling", func(s *Settings) **Percent { return &s.LogSampling }, DefaultLogSampling),
		boolean("version_header", "version header", func(s *Settings) *bool { return &s.VersionHeader }),
		boolean("always_https", "always https", func(s *Settings) *bool { return &s.AlwaysHTTPS }),
		{
			"hsts", "hsts",
			func(s *Settings) string {
				if s.HSTS == 0 {
					return "off"
				}
				return s.HSTS.String()
			},
			func(s *Settings, v string) (err error) {
				if s.HSTS = 0; v == "off" {
					return nil
				}
				s.HSTS, err = ParseDuration(v)
				return err
			},
		},
		boolean("hsts_include_subdomains", "hsts include subdomains", func(s *Settings) *bool { return &s.HSTSIncludeSubdomains }),
		{
			"tls_min_version", "tls min version",
			func(s *Settings) string { return orWord(s.TLSMinVersion, "1.2") },
			func(s *Settings, v string) error { s.TLSMinVersion = v; return nil },
		},
		list("tls_ciphers", "tls ciphers", func(s *Settings) *[]string { return &s.TLSCiphers }),
		list("trusted_proxies", "trusted proxies", func(s *Settings) *[]string { return &s.TrustedProxies }),
		{
			"soa.mname", "soa mname",
			func(s *Settings) string { return orWord(s.SOA.MName.s, byDefault) },
			func(s *Settings, v string) (err error) {
				if s.SOA.MName = (Name{}); v == byDefault {
					return nil
				}
				s.SOA.MName, err = ParseName(v)
				return err
			},
		},
		{
			"soa.rname", "soa rname",
			func(s *Settings) string { return orWord(s.SOA.RName.s, byDefault) },
			func(s *Settings, v string) (err error) {
				if s.SOA.RName = (Mailbox{}); v == byDefault {
					return nil
				}
				s.SOA.RName, err = ParseMailbox(v)
				return err
			},
		},
	}
	for i, f := range new(SOA).seconds() {
		out = append(out, setting{
			"soa." + f.name, "soa " + f.name,
			func(s *Settings) string {
				f := s.SOA.seconds()[i]
				if *f.v == 0 {
					return decimal(f.def)
				}
				return decimal(*f.v)
			},
			func(s *Settings, v string) error {
				n, err := parseNumber(v, "seconds", 1, uint64(MaxTTL))
				*s.SOA.seconds()[i].v = uint32(n)
				return err
			},
		})
	}
	return out
}

func onOff(b bool) string {
	if b {
		return "on"
	}
	return "off"
}

func parseOnOff(s string) (bool, error) {
	switch strings.ToLower(s) {
	case "on", "true", "yes":
		return true, nil
	case "off", "false", "no":
		return false, nil
	}
	return false, fmt.Errorf("%s: use on or off", quote(s))
}

func orWord(s, word string) string {
	if s == "" {
		return word
	}
	return s
}

// SettingKeys lists the keys that [Settings.Set] takes, in the order of the fields of Settings; for error
// pages, which are set by status, it holds "error_pages.503" as the example.
func SettingKeys() []string {
	var keys []string
	for _, t := range settingTable() {
		if t.key == "soa.mname" {
			keys = append(keys, "error_pages.503")
		}
		keys = append(keys, t.key)
	}
	return keys
}

// Set changes one setting by its key (the JSON name; soa.refresh for members, error_pages.503 for a page)
// from text, as in KEY=VALUE of the command line. Lists are separated by commas, switches are on or off. An
// empty value restores the default. On an error nothing is changed; else s is in normal form.
func (s *Settings) Set(key, value string) error {
	next := *s
	next.ErrorPages = nil
	for status, page := range s.ErrorPages {
		if next.ErrorPages == nil {
			next.ErrorPages = make(map[string]string, len(s.ErrorPages)+1)
		}
		next.ErrorPages[status] = page
	}
	if err := next.set(key, value); err != nil {
		return fmt.Errorf("setting %s: %w", key, err)
	}
	n, err := next.Normalize()
	if err != nil {
		return fmt.Errorf("setting %s: %w", key, err)
	}
	*s = n
	return nil
}

func (s *Settings) set(key, value string) error {
	if status, ok := strings.CutPrefix(key, "error_pages."); ok {
		if value == "" {
			delete(s.ErrorPages, status)
			return checkPageStatus(status)
		}
		if s.ErrorPages == nil {
			s.ErrorPages = make(map[string]string, 1)
		}
		s.ErrorPages[status] = value
		return nil
	}
	for _, t := range settingTable() {
		if t.key != key {
			continue
		}
		if value == "" {
			value = t.show(new(Settings))
		}
		return t.set(s, value)
	}
	return fmt.Errorf("there is no such setting; there are %s", joinWords(SettingKeys()))
}

// SettingChange is one setting that differs.
type SettingChange struct{ Label, Old, New string }

// SettingsDiff tells how b differs from a, one entry per setting, in the order of Settings' fields, with
// values as the plan prints them ("trace sampling", "1.00%", "100.00%"). a and b are in normal form. An
// error page shows as its size.
func SettingsDiff(a, b Settings) []SettingChange {
	var out []SettingChange
	for _, t := range settingTable() {
		if t.key == "soa.mname" {
			out = append(out, pagesDiff(a.ErrorPages, b.ErrorPages)...)
		}
		if old, now := t.show(&a), t.show(&b); old != now {
			out = append(out, SettingChange{t.label, old, now})
		}
	}
	return out
}

func pagesDiff(a, b map[string]string) []SettingChange {
	statuses := sortedUnique(append(sortedKeys(a), sortedKeys(b)...))
	var out []SettingChange
	for _, s := range statuses {
		old, was := a[s]
		now, is := b[s]
		if old == now && was == is {
			continue
		}
		show := func(page string, there bool) string {
			if !there {
				return byDefault
			}
			return fmt.Sprintf("%d bytes", len(page))
		}
		c := SettingChange{"error page " + s, show(old, was), show(now, is)}
		if c.Old == c.New {
			c.New += ", changed"
		}
		out = append(out, c)
	}
	return out
}
