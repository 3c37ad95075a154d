// Package testdynamo gives tests a real DynamoDB-compatible server, DynamoDB Local, that is started for them.
package testdynamo

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

// EnvURL names the environment variable that holds the URL of a running DynamoDB Local. Tests then make their
// tables there instead of starting one.
const EnvURL = "GUARDYN_TEST_DYNAMO_URL"

// StartTimeout bounds how long it may take to fetch a server and until it answers.
const StartTimeout = 4 * time.Minute

const region = "us-east-1" // any; DynamoDB Local answers for all

// Main runs a package's tests with one server for all of them, for TestMain:
//
//	func TestMain(m *testing.M) { testdynamo.Main(m) }
//
// The first test that asks for a client starts it. A server that cannot be started fails those tests alone.
func Main(m *testing.M) {
	defer func() {
		if shared.server != nil {
			if err := shared.server.Stop(); err != nil {
				fmt.Fprintln(os.Stderr, "stop DynamoDB Local:", err)
			}
		}
	}()
	m.Run() // its code becomes the process's when TestMain returns
}

// shared is this process's own server, which Main stops.
var shared struct {
	once   sync.Once
	server *Server
	err    error
}

// URL returns where a server answers. Without one the test fails: it is never skipped. Only packages that have Main
// may call it.
func URL(t testing.TB) string {
	t.Helper()
	if url := os.Getenv(EnvURL); url != "" {
		return url
	}
	shared.once.Do(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), StartTimeout)
		defer cancel()
		shared.server, shared.err = Start(ctx)
	})
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	return shared.server.URL()
}

// Client returns a client of the server, changed by each of with.
func Client(t testing.TB, with ...func(*dynamodb.Options)) *dynamodb.Client {
	t.Helper()
	transport := &http.Transport{MaxIdleConnsPerHost: 64}
	t.Cleanup(transport.CloseIdleConnections)
	o := dynamodb.Options{
		Region:       region,
		BaseEndpoint: aws.String(URL(t)),
		Credentials:  credentials.NewStaticCredentialsProvider("test", "test", ""),
		HTTPClient:   &http.Client{Transport: transport},
	}
	return dynamodb.New(o, with...)
}

// Name returns a new name for a table.
func Name() string { return "guardyn-test-" + rand.Text() }
