package dynamo

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// ErrTable is of a table that cannot keep a barrier; the error says why.
var ErrTable = errors.New("table cannot keep a rollout barrier")

// createWait bounds how long a new table may take until it is active.
const createWait = 2 * time.Minute

// CreateTable makes a table for any number of cohorts, billed by request, unless it exists, and returns when it is
// active.
func CreateTable(ctx context.Context, client *dynamodb.Client, name string) error {
	_, err := client.CreateTable(ctx, &dynamodb.CreateTableInput{
		TableName:   &name,
		BillingMode: types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{
			{AttributeName: aws.String(attrPartition), AttributeType: types.ScalarAttributeTypeS},
			{AttributeName: aws.String(attrSort), AttributeType: types.ScalarAttributeTypeS},
		},
		KeySchema: []types.KeySchemaElement{
			{AttributeName: aws.String(attrPartition), KeyType: types.KeyTypeHash},
			{AttributeName: aws.String(attrSort), KeyType: types.KeyTypeRange},
		},
	})
	if exists := new(types.ResourceInUseException); err != nil && !errors.As(err, &exists) {
		return fmt.Errorf("create table %s: %w", name, err)
	}
	waiter := dynamodb.NewTableExistsWaiter(client, func(o *dynamodb.TableExistsWaiterOptions) {
		o.MinDelay, o.MaxDelay = 100*time.Millisecond, 2*time.Second
	})
	if err := waiter.Wait(ctx, &dynamodb.DescribeTableInput{TableName: &name}, createWait); err != nil {
		return fmt.Errorf("wait for table %s: %w", name, err)
	}
	return nil
}

// CheckTable says, as an ErrTable, what keeps a table from being one linearizable home for anything that is compared and set: its
// keys are not those that CreateTable makes, or it is replicated to another region.
func CheckTable(ctx context.Context, client *dynamodb.Client, name string) error {
	s := &Store{client: client, table: name, o: Options{}.withDefaults()}
	return s.checkTable(ctx)
}

func (s *Store) checkTable(ctx context.Context) error {
	out, err := read(ctx, s, func(ctx context.Context) (*dynamodb.DescribeTableOutput, error) {
		return s.client.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &s.table}, once)
	})
	if err != nil {
		return fmt.Errorf("describe table %s: %w", s.table, err)
	}
	if problems := tableProblems(out.Table); len(problems) > 0 {
		return fmt.Errorf("%w: %s: %s", ErrTable, s.table, strings.Join(problems, "; "))
	}
	return nil
}

// tableProblems says all that keeps t from being one linearizable home.
func tableProblems(t *types.TableDescription) []string {
	if t == nil {
		return []string{"it has no description"}
	}
	var problems []string
	if len(t.Replicas) > 0 || t.GlobalTableVersion != nil {
		regions := make([]string, len(t.Replicas))
		for i, r := range t.Replicas {
			regions[i] = aws.ToString(r.RegionName)
		}
		where := strings.Join(regions, ", ")
		if where == "" {
			where = "version " + aws.ToString(t.GlobalTableVersion)
		}
		problems = append(problems, "it is a global table ("+where+"): two regions would decide apart; use a table of one region")
	}
	var keys []string
	for _, k := range t.KeySchema {
		kind := "?"
		for _, d := range t.AttributeDefinitions {
			if aws.ToString(d.AttributeName) == aws.ToString(k.AttributeName) {
				kind = string(d.AttributeType)
			}
		}
		keys = append(keys, fmt.Sprintf("%s %s %s", aws.ToString(k.AttributeName), kind, k.KeyType))
	}
	want := fmt.Sprintf("%s S HASH, %s S RANGE", attrPartition, attrSort)
	if have := strings.Join(keys, ", "); have != want {
		problems = append(problems, fmt.Sprintf("its key is (%s), not (%s)", have, want))
	}
	if t.TableStatus != types.TableStatusActive && t.TableStatus != types.TableStatusUpdating {
		problems = append(problems, fmt.Sprintf("it is %s, not active", t.TableStatus))
	}
	return problems
}
