package document

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// wireDocument is a document as it is written: what is nil was left out.
type wireDocument struct {
	Version  *uint64       `json:"version,omitzero"`
	Bridge   wireBridge    `json:"bridge,omitzero"`
	Sessions []wireSession `json:"sessions,omitzero"`
	Routes   []wireRoute   `json:"routes,omitzero"`
}

type wireBridge struct {
	Mode            *Mode        `json:"deployment_mode,omitzero"`
	ShutdownTimeout *duration    `json:"shutdown_timeout,omitzero"`
	DrainTimeout    *duration    `json:"drain_timeout,omitzero"`
	LogLevel        *string      `json:"log_level,omitzero"`
	Cluster         *wireCluster `json:"cluster,omitzero"`
}

type wireCluster struct {
	Rollout       *Rollout  `json:"rollout,omitzero"`
	Members       []string  `json:"members,omitzero"`
	ConfirmWindow *duration `json:"confirm_window,omitzero"`
	Soak          *duration `json:"soak,omitzero"`
	Deadline      *duration `json:"deadline,omitzero"`
}

type wireSession struct {
	ID            *string   `json:"id,omitzero"`
	Kind          *Kind     `json:"kind,omitzero"`
	URL           *string   `json:"url,omitzero"`
	Listen        *string   `json:"listen,omitzero"`
	Credentials   *file     `json:"credentials,omitzero"`
	TLS           *wireTLS  `json:"tls,omitzero"`
	ClientID      *string   `json:"client_id,omitzero"`
	Protocol      *Protocol `json:"protocol,omitzero"`
	CleanStart    *bool     `json:"clean_start,omitzero"`
	SessionExpiry *expiry   `json:"session_expiry,omitzero"`
	KeepAlive     *duration `json:"keep_alive,omitzero"`
	Exclusive     *bool     `json:"exclusive,omitzero"`
}

type wireTLS struct {
	CA          *file   `json:"ca,omitzero"`
	Certificate *file   `json:"certificate,omitzero"`
	Key         *file   `json:"key,omitzero"`
	ServerName  *string `json:"server_name,omitzero"`
}

type wireRoute struct {
	ID           *string         `json:"id,omitzero"`
	From         *wireFrom       `json:"from,omitzero"`
	Filter       *string         `json:"filter,omitzero"`
	Transform    *wireTransform  `json:"transform,omitzero"`
	To           *wireTo         `json:"to,omitzero"`
	InFlight     *int            `json:"in_flight,omitzero"`
	HealthMargin *percent        `json:"health_margin,omitzero"`
	DeadLetter   *wireDeadLetter `json:"dead_letter,omitzero"`
}

type wireFrom struct {
	Session *string `json:"session,omitzero"`
	Topic   *string `json:"topic,omitzero"`
	QoS     *int    `json:"qos,omitzero"`
	Share   *string `json:"share,omitzero"`
	Stream  *string `json:"stream,omitzero"`
}

type wireTo struct {
	Session *string `json:"session,omitzero"`
	Topic   *string `json:"topic,omitzero"`
	QoS     *int    `json:"qos,omitzero"`
	Retain  *Retain `json:"retain,omitzero"`
}

type wireTransform struct {
	Properties *wireProperties `json:"properties,omitzero"`
	Payload    *string         `json:"payload,omitzero"`
}

type wireProperties struct {
	Set    map[string]string `json:"set,omitzero"`
	Remove []string          `json:"remove,omitzero"`
}

type wireDeadLetter struct {
	Session *string `json:"session,omitzero"`
	Topic   *string `json:"topic,omitzero"`
	File    *file   `json:"file,omitzero"`
}

// duration is written with its unit, and has one spelling.
type duration time.Duration

// UnmarshalText implements encoding.TextUnmarshaler.
func (d *duration) UnmarshalText(text []byte) error {
	v, err := time.ParseDuration(string(text))
	if err != nil {
		return fmt.Errorf("%q is no duration; write it with its unit, as 30s or 1h30m", text)
	}
	*d = duration(v)
	return nil
}

// MarshalText implements encoding.TextMarshaler: "1h30m", "90s" is "1m30s".
func (d duration) MarshalText() ([]byte, error) { return []byte(spell(time.Duration(d))), nil }

// spell is the one spelling of a duration: Go's, without units of which there are none.
func spell(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// expiry is a duration, or "never".
type expiry time.Duration

// UnmarshalText implements encoding.TextUnmarshaler.
func (e *expiry) UnmarshalText(text []byte) error {
	if string(text) == "never" {
		*e = expiry(NeverExpires)
		return nil
	}
	if err := (*duration)(e).UnmarshalText(text); err != nil {
		return fmt.Errorf("%w, or never", err)
	}
	return nil
}

// MarshalText implements encoding.TextMarshaler.
func (e expiry) MarshalText() ([]byte, error) {
	if time.Duration(e) == NeverExpires {
		return []byte("never"), nil
	}
	return duration(e).MarshalText()
}

// percent is hundredths of a percent, written as "1%" or "0.25%".
type percent int

// UnmarshalText implements encoding.TextUnmarshaler.
func (p *percent) UnmarshalText(text []byte) error {
	bad := fmt.Errorf("%q is no share; write 0%% to 100%%, with up to two decimals", text)
	number, ok := strings.CutSuffix(string(text), "%")
	if !ok {
		return bad
	}
	whole, fraction, _ := strings.Cut(number, ".")
	if len(fraction) > 2 {
		return bad
	}
	v, err := strconv.ParseUint(whole+fraction+strings.Repeat("0", 2-len(fraction)), 10, 32)
	if err != nil || whole == "" || v > 10000 {
		return bad
	}
	*p = percent(v)
	return nil
}

// MarshalText implements encoding.TextMarshaler.
func (p percent) MarshalText() ([]byte, error) {
	s := fmt.Sprintf("%d.%02d", p/100, p%100)
	return []byte(strings.TrimSuffix(strings.TrimRight(s, "0"), ".") + "%"), nil
}

// file is written as "file:NAME".
type file string

// UnmarshalText implements encoding.TextUnmarshaler.
func (f *file) UnmarshalText(text []byte) error {
	name, ok := strings.CutPrefix(string(text), "file:")
	switch {
	case !ok:
		// Not the text itself: it may be the secret.
		return errors.New(`write the file's name behind "file:"; secrets do not belong into the document`)
	case name == "":
		return errors.New("the file has no name")
	case len(name) > MaxTextBytes:
		return fmt.Errorf("the file's name has more than %d bytes", MaxTextBytes)
	}
	*f = file(name)
	return nil
}

// MarshalText implements encoding.TextMarshaler.
func (f file) MarshalText() ([]byte, error) { return []byte("file:" + string(f)), nil }
