package barrier

import "fmt"

// Authority is on whose word a rollout is aborted or reverted. Make one with ByClaim, ByOperator or ByDeadman.
// Nobody but a coordinator with the claim commits or confirms.
type Authority struct {
	Token    Token    `json:"token,omitzero"`
	Operator string   `json:"operator,omitzero"`
	Member   MemberID `json:"member,omitzero"`
	Boot     BootID   `json:"boot,omitzero"`
}

// ByClaim is the coordinator whose claim is t.
func ByClaim(t Token) Authority { return Authority{Token: t} }

// ByOperator is a person, who may abort and revert and never commit or confirm.
func ByOperator(name string) Authority { return Authority{Operator: name} }

// ByDeadman is a member of the epoch whose deadman has run out, after D + grace.
func ByDeadman(m MemberID, boot BootID) Authority { return Authority{Member: m, Boot: boot} }

func (a Authority) String() string {
	switch {
	case a.Member != "":
		return "deadman of " + string(a.Member)
	case a.Operator != "":
		return "operator " + a.Operator
	default:
		return fmt.Sprintf("coordinator %d", a.Token)
	}
}

// check says whether a is exactly one of the three.
func (a Authority) check() error {
	claim, operator, deadman := a.Token != 0, a.Operator != "", a.Member != "" || a.Boot != ""
	n := 0
	for _, is := range []bool{claim, operator, deadman} {
		if is {
			n++
		}
	}
	switch {
	case n != 1:
		return fmt.Errorf("%w: authority is one of a claim, an operator and a deadman", ErrInvalid)
	case deadman && (checkID(string(a.Member)) != "" || checkID(string(a.Boot)) != ""):
		return fmt.Errorf("%w: a deadman has a member and a boot", ErrInvalid)
	case len(a.Operator) > MaxNameBytes:
		return fmt.Errorf("%w: operator's name has more than %d bytes", ErrInvalid, MaxNameBytes)
	case textProblem("", a.Operator) != "":
		return fmt.Errorf("%w: %s", ErrInvalid, textProblem("operator's name", a.Operator))
	}
	return nil
}
