// Package dynamosource keeps bridges' documents in an Amazon DynamoDB table, one item for each.
//
// The table has the keys of a rollout store's (pk and sk, both strings), and may be the same one. A document is the item (pk
// "BRIDGE#name", sk "DOCUMENT") with the attributes version, body, lineage (another one when it was deleted and created
// again) and nonce (the random name of the write that made it what it is). A person may change an item by hand: body and version
// together, the version upward.
package dynamosource

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/guardyn-edge/guardyn/barrier/dynamo"
	"github.com/guardyn-edge/guardyn/bridge/document"
	"github.com/guardyn-edge/guardyn/bridge/source"
)

// Source is one document. All members read the same item, with strong consistency.
type Source struct {
	client *dynamodb.Client
	table  string
	name   string
}

var _ source.Source = (*Source)(nil)

type item = map[string]types.AttributeValue

// Open returns the document of that name in a table that dynamo.CreateTable made, after it has looked that the table is one
// linearizable home: the error is a dynamo.ErrTable else.
func Open(ctx context.Context, client *dynamodb.Client, table, name string) (*Source, error) {
	if err := dynamo.CheckTable(ctx, client, table); err != nil {
		return nil, fmt.Errorf("open the source: %w", err)
	}
	return &Source{client: client, table: table, name: name}, nil
}

func (s *Source) key() item {
	return item{"pk": text("BRIDGE#" + s.name), "sk": text("DOCUMENT")}
}

func text(v string) types.AttributeValue { return &types.AttributeValueMemberS{Value: v} }

func number(v uint64) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: strconv.FormatUint(v, 10)}
}

// Read implements source.Source.
func (s *Source) Read(ctx context.Context) (source.Stored, error) {
	out, err := s.client.GetItem(ctx, &dynamodb.GetItemInput{TableName: &s.table, Key: s.key(), ConsistentRead: aws.Bool(true)})
	switch {
	case err != nil:
		return source.Stored{}, s.wrap(err)
	case len(out.Item) == 0:
		return source.Stored{}, s.wrap(source.ErrMissing)
	}
	stored, err := read(out.Item)
	return stored, s.wrap(err)
}

func read(it item) (source.Stored, error) {
	body, isText := it["body"].(*types.AttributeValueMemberS)
	version, isNumber := it["version"].(*types.AttributeValueMemberN)
	if !isText || !isNumber {
		return source.Stored{}, errors.New("the item has no text body and number version")
	}
	n, err := strconv.ParseUint(version.Value, 10, 64)
	if err != nil || n > document.MaxVersion {
		return source.Stored{}, fmt.Errorf("version %.40q is not a whole number up to %d", version.Value, int64(document.MaxVersion))
	}
	return source.Stored{Body: []byte(body.Value), Version: n, Lineage: textOf(it["lineage"])}, nil
}

func textOf(v types.AttributeValue) string {
	s, ok := v.(*types.AttributeValueMemberS)
	if !ok {
		return ""
	}
	return s.Value
}

// SaveIfVersion implements source.Source.
func (s *Source) SaveIfVersion(ctx context.Context, version uint64, body []byte) (source.Stored, error) {
	body, err := document.WithVersion(body, version+1)
	if err != nil {
		return source.Stored{}, s.wrap(err)
	}
	nonce := rand.Text()
	out, err := s.client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName: &s.table, Key: s.key(),
		UpdateExpression:    aws.String("SET version = :next, body = :body, nonce = :nonce"),
		ConditionExpression: aws.String("version = :version"),
		ExpressionAttributeValues: item{
			":version": number(version), ":next": number(version + 1), ":body": text(string(body)), ":nonce": text(nonce),
		},
		ReturnValues: types.ReturnValueAllNew, ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	})
	if err == nil {
		stored, err := read(out.Attributes)
		return stored, s.wrap(err)
	}
	there, mine, err := s.failed(err, nonce)
	switch {
	case err != nil:
		return source.Stored{}, s.wrap(err)
	case mine:
		return there, nil
	}
	return source.Stored{}, s.wrap(&source.VersionError{Have: there.Version})
}

// CreateIfAbsent implements source.Source.
func (s *Source) CreateIfAbsent(ctx context.Context, body []byte) (source.Stored, error) {
	body, err := document.WithVersion(body, 1)
	if err != nil {
		return source.Stored{}, s.wrap(err)
	}
	nonce := rand.Text()
	it := s.key()
	it["version"], it["body"], it["nonce"], it["lineage"] = number(1), text(string(body)), text(nonce), text(nonce)
	_, err = s.client.PutItem(ctx, &dynamodb.PutItemInput{
		TableName: &s.table, Item: it, ConditionExpression: aws.String("attribute_not_exists(pk)"),
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	})
	if err == nil {
		return source.Stored{Body: body, Version: 1, Lineage: nonce}, nil
	}
	there, mine, err := s.failed(err, nonce)
	switch {
	case mine && err == nil:
		return there, nil
	case err == nil || errors.Is(err, errOther):
		err = source.ErrExists
	}
	return source.Stored{}, s.wrap(err)
}

// errOther is of an item that is there and is no document.
var errOther = errors.New("something else is there")

// failed looks at what kept a conditional write from being done: the client sends one again whose answer was lost, and the second
// finds what the first has written, by its nonce.
func (s *Source) failed(err error, nonce string) (there source.Stored, mine bool, _ error) {
	var condition *types.ConditionalCheckFailedException
	if !errors.As(err, &condition) {
		return there, false, err
	}
	if len(condition.Item) == 0 {
		return there, false, source.ErrMissing
	}
	there, err = read(condition.Item)
	if err != nil {
		return there, false, fmt.Errorf("%w: %w", errOther, err)
	}
	return there, textOf(condition.Item["nonce"]) == nonce, nil
}

func (s *Source) wrap(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", s, err)
}

// Shared implements source.Source.
func (*Source) Shared() bool { return true }

// String implements source.Source.
func (s *Source) String() string { return "dynamodb:" + s.table + "?document=" + s.name }

// Close implements source.Source.
func (*Source) Close() error { return nil }
