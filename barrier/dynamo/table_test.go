package dynamo_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/guardyn-edge/guardyn/barrier"
	"github.com/guardyn-edge/guardyn/barrier/dynamo"
	"github.com/guardyn-edge/guardyn/internal/testdynamo"
)

func TestCreateTable(t *testing.T) {
	client, name := testdynamo.Client(t), testdynamo.Name()
	for range 2 { // the second finds it
		ok(t, dynamo.CreateTable(t.Context(), client, name))
	}
	out := must(client.DescribeTable(t.Context(), &dynamodb.DescribeTableInput{TableName: &name}))(t)
	table := out.Table
	if table.TableStatus != types.TableStatusActive || table.BillingModeSummary.BillingMode != types.BillingModePayPerRequest ||
		len(table.GlobalSecondaryIndexes)+len(table.LocalSecondaryIndexes) != 0 || table.StreamSpecification != nil {
		t.Errorf("table = %+v", table)
	}
	if _, err := dynamo.Open(t.Context(), client, dynamo.Options{Table: name, Cohort: "c"}); err != nil {
		t.Error(err)
	}
}

func TestOpenRefusesTables(t *testing.T) {
	described := func(more string) fate {
		return func(*wire, *http.Request) (*http.Response, error) {
			return respond(200, `{"Table":{"TableName":"t","TableStatus":"ACTIVE",
				"KeySchema":[{"AttributeName":"pk","KeyType":"HASH"},{"AttributeName":"sk","KeyType":"RANGE"}],
				"AttributeDefinitions":[{"AttributeName":"pk","AttributeType":"S"},{"AttributeName":"sk","AttributeType":"S"}]`+more+`}}`), nil
		}
	}
	tests := []struct {
		name   string
		answer fate
		want   string // in the error; empty: it is taken
	}{
		{"as it should be", described(``), ""},
		{"being changed", described(`,"TableStatus":"UPDATING"`), ""},
		{"global", described(`,"GlobalTableVersion":"2019.11.21","Replicas":[{"RegionName":"eu-west-1","ReplicaStatus":"ACTIVE"}]`), "it is a global table (eu-west-1)"},
		{"global, of the first version", described(`,"GlobalTableVersion":"2017.11.29"`), "it is a global table (version 2017.11.29)"},
		{"being created", described(`,"TableStatus":"CREATING"`), "it is CREATING, not active"},
		{"key by number", described(`,"AttributeDefinitions":[{"AttributeName":"pk","AttributeType":"S"},{"AttributeName":"sk","AttributeType":"N"}]`), "its key is (pk S HASH, sk N RANGE), not (pk S HASH, sk S RANGE)"},
		{"everything at once", described(`,"GlobalTableVersion":"2017.11.29","KeySchema":[{"AttributeName":"pk","KeyType":"HASH"}]`), "its key is (pk S HASH), not"},
		{"no such table", pass, "ResourceNotFoundException"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newWire()
			w.set(func(r request) fate {
				if r.operation == "DescribeTable" {
					return tt.answer
				}
				return pass
			})
			_, err := dynamo.Open(t.Context(), testdynamo.Client(t, w.use), dynamo.Options{Table: "guardyn-no-such-table", Cohort: "c"})
			switch {
			case tt.want == "" && err != nil:
				t.Error(err)
			case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)):
				t.Errorf("error = %v, want %q in it", err, tt.want)
			case strings.HasPrefix(tt.want, "it") && !errors.Is(err, dynamo.ErrTable):
				t.Errorf("error = %v, want an ErrTable", err)
			}
		})
	}
}

func TestOpenRefusesAForeignTable(t *testing.T) {
	client, name := testdynamo.Client(t), testdynamo.Name()
	must(client.CreateTable(t.Context(), &dynamodb.CreateTableInput{
		TableName: &name, BillingMode: types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("id"), AttributeType: types.ScalarAttributeTypeS}},
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("id"), KeyType: types.KeyTypeHash}},
	}))(t)
	_, err := dynamo.Open(t.Context(), client, dynamo.Options{Table: name, Cohort: "c"})
	if !errors.Is(err, dynamo.ErrTable) || !strings.Contains(err.Error(), "its key is (id S HASH)") {
		t.Errorf("error = %v", err)
	}
}

func TestOpenRefusesOptions(t *testing.T) {
	_, err := dynamo.Open(t.Context(), testdynamo.Client(t), dynamo.Options{Cohort: "a#b", ClockSkew: -time.Second})
	for _, want := range []string{"table has no name", `cohort "a#b" is not`, "clock skew is -1s"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error = %v, want %q in it", err, want)
		}
	}
}

func TestHeadOfAnotherFormatIsRefused(t *testing.T) {
	o := options(newTable(t))
	s := open(t, o)
	members(t, s, 1)
	must(testdynamo.Client(t).UpdateItem(t.Context(), &dynamodb.UpdateItemInput{
		TableName:        &o.Table,
		Key:              map[string]types.AttributeValue{"pk": &types.AttributeValueMemberS{Value: "COHORT#" + o.Cohort}, "sk": &types.AttributeValueMemberS{Value: "HEAD"}},
		UpdateExpression: aws.String("SET #f = :two"), ExpressionAttributeNames: map[string]string{"#f": "format"},
		ExpressionAttributeValues: map[string]types.AttributeValue{":two": &types.AttributeValueMemberN{Value: "2"}},
	}))(t)
	if _, err := s.Current(t.Context()); err == nil || !strings.Contains(err.Error(), "its format is 2, and this process knows 1") {
		t.Errorf("Current: %v", err)
	}
	if err := s.Claim(t.Context(), 1); err == nil {
		t.Error("a head of another format was written over")
	}
}

func TestCohortsShareATable(t *testing.T) {
	table := newTable(t)
	first, second := open(t, options(table)), open(t, options(table))
	roster := members(t, first, 2)
	must(first.Propose(t.Context(), proposal(roster)))(t)
	ok(t, first.Put(t.Context(), "test:artefact", []byte("of the first")))
	must(first.Acquire(t.Context(), "holder", barrier.MaxLease))(t)

	row := must(second.Current(t.Context()))(t)
	if row.Head != (barrier.Head{}) || row.Roster.Revision != 0 || len(row.Seats) != 0 {
		t.Errorf("the second cohort's row = %+v", row)
	}
	if _, err := second.Get(t.Context(), "test:artefact"); !errors.Is(err, barrier.ErrNoArtefact) {
		t.Errorf("the second cohort's artefact: %v", err)
	}
	if l := must(second.Acquire(t.Context(), "another", barrier.MaxLease))(t); l.Token != 1 {
		t.Errorf("the second cohort's lease = %+v", l)
	}
}
