package zone

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// Duration is a span of whole milliseconds, never negative. Its text form has the fewest units: 10s,
// 1m30s, 1h, 250ms; zero is 0s. JSON holds the text.
type Duration time.Duration

// Size is a number of bytes, 0 to 2^53. Its text form is the largest binary unit that divides it: 64KiB,
// 4MiB, 1500B. JSON holds the text.
type Size int64

// Percent is a share in hundredths of a percent, 0 to 10,000. Its text form is 1.00%. JSON holds the text.
type Percent uint16

// ParseDuration reads a duration: one or more numbers with a unit of w, d, h, m, s or ms (1h30m, 1.5h, 7d).
func ParseDuration(s string) (Duration, error) {
	bad := func(why string) (Duration, error) {
		return 0, fmt.Errorf("duration %s: %s", quote(s), why)
	}
	rest, days := s, int64(0)
	for _, u := range []struct {
		unit byte
		days int64
	}{{'w', 7}, {'d', 1}} {
		head, tail, ok := strings.Cut(rest, string(u.unit))
		if !ok {
			continue
		}
		n, err := strconv.ParseUint(head, 10, 16)
		if err != nil {
			return bad("write a whole number before w or d, as in 7d")
		}
		days += int64(n) * u.days
		rest = tail
	}
	d := time.Duration(days) * 24 * time.Hour
	if days > 100*366 {
		return bad("the most is 100 years")
	}
	if rest != "" || days == 0 && rest == s {
		r, err := time.ParseDuration(rest)
		if err != nil {
			return bad("write numbers with units, as in 10s, 1m30s, 1h, 250ms")
		}
		if r > 100*366*24*time.Hour {
			return bad("the most is 100 years")
		}
		d += r
	}
	if d < 0 || strings.ContainsAny(s, "+-") {
		return bad("it has no sign")
	}
	if d%time.Millisecond != 0 {
		return bad("whole milliseconds are the finest there is")
	}
	return Duration(d), nil
}

// String returns the text form.
func (d Duration) String() string {
	ms := time.Duration(d).Milliseconds()
	if ms == 0 {
		return "0s"
	}
	var b []byte
	if ms < 0 {
		b, ms = append(b, '-'), -ms
	}
	for _, u := range []struct {
		ms   int64
		unit string
	}{{3_600_000, "h"}, {60_000, "m"}, {1000, "s"}, {1, "ms"}} {
		if n := ms / u.ms; n > 0 {
			b = append(strconv.AppendInt(b, n, 10), u.unit...)
			ms %= u.ms
		}
	}
	return string(b)
}

// ParseSize reads a number of bytes with a unit of B (or none), KiB, MiB, GiB, TiB, or kB, MB, GB, TB
// (powers of 1,000), in any case.
func ParseSize(s string) (Size, error) {
	i := 0
	for i < len(s) && s[i] >= '0' && s[i] <= '9' {
		i++
	}
	n, err := strconv.ParseInt(s[:i], 10, 64)
	var unit int64
	switch strings.ToLower(strings.TrimSpace(s[i:])) {
	case "", "b":
		unit = 1
	case "kib":
		unit = 1 << 10
	case "mib":
		unit = 1 << 20
	case "gib":
		unit = 1 << 30
	case "tib":
		unit = 1 << 40
	case "kb":
		unit = 1e3
	case "mb":
		unit = 1e6
	case "gb":
		unit = 1e9
	case "tb":
		unit = 1e12
	}
	if err != nil || unit == 0 || n > (1<<53)/unit {
		return 0, fmt.Errorf("size %s: write a whole number with a unit, as in 64KiB, 4MiB, 1500B; the most is 8192TiB", quote(s))
	}
	return Size(n * unit), nil
}

// String returns the text form.
func (z Size) String() string {
	n, unit := int64(z), 0
	for n != 0 && n%1024 == 0 && unit < 4 {
		n /= 1024
		unit++
	}
	return strconv.FormatInt(n, 10) + [...]string{"B", "KiB", "MiB", "GiB", "TiB"}[unit]
}

// ParsePercent reads a share with at most two decimals and the sign: 1%, 0.5%, 100.00%.
func ParsePercent(s string) (Percent, error) {
	digits, sign := strings.CutSuffix(s, "%")
	whole, frac, point := strings.Cut(strings.TrimSpace(digits), ".")
	for len(frac) < 2 {
		frac += "0"
	}
	n, err := strconv.ParseUint(whole, 10, 16)
	f, ferr := strconv.ParseUint(frac, 10, 16)
	if !sign || err != nil || ferr != nil || len(frac) > 2 || point && strings.HasSuffix(digits, ".") || n*100+f > 10_000 {
		return 0, fmt.Errorf("percentage %s: write 0%% to 100%% with the sign and at most two decimals, as in 0.25%%", quote(s))
	}
	return Percent(n*100 + f), nil
}

// String returns the text form.
func (p Percent) String() string { return fmt.Sprintf("%d.%02d%%", p/100, p%100) }

// MarshalText returns the text form.
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText reads as ParseDuration does.
func (d *Duration) UnmarshalText(b []byte) error { return unmarshal(d, string(b), ParseDuration) }

// MarshalJSONTo writes the text form as a JSON string.
func (d Duration) MarshalJSONTo(enc *jsontext.Encoder) error {
	return enc.WriteToken(jsontext.String(d.String()))
}

// UnmarshalJSONFrom reads a JSON string as ParseDuration does.
func (d *Duration) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	return unmarshalFrom(d, dec, ParseDuration)
}

// MarshalText returns the text form.
func (z Size) MarshalText() ([]byte, error) { return []byte(z.String()), nil }

// UnmarshalText reads as ParseSize does.
func (z *Size) UnmarshalText(b []byte) error { return unmarshal(z, string(b), ParseSize) }

// MarshalJSONTo writes the text form as a JSON string.
func (z Size) MarshalJSONTo(enc *jsontext.Encoder) error {
	return enc.WriteToken(jsontext.String(z.String()))
}

// UnmarshalJSONFrom reads a JSON string as ParseSize does.
func (z *Size) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	return unmarshalFrom(z, dec, ParseSize)
}

// MarshalText returns the text form.
func (p Percent) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// UnmarshalText reads as ParsePercent does.
func (p *Percent) UnmarshalText(b []byte) error { return unmarshal(p, string(b), ParsePercent) }

// MarshalJSONTo writes the text form as a JSON string.
func (p Percent) MarshalJSONTo(enc *jsontext.Encoder) error {
	return enc.WriteToken(jsontext.String(p.String()))
}

// UnmarshalJSONFrom reads a JSON string as ParsePercent does.
func (p *Percent) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	return unmarshalFrom(p, dec, ParsePercent)
}

func unmarshal[T any](to *T, s string, parse func(string) (T, error)) error {
	v, err := parse(s)
	if err != nil {
		return err
	}
	*to = v
	return nil
}

func unmarshalFrom[T any](to *T, dec *jsontext.Decoder, parse func(string) (T, error)) error {
	s, err := readString(dec)
	if err != nil {
		return err
	}
	return unmarshal(to, s, parse)
}

// parseNumber reads a decimal number without sign, from least to most.
func parseNumber(s, what string, least, most uint64) (uint64, error) {
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil || n < least || n > most {
		if most == math.MaxUint64 {
			return 0, fmt.Errorf("%s %s is not a number", what, quote(s))
		}
		return 0, fmt.Errorf("%s %s is not a number from %d to %d", what, quote(s), least, most)
	}
	return n, nil
}
