package nats

import "time"

// ConnectTimeout is connectTimeout.
const ConnectTimeout = connectTimeout

// SetAckWait has consumers deliver again after d what was not acknowledged. It is called before Run.
func (s *Session) SetAckWait(d time.Duration) { s.ackWait = d }
