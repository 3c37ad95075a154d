// Package mqtt is the session with an MQTT broker, of version 5.0 or 3.1.1, over TCP, TLS or WebSocket: what it takes is acknowledged
// when its routes have settled it, in the order in which it came, and what it sends stays with it, in order, until the broker confirms.
//
// The packets are those of the Eclipse Paho libraries; the session is our own. Paho's clients tell a caller of a confirmation only by
// blocking one goroutine for each message, which gives up the order of sending, and the two versions have clients that differ
// in what they keep over a lost connection. PUBLISH and its acknowledgements, which are all of the load, are read and written
// here: Paho's keeps one of several subscription identifiers, and copies each payload three times.
//
// # What is bounded
//
// Taken and not settled: with MQTT 5 by the receive maximum that CONNECT announces, the sum of the routes' in_flight (MQTT 5.0 §3.1.2.11.3).
// Version 3.1.1 has none: there, and for QoS 0, the session stops reading at twice that sum, unless routes also send by it, whose
// confirmations it would not see; then it is 65,535 by the packet identifiers, and QoS 0 by what routes queue. Sent and not
// confirmed: by the in_flight of the routes that send by it, and on the wire by the broker's receive maximum. One packet: session.MaxMessageBytes.
// Goroutines: three for each connection.
package mqtt

import "time"

// Times that a connection keeps to.
const (
	connectTimeout    = 10 * time.Second // to dial, and to be told yes or no
	writeTimeout      = 30 * time.Second // for the broker to take what is written
	disconnectTimeout = time.Second      // for the last words
	subscribeTimeout  = 10 * time.Second // for the broker's answer to an UNSUBSCRIBE
)
