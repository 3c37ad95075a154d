package dynamoconn_test

import (
	"testing"

	"github.com/guardyn-edge/guardyn/internal/dynamoconn"
)

func TestOpen(t *testing.T) {
	t.Setenv("AWS_REGION", "")
	t.Setenv("AWS_DEFAULT_REGION", "")
	t.Setenv("AWS_CONFIG_FILE", "/dev/null")
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", "/dev/null")
	client, table, err := dynamoconn.Open(t.Context(), "dynamodb:bridges?region=eu-central-1&endpoint=http://127.0.0.1:8000")
	if err != nil || table != "bridges" {
		t.Fatalf("table %q, %v", table, err)
	}
	if o := client.Options(); o.Region != "eu-central-1" || o.BaseEndpoint == nil || *o.BaseEndpoint != "http://127.0.0.1:8000" {
		t.Errorf("region %q, endpoint %v", o.Region, o.BaseEndpoint)
	}
	for name, url := range map[string]string{"another scheme": "postgres://h/d", "no table": "dynamodb:", "slashes": "dynamodb://bridges", "unknown": "dynamodb:bridges?regoin=x", "no region": "dynamodb:bridges"} {
		if _, _, err := dynamoconn.Open(t.Context(), url); err == nil {
			t.Errorf("%s: %s was opened", name, url)
		}
	}
}
