package rules

import (
	"sync"

	"cel.dev/cel-go/cel"

	"github.com/guardyn-edge/guardyn/internal/expr"
)

// DefaultPrograms is how many programs a cache keeps when its maker says nothing.
const DefaultPrograms = 16384

// Programs is a bounded cache of compiled expressions by their text; the oldest makes room. Programs hold no
// zone's state. It is safe for concurrent use and owned by its caller, who keeps it from one Compile to the
// next.
type Programs struct {
	max int

	mu     sync.RWMutex
	byText map[string]compiled
	oldest []string // ring of the texts, in the order they came, once it is full
	next   int
}

// compiled is an expression, ready to run.
type compiled struct {
	kind     expr.Kind
	program  cel.Program
	direct   expr.Direct // nil: there is none
	lists    []expr.ListRef
	constant *bool
	need     expr.Need
}

// NewPrograms returns a cache of at most max programs; max below 1 reads as DefaultPrograms.
func NewPrograms(max int) *Programs {
	if max < 1 {
		max = DefaultPrograms
	}
	return &Programs{max: max, byText: make(map[string]compiled)}
}

// compile returns the program of an expression, whose text stands for one type alone: the key of a rate limit is a string
// and no rule's expression is.
func (p *Programs) compile(text string, want expr.Kind) (compiled, error) {
	p.mu.RLock()
	c, ok := p.byText[text]
	p.mu.RUnlock()
	if ok && c.kind == want {
		return c, nil
	}
	checked, err := expr.Check(text, want)
	if err != nil {
		return compiled{}, err
	}
	program, err := checked.Program()
	if err != nil {
		return compiled{}, err
	}
	c = compiled{kind: want, program: program, lists: checked.Lists, constant: checked.Constant, need: checked.Need()}
	if want == expr.Bool {
		c.direct = checked.Direct()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if other, ok := p.byText[text]; ok && other.kind == want {
		return other, nil // made by another goroutine meanwhile
	}
	if len(p.oldest) < p.max {
		p.oldest = append(p.oldest, text)
	} else {
		delete(p.byText, p.oldest[p.next])
		p.oldest[p.next] = text
		p.next = (p.next + 1) % p.max
	}
	p.byText[text] = c
	return c, nil
}
