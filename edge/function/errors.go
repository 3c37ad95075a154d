package function

import "fmt"

// Kind says what became of a call.
type Kind uint8

// The kinds. All but Answered are of an [Error].
const (
	Answered   Kind = iota
	Busy            // there was no place, nor one in the line, in time
	TimeOver        // it took longer than it may
	MemoryOver      // it failed after it was refused memory
	OutputOver      // it wrote more than it may
	StackOver       // it called itself too deep
	Trapped         // it did what WebAssembly ends a program for, or could not begin
	Exited          // it ended with another status than 0
	BadAnswer       // what it wrote is no answer
	BodyFailed      // the request's body did not come to its end, in time or at all
	Left            // the client left
	kinds
)

// Kinds lists all kinds.
func Kinds() []Kind {
	all := make([]Kind, kinds)
	for i := range all {
		all[i] = Kind(i)
	}
	return all
}

// String is the kind's name in metrics and logs.
func (k Kind) String() string {
	return [kinds]string{"answered", "busy", "time", "memory", "output", "stack", "trap", "exit", "answer", "body", "left"}[k]
}

// Overrun reports whether a limit ended the call.
func (k Kind) Overrun() bool { return TimeOver <= k && k <= StackOver }

// Error is a call without an answer.
type Error struct {
	Kind Kind
	// Function is its name in its zone.
	Function string
	Reason   string
	Usage    Usage
	// Cause is what reading the body ended in, for BodyFailed.
	Cause error
}

// Error implements error.
func (e *Error) Error() string {
	return fmt.Sprintf("function %s: %s: %s", e.Function, e.Kind, e.Reason)
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Cause }
