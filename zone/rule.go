package zone

// Phase names a point in the handling of an HTTP request at which a ruleset runs. The order of [Phases]
// is the order of execution.
type Phase string

// The phases, in the order in which a request passes them.
const (
	PhaseRedirect          Phase = "redirect"
	PhaseTransformRequest  Phase = "transform_request"
	PhaseCustom            Phase = "custom"
	PhaseRatelimit         Phase = "ratelimit"
	PhaseCache             Phase = "cache"
	PhaseOrigin            Phase = "origin"
	PhaseFunction          Phase = "function"
	PhaseTransformResponse Phase = "transform_response"
)

// Action is what a matching rule does. Which actions a phase allows is documented on [Rule.Normalize].
type Action string

// The actions.
const (
	ActionRedirect     Action = "redirect"
	ActionRewrite      Action = "rewrite"
	ActionSetHeader    Action = "set_header"
	ActionRemoveHeader Action = "remove_header"
	ActionBlock        Action = "block"
	ActionAllow        Action = "allow"
	ActionSkip         Action = "skip"
	ActionLog          Action = "log"
	ActionRateLimit    Action = "rate_limit"
	ActionCache        Action = "cache"
	ActionRoute        Action = "route"
	ActionFunction     Action = "function"
)

// Rule is one rule of a ruleset; rules of a phase run in their order.
type Rule struct {
	// Description is for people. It is kept in rows and never reaches a snapshot.
	Description string `json:"description,omitempty"`
	// Expression is a CEL expression of type bool, printed from its syntax tree. Empty is malformed; a
	// rule for every request says true.
	Expression string     `json:"expression"`
	Action     Action     `json:"action"`
	Parameters Parameters `json:"parameters,omitzero"`
	// Enabled is true when absent. A disabled rule stays in rows and never reaches a snapshot.
	Enabled *bool `json:"enabled,omitempty"`
}

// Parameters is the union of what actions take. A member that the rule's action does not take is
// malformed; so is a missing one that it needs.
type Parameters struct {
	// Status: redirect 301, 302 (default), 303, 307 or 308; block 400 to 599, default 403; rate_limit
	// 400 to 599, default 429.
	Status int `json:"status,omitzero"`
	// Body and ContentType of the answer of block (and rate_limit). At most 64 KiB. ContentType defaults to
	// text/plain; charset=utf-8.
	Body        string `json:"body,omitempty"`
	ContentType string `json:"content_type,omitempty"`
	// Location of a redirect: an absolute URL or an absolute path.
	Location string `json:"location,omitempty"`
	// PreserveQuery appends the request's query to Location.
	PreserveQuery bool `json:"preserve_query,omitzero"`
	// Path and Query replace the request's (rewrite).
	Path  string  `json:"path,omitempty"`
	Query *string `json:"query,omitzero"`
	// Name and Value of a header (set_header, remove_header).
	Name  string `json:"name,omitempty"`
	Value string `json:"value,omitempty"`
	// Phases that skip passes over for this request; empty means the rest of this phase.
	Phases []Phase `json:"phases,omitempty"`
	// Key, Period and Limit of rate_limit: a CEL expression of type string (default: the client's address),
	// a whole number of seconds, and how many requests a period admits.
	Key    string   `json:"key,omitempty"`
	Period Duration `json:"period,omitzero"`
	Limit  uint32   `json:"limit,omitzero"`
	// TTL, StaleWhileRevalidate, StaleIfError and Bypass are the settings of cache.
	TTL                  Duration `json:"ttl,omitzero"`
	StaleWhileRevalidate Duration `json:"stale_while_revalidate,omitzero"`
	StaleIfError         Duration `json:"stale_if_error,omitzero"`
	Bypass               bool     `json:"bypass,omitzero"`
	// Pool that route sends the request to, by name in the same zone.
	Pool string `json:"pool,omitempty"`
	// Function that function calls, by name in the same zone.
	Function string `json:"function,omitempty"`
}
