package seal

import (
	"os"
	"strings"
	"testing"
)

// What docs/spec/snapshot.md states as fact is what this package does.
func TestSpecification(t *testing.T) {
	b, err := os.ReadFile("../docs/spec/snapshot.md")
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Join(strings.Fields(string(b)), " ")
	for what, says := range map[string]string{
		"the public key of key 1":      "`" + key(t, 1).Public().String() + "`",
		"the id of key 1":              "`" + string(key(t, 1).ID()) + "`",
		"the hash of no zones":         "`" + payloadHash([]byte("{}")) + "`",
		"the words of unsigned":        "*there is no mode in which an unsigned snapshot is accepted*",
		"the activation's prefix":      "`" + strings.TrimSuffix(activationPrefix, "\n") + "` and a line feed",
		"the freshness's prefix":       "`" + strings.TrimSuffix(freshnessPrefix, "\n") + "` and a line feed",
		"the purges' prefix":           "`" + strings.TrimSuffix(purgesPrefix, "\n") + "` and a line feed",
		"the coding's prefix":          "`" + strings.TrimSuffix(codingPrefix, "\n") + "` and a line feed",
		"the members of an activation": `"rollout":"<uuid or empty>","version":42}`,
	} {
		if !strings.Contains(text, says) {
			t.Errorf("%s is not there: %s", what, says)
		}
	}
	for _, c := range []string{
		CodeUnsigned, CodeTooLarge, CodeKeyUntrusted, CodeSignatureMalformed, CodeSignatureInvalid, CodeActivationInvalid, CodePayloadMalformed,
		CodeFormatUnsupported, CodeHashMismatch, CodeZoneIDMismatch, CodeHostDuplicate, CodeEnvelopeMismatch, CodeStaleGeneration, CodeEquivocation, CodeGenerationJump,
	} {
		if !strings.Contains(text, "`"+c+"`") {
			t.Errorf("the code %s is not there", c)
		}
	}
}
