package cli

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"filippo.io/age"
	"filippo.io/age/armor"
	"github.com/spf13/cobra"

	"github.com/guardyn-edge/guardyn/api"
	"github.com/guardyn-edge/guardyn/zone"
)

// maxPEMFile bounds the files of a certificate and of a key.
const maxPEMFile = 256 << 10

// keysIdentityCommand makes what private keys of TLS hosts are sealed to.
func (a *app) keysIdentityCommand() *cobra.Command {
	return a.jsonFlag(&cobra.Command{
		Use:   "identity",
		Short: "Make an identity that private keys of TLS hosts are sealed to, and print it once",
		Args:  args(0, 0),
		RunE: func(*cobra.Command, []string) error {
			id, err := age.GenerateX25519Identity()
			if err != nil {
				return fmt.Errorf("make an identity: %w", err)
			}
			if a.json {
				return a.printJSON(struct {
					Recipient string `json:"recipient"`
					Identity  string `json:"identity"`
				}{id.Recipient().String(), id.String()})
			}
			a.printf("A new sealing identity (age, X25519).\n\n"+
				"  recipient   %s\n"+
				"  identity    %s\n\n"+
				"The identity is shown once and is not stored.\n"+
				"  Control plane:   GUARDYN_SECRET_RECIPIENT=%s\n"+
				"  Every edge node: GUARDYN_SECRET_IDENTITIES=%s\n",
				id.Recipient(), id, id.Recipient(), id)
			return nil
		},
	})
}

func (a *app) tlsAddCommand() *cobra.Command {
	var certFile, keyFile, recipient string
	cmd := a.jsonFlag(&cobra.Command{
		Use:   "add ZONE HOST --cert FILE --key FILE",
		Short: "Seal a private key on this machine and send it with its certificate",
		Long: `Seal a private key on this machine and send it with its certificate. HOST is a name or a wildcard (*.example.com),
relative to the zone unless it ends in the zone's name.

The certificate file holds the chain in PEM, leaf first. The key is sealed to the recipient that the control plane names, or to
that of --recipient, and never leaves this machine in the clear: whoever has the fleet's identity opens it, which are the
nodes. Before anything is sent, key and certificate must match, the certificate must cover HOST, and its dates must be good.`,
		Args: args(2, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			for flag, value := range map[string]string{"cert": certFile, "key": keyFile} {
				if value == "" {
					return usagef(cmd, "--%s is not given", flag)
				}
			}
			name := absolute(args[0], args[1])
			host, leaf, plain, err := readPair(name, certFile, keyFile, time.Now())
			if err != nil {
				return err
			}
			defer clear(plain)
			c, err := a.client()
			if err != nil {
				return err
			}
			if recipient == "" {
				said, err := c.SecretRecipient(cmd.Context())
				if err != nil {
					return err
				}
				if recipient = said.Recipient; recipient == "" {
					return hint(errors.New("the control plane has no recipient to seal private keys to"),
						"set GUARDYN_SECRET_RECIPIENT there (gdn keys identity makes one), or give --recipient")
				}
			}
			if host.SealedKey, err = sealKey(plain, recipient); err != nil {
				return err
			}
			now, _, err := c.PutTLSHost(cmd.Context(), args[0], args[1], host, api.WriteOptions{})
			if err != nil {
				return err
			}
			if a.json {
				return a.printJSON(now)
			}
			a.printf("%s: TLS host %s has a certificate until %s; its key is sealed to %s; %s\n",
				args[0], name, leaf.NotAfter.UTC().Format(time.DateOnly), recipient, nextApply)
			return nil
		},
	})
	cmd.Flags().StringVar(&certFile, "cert", "", "certificate chain in PEM, leaf first, from `FILE`")
	cmd.Flags().StringVar(&keyFile, "key", "", "private key in PEM from `FILE`")
	cmd.Flags().StringVar(&recipient, "recipient", "", "seal to `AGE1…` instead of whom the control plane names")
	return cmd
}

// readPair reads a certificate and its key and tells all that is wrong with them. plain is the key as it is to be sealed.
func readPair(host, certFile, keyFile string, now time.Time) (h zone.TLSHost, leaf *x509.Certificate, plain []byte, err error) {
	chain, err := readBounded(certFile)
	if err != nil {
		return h, nil, nil, err
	}
	text, err := readBounded(keyFile)
	if err != nil {
		return h, nil, nil, err
	}
	defer clear(text)
	if bytes.Contains(chain, []byte("PRIVATE KEY-----")) {
		return h, nil, nil, hint(fmt.Errorf("%s: it holds a private key", certFile), "give a file with certificates alone as --cert")
	}
	// What follows the key in its file is nobody's business.
	var block *pem.Block
	for rest := text; ; {
		if block, rest = pem.Decode(rest); block == nil {
			return h, nil, nil, fmt.Errorf("%s: it holds no private key in PEM", keyFile)
		}
		if strings.HasSuffix(block.Type, "PRIVATE KEY") {
			break
		}
	}
	if block.Type == "ENCRYPTED PRIVATE KEY" || block.Headers["DEK-Info"] != "" {
		return h, nil, nil, hint(fmt.Errorf("%s: the private key has a passphrase", keyFile), "decrypt it first (openssl pkey); it is sealed before it is sent")
	}
	plain = pem.EncodeToMemory(block)
	pair, err := tls.X509KeyPair(chain, plain)
	if err != nil {
		clear(plain)
		return h, nil, nil, fmt.Errorf("%s and %s: %w", certFile, keyFile, err)
	}
	if leaf = pair.Leaf; leaf == nil {
		if leaf, err = x509.ParseCertificate(pair.Certificate[0]); err != nil {
			return h, nil, nil, fmt.Errorf("%s: %w", certFile, err)
		}
	}
	var bad []error
	name := strings.TrimSuffix(strings.ToLower(host), ".")
	if err := leaf.VerifyHostname(name); err != nil {
		bad = append(bad, fmt.Errorf("%s: the certificate does not cover %s, but %s", certFile, host, strings.Join(leaf.DNSNames, ", ")))
	}
	switch {
	case now.After(leaf.NotAfter):
		bad = append(bad, fmt.Errorf("%s: the certificate expired on %s", certFile, leaf.NotAfter.UTC().Format(time.DateOnly)))
	case now.Before(leaf.NotBefore):
		bad = append(bad, fmt.Errorf("%s: the certificate is valid from %s on", certFile, leaf.NotBefore.UTC().Format(time.DateOnly)))
	}
	if err := errors.Join(bad...); err != nil {
		clear(plain)
		return h, nil, nil, err
	}
	return zone.TLSHost{Certificate: string(chain)}, leaf, plain, nil
}

func readBounded(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxPEMFile+1))
	if err == nil && len(text) > maxPEMFile {
		err = fmt.Errorf("%s: it has more than %d bytes", path, maxPEMFile)
	}
	return text, err
}

// sealKey returns an armoured age file for recipient.
func sealKey(plain []byte, recipient string) (string, error) {
	to, err := age.ParseX25519Recipient(recipient)
	if err != nil {
		return "", hint(fmt.Errorf("%s is not an age recipient", inert(recipient)), "one looks like age1…; gdn keys identity makes one")
	}
	var out bytes.Buffer
	text := armor.NewWriter(&out)
	w, err := age.Encrypt(text, to)
	if err != nil {
		return "", fmt.Errorf("seal the private key: %w", err)
	}
	if _, err := w.Write(plain); err != nil {
		return "", fmt.Errorf("seal the private key: %w", err)
	}
	if err := errors.Join(w.Close(), text.Close()); err != nil {
		return "", fmt.Errorf("seal the private key: %w", err)
	}
	return out.String(), nil
}

// certificateEnd tells until when a TLS host's certificate is good, for listings.
func certificateEnd(h zone.TLSHost) string {
	block, _ := pem.Decode([]byte(h.Certificate))
	if block == nil {
		return "no certificate"
	}
	leaf, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return "a certificate that does not parse"
	}
	return "a certificate until " + leaf.NotAfter.UTC().Format(time.DateOnly)
}
