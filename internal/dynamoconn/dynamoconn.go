// Package dynamoconn makes the client of a DynamoDB table that a URL names.
package dynamoconn

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

// Open returns a client and the table that rawURL names: "dynamodb:TABLE" with, behind a question mark, region=NAME and endpoint=URL.
// What is not given there, credentials always, comes from the environment and files that the AWS SDK reads.
func Open(ctx context.Context, rawURL string) (client *dynamodb.Client, table string, err error) {
	rest, ok := strings.CutPrefix(rawURL, "dynamodb:")
	if !ok {
		return nil, "", errors.New("the URL is not dynamodb:TABLE")
	}
	table, query, _ := strings.Cut(rest, "?")
	q, err := url.ParseQuery(query)
	if err != nil || table == "" || strings.HasPrefix(table, "//") {
		return nil, "", errors.New("write dynamodb:TABLE or dynamodb:TABLE?region=NAME")
	}
	var load []func(*config.LoadOptions) error
	var change []func(*dynamodb.Options)
	for name, values := range q {
		switch name {
		case "region":
			load = append(load, config.WithRegion(values[0]))
		case "endpoint":
			change = append(change, func(o *dynamodb.Options) { o.BaseEndpoint = aws.String(values[0]) })
		default:
			return nil, "", fmt.Errorf("dynamodb:%s: %q is neither region nor endpoint", table, name)
		}
	}
	cfg, err := config.LoadDefaultConfig(ctx, load...)
	if err != nil {
		return nil, "", fmt.Errorf("dynamodb:%s: %w", table, err)
	}
	if cfg.Region == "" {
		return nil, "", fmt.Errorf("dynamodb:%s: no region: set AWS_REGION, or write ?region=NAME", table)
	}
	return dynamodb.NewFromConfig(cfg, change...), table, nil
}
