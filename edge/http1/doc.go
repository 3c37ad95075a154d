// Package http1 serves HTTP/1.1 to clients: it reads requests so that no two readers can take them for different ones, and sends
// answers with one write where it can.
//
// It takes the place of net/http's server on the connections of the data plane, and keeps its types: a handler gets an [http.Request],
// and a [Response] that is an [http.ResponseWriter]. A connection is one goroutine. Nothing reads from it while a request is handled,
// unless the handler has the client attended ([Conn.Attend]); there is no timer for each connection, but one goroutine that looks at
// all of them.
//
// # What is refused
//
// Beyond the grammar of RFC 9112, whose leniencies two servers may use differently (§11.2): a line ended by LF alone, CR within a line,
// a continued line (obs-fold, §5.2), white space before the colon (§5.1), a control character in a field's value (RFC 9110 §5.5), Host
// missing under HTTP/1.1 or given twice (§3.2), Content-Length of more than one field or other than digits, or beside
// Transfer-Encoding, and Transfer-Encoding twice, other than chunked, or below HTTP/1.1 (§6.1, §6.3); of a chunked body a size that is
// not 1 to 16 hexadecimal digits, a line before a chunk longer than 256 octets, a chunk that is not followed by CRLF, and a trailer
// section of more than 4,000 octets (§7.1), framing that is far more than what it frames, and more than 256 fields.
//
// The path and query of a target are left to the handler, in [http.Request.RequestURI]; [http.Request.URL] has what an absolute form
// (RFC 9112 §3.2.2) says, and nothing of other forms.
//
// A head that is refused is answered in its turn among pipelined requests, and is the connection's last: 400, 417, 431 or 505. A body
// that is refused ends in an error, which the handler answers.
//
// # What comes after an answer
//
// An answer is sent when it is there, whether or not the request's body has come. What is left of the body is read and thrown away
// then, up to 256 KiB within Config.Linger; the connection closes where more is left, or where the client was to be told to send it
// (Expect, RFC 9110 §10.1.1) and was not. Before it closes with something unread it ends its own side and reads on for as long, lest the
// client lose the answer to a reset (RFC 9112 §9.6).
package http1
