// Package route moves messages from one session to another: filtered, transformed, in order, and settled with the source only when the target
// has confirmed.
//
// # Order
//
// Messages of one source topic go out in the order in which they came. A target that keeps the order of several unconfirmed messages by itself
// (MQTT, MQTT 5.0 §4.6) is sent up to in_flight at once; for others, those of one topic go one by one. A message that the target
// refuses for a time may arrive behind those that were under way with it: in_flight 1 rules that out.
//
// # Bounds
//
// Taken and not settled: in_flight. What comes beyond that waits, unsettled, for as long as the source's session allows; of QoS 0, which no
// source bounds, maxWaiting messages wait, and what is more is refused. Dead letters on their way count as in flight.
package route

// maxWaiting bounds messages of QoS 0 that wait, beside four times in_flight.
const maxWaiting = 1024

// maxHops is how many times a message may pass bridges.
const maxHops = 16
