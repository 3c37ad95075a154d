// Package web is the node's HTTP proxy: it answers each request from the view that it takes once, by the
// zone's rules, pools and records.
//
// # Which origin serves
//
// The first of these that there is:
//
//  1. the pool that a route rule of the origin phase names;
//  2. the load balancer of the host, by its exact name, then by the nearest wildcard: of its pools in order the
//     first with an enabled origin, then its fallback;
//  3. the zone's pool named "default", for proxied names;
//  4. the content of the host's proxied record: its addresses on port 80, or its CNAME target, resolved when the
//     connection is opened.
//
// A function that a rule of the function phase names answers in place of all of them.
//
// A host without any of them answers 404, as does a host of no zone.
//
// # What ends here
//
// Fields that Connection lists, in any case and on any line, and the other hop-by-hop fields go in both
// directions, from interim answers and trailers too; WebSocket is the only upgrade. Trailers of a request end
// here with their announcement (RFC 9110 §6.5.1); those of an answer pass, but for fields that frame a message
// or are the node's.
//
// Clients are served by edge/http1, and by net/http where they speak HTTP/2.
//
// Requests go out by HTTP/1.1, or by HTTP/2 to origins of scheme h2c and for gRPC to those of https that agree. An
// answer that two readers may understand differently is refused, more strictly than net/http would.
//
// An answer that the origin breaks off reaches the client as far as it came, status and fields at least, and
// then the connection closes before its length or its last chunk. It counts as an origin's error and is told
// in the access log. 502 is for origins that did not bring a whole head.
//
// # Bounds
//
// See [Config] for what is bounded and by how much. Whatever comes over a bound is answered 503 or waits in
// the kernel's accept queue; nothing grows.
package web
