package host

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"filippo.io/age"
	"filippo.io/age/armor"

	"github.com/guardyn-edge/guardyn/edge"
)

// Bounds of what is read of identities, and of what one sealed file may hold.
const (
	maxIdentityFile = 64 << 10
	maxIdentities   = 16
	maxUnsealed     = 256 << 10
	identityPrefix  = "AGE-SECRET-KEY-"
)

// Identities open what was sealed to the fleet: the private keys of TLS hosts. The zero value opens nothing.
type Identities struct{ list []age.Identity }

var _ edge.Secrets = Identities{}

// ParseIdentities reads GUARDYN_SECRET_IDENTITIES: X25519 identities of age (AGE-SECRET-KEY-1…), separated by commas, or the path
// of a file with one on each line, as age-keygen writes it. The error names the position of each that is wrong and holds nothing
// of it.
func ParseIdentities(setting string) (Identities, error) {
	var items []string
	position := "entry"
	if strings.HasPrefix(strings.ToUpper(strings.TrimSpace(setting)), identityPrefix) {
		items = strings.Split(setting, ",")
	} else {
		text, err := readIdentityFile(setting)
		if err != nil {
			return Identities{}, err
		}
		items, position = strings.Split(text, "\n"), "line"
	}
	var out Identities
	var bad []error
	for i, item := range items {
		item = strings.TrimSpace(item)
		if position == "line" && (item == "" || strings.HasPrefix(item, "#")) {
			continue
		}
		id, err := age.ParseX25519Identity(item)
		if err != nil {
			bad = append(bad, fmt.Errorf("%s %d is not an age identity (AGE-SECRET-KEY-1…)", position, i+1))
			continue
		}
		out.list = append(out.list, id)
	}
	switch {
	case len(bad) > 0:
		return Identities{}, errors.Join(bad...)
	case len(out.list) == 0:
		return Identities{}, errors.New("it holds no identity")
	case len(out.list) > maxIdentities:
		return Identities{}, fmt.Errorf("it holds %d identities, the most is %d", len(out.list), maxIdentities)
	}
	return out, nil
}

func readIdentityFile(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		// The path is not told: it may be a secret that is written wrongly.
		var p *os.PathError
		if errors.As(err, &p) {
			err = p.Err
		}
		return "", fmt.Errorf("it is neither an identity (AGE-SECRET-KEY-1…) nor a file that can be read: %w", err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxIdentityFile+1))
	if err != nil {
		return "", errors.New("its file cannot be read")
	}
	if len(text) > maxIdentityFile {
		return "", fmt.Errorf("its file has more than %d bytes", maxIdentityFile)
	}
	return string(text), nil
}

// Unseal implements edge.Secrets.
func (s Identities) Unseal(armoured string) ([]byte, error) {
	if len(s.list) == 0 {
		return nil, errors.New("the node has no identity; set GUARDYN_SECRET_IDENTITIES")
	}
	r, err := age.Decrypt(armor.NewReader(strings.NewReader(armoured)), s.list...)
	if err != nil {
		var none *age.NoIdentityMatchError
		if errors.As(err, &none) {
			return nil, errors.New("it is sealed to none of the node's identities")
		}
		return nil, errors.New("it is not a whole age file")
	}
	var out bytes.Buffer
	n, err := out.ReadFrom(io.LimitReader(r, maxUnsealed+1))
	switch {
	case err != nil:
		return nil, errors.New("it is damaged")
	case n > maxUnsealed:
		return nil, fmt.Errorf("it holds more than %d bytes", maxUnsealed)
	}
	return out.Bytes(), nil
}

// CheckRecipient judges GUARDYN_SECRET_RECIPIENT: one X25519 recipient of age (age1…).
func CheckRecipient(recipient string) error {
	if _, err := age.ParseX25519Recipient(recipient); err != nil {
		return errors.New("it is not an age recipient (age1…); gdn keys identity makes one")
	}
	return nil
}
