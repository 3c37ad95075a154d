package control

// rank orders roles; 0 is no role.
func (r Role) rank() int {
	switch r {
	case RoleViewer:
		return 1
	case RoleEditor:
		return 2
	case RoleAdmin:
		return 3
	}
	return 0
}

// may asks for a role in the principal's own workspace. Who has none there, and a node, sees nothing at all.
func (p Principal) may(r Role) error {
	if p.UserID == "" || p.Workspace == "" || p.Role.rank() == 0 {
		return ErrNoRoute
	}
	if p.Role.rank() < r.rank() {
		return ErrForbidden
	}
	return nil
}

// MayView asks for the least role, for what is the same in every workspace.
func (p Principal) MayView() error { return p.may(RoleViewer) }

// operates asks for the platform's role.
func (p Principal) operates() error {
	if p.UserID == "" || !p.Operator {
		return ErrNoRoute
	}
	return nil
}

// isNode asks for a node.
func (p Principal) isNode() error {
	if p.NodeID == "" {
		return ErrNoRoute
	}
	return nil
}

// actor is how the audit log names p.
func (p Principal) actor() string {
	switch {
	case p.NodeID != "":
		return "node " + p.NodeName
	case p.Email != "":
		return p.Email
	}
	return "system"
}
