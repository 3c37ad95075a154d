package dynamosource_test

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/guardyn-edge/guardyn/barrier/dynamo"
	"github.com/guardyn-edge/guardyn/bridge/source"
	"github.com/guardyn-edge/guardyn/bridge/source/dynamosource"
	"github.com/guardyn-edge/guardyn/bridge/source/sourcetest"
	"github.com/guardyn-edge/guardyn/internal/testdynamo"
)

func TestMain(m *testing.M) { testdynamo.Main(m) }

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func table(t testing.TB) string {
	name := testdynamo.Name()
	ok(t, dynamo.CreateTable(t.Context(), testdynamo.Client(t), name))
	return name
}

// transport changes what happens to requests.
type transport func(*http.Request) (*http.Response, error)

func (f transport) Do(r *http.Request) (*http.Response, error) { return f(r) }

func through(do func(*http.Request) (*http.Response, error)) func(*dynamodb.Options) {
	return func(o *dynamodb.Options) { o.HTTPClient = transport(do) }
}

func key(name string) map[string]types.AttributeValue {
	return map[string]types.AttributeValue{
		"pk": &types.AttributeValueMemberS{Value: "BRIDGE#" + name}, "sk": &types.AttributeValueMemberS{Value: "DOCUMENT"},
	}
}

func TestSuite(t *testing.T) {
	sourcetest.Run(t, func(t testing.TB) sourcetest.Home {
		name := table(t)
		client := testdynamo.Client(t)
		var down atomic.Bool
		return sourcetest.Home{
			Open: func(t testing.TB) source.Source {
				s, err := dynamosource.Open(t.Context(), testdynamo.Client(t, through(func(r *http.Request) (*http.Response, error) {
					if down.Load() {
						return nil, errors.New("the network is down")
					}
					if strings.HasSuffix(r.Header.Get("X-Amz-Target"), ".GetItem") {
						text, err := io.ReadAll(r.Body)
						if err != nil || !strings.Contains(string(text), `"ConsistentRead":true`) {
							t.Errorf("a read that may be old: %s, %v", text, err)
						}
						r.Body = io.NopCloser(bytes.NewReader(text))
					}
					return http.DefaultClient.Do(r)
				}), func(o *dynamodb.Options) { o.RetryMaxAttempts = 1 }), name, "ours")
				ok(t, err)
				return s
			},
			Write: func(t testing.TB, version uint64, body string) {
				_, err := client.UpdateItem(t.Context(), &dynamodb.UpdateItemInput{
					TableName: &name, Key: key("ours"), UpdateExpression: aws.String("SET version = :v, body = :b"),
					ExpressionAttributeValues: map[string]types.AttributeValue{
						":v": &types.AttributeValueMemberN{Value: strconv.FormatUint(version, 10)}, ":b": &types.AttributeValueMemberS{Value: body},
					},
				})
				ok(t, err)
			},
			Delete: func(t testing.TB) {
				_, err := client.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{TableName: &name, Key: key("ours")})
				ok(t, err)
			},
			Break: func(testing.TB) func() {
				down.Store(true)
				return func() { down.Store(false) }
			},
		}
	})
}

// TestLostAnswers: a write whose answer is lost is sent again by the client, and is not taken for another's.
func TestLostAnswers(t *testing.T) {
	name := table(t)
	var lose atomic.Bool
	s, err := dynamosource.Open(t.Context(), testdynamo.Client(t, through(func(r *http.Request) (*http.Response, error) {
		resp, err := http.DefaultClient.Do(r)
		if err == nil && lose.Swap(false) {
			resp.Body.Close()
			return nil, io.ErrUnexpectedEOF
		}
		return resp, err
	})), name, "ours")
	ok(t, err)
	lose.Store(true)
	first, err := s.CreateIfAbsent(t.Context(), []byte("version: 5\n"))
	if err != nil || first.Version != 1 || lose.Load() {
		t.Fatalf("created %+v, %v", first, err)
	}
	lose.Store(true)
	if got, err := s.SaveIfVersion(t.Context(), 1, []byte("version: 5\n")); err != nil || got.Version != 2 || got.Lineage != first.Lineage || lose.Load() {
		t.Errorf("saved %+v, %v", got, err)
	}
}

// TestWhatIsNoDocument is an error and never missing.
func TestWhatIsNoDocument(t *testing.T) {
	name := table(t)
	client := testdynamo.Client(t)
	s, err := dynamosource.Open(t.Context(), client, name, "ours")
	ok(t, err)
	_, err = client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &name, Item: key("ours")})
	ok(t, err)
	if _, err := s.Read(t.Context()); err == nil || errors.Is(err, source.ErrMissing) {
		t.Errorf("read: %v", err)
	}
	if _, err := s.CreateIfAbsent(t.Context(), []byte("version: 1\n")); !errors.Is(err, source.ErrExists) {
		t.Errorf("created: %v", err)
	}
	if _, err := dynamosource.Open(t.Context(), client, "no-such-table", "ours"); err == nil {
		t.Error("a table that is not there was opened")
	}
}
