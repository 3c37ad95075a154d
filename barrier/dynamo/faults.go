package dynamo

import (
	"errors"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// fault is what an error of a request says about its effect.
type fault int

const (
	noFault   fault = iota
	conflict        // not done: a condition does not hold, or another transaction was at the same item
	throttled       // not done: the table is busy
	ambiguous       // done, or not, or about to be
	fatal           // not done, and the same request never will be
)

// judge classes the error of a request.
func judge(err error) fault {
	if err == nil {
		return noFault
	}
	if canceled := new(types.TransactionCanceledException); errors.As(err, &canceled) {
		return judgeReasons(canceled.CancellationReasons)
	}
	var api smithy.APIError
	if !errors.As(err, &api) {
		return ambiguous // the network's, or time ran out
	}
	switch api.ErrorCode() {
	case "ConditionalCheckFailedException", "TransactionConflictException":
		return conflict
	case "ProvisionedThroughputExceededException", "RequestLimitExceeded", "ThrottlingException", "ReplicatedWriteConflictException":
		return throttled
	case "TransactionInProgressException", "InternalServerError", "InternalServerErrorException", "ServiceUnavailable":
		return ambiguous
	}
	var response *smithyhttp.ResponseError
	if errors.As(err, &response) && response.HTTPStatusCode()/100 == 4 {
		return fatal
	}
	return ambiguous
}

// judgeReasons classes a transaction that was cancelled, and so had no effect.
func judgeReasons(reasons []types.CancellationReason) fault {
	worst := conflict
	for _, r := range reasons {
		if r.Code == nil {
			continue
		}
		switch *r.Code {
		case "None", "ConditionalCheckFailed", "TransactionConflict":
		case "ThrottlingError", "ProvisionedThroughputExceeded":
			worst = max(worst, throttled)
		default: // ValidationError, ItemCollectionSizeLimitExceeded, AccessDenied
			worst = fatal
		}
	}
	return worst
}
