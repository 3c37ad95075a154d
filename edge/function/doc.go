// Package function runs the WebAssembly functions of zones: each request in an instance of its own, within limits that hold.
//
// A module is a command of WASI preview 1 in the WAGI convention. It gets the request as CGI has it (RFC 3875): variables in its
// environment, the body on standard input; and answers on standard output with header lines, an empty line and a body. It has
// no files, no sockets, one argument, which is its name, a clock of one millisecond and random bytes.
//
// # How a call is stopped
//
// A module is rewritten before it is compiled (see package metering), so that it calls its host every some tens of microseconds of
// computing, wherever it is, and every other call of the host is short. There the time is looked at, other goroutines get the
// processor, and the collector of garbage finds the call stopped. Waiting for the client's body or for a time to pass ends with the
// call's time.
//
// # How calls share a node
//
// At most [Config].Calls are under way, and [Config].CallsPerFunction of one function; others wait in line by function, and beyond
// [Config].Waiting and [Config].WaitingPerFunction they are refused. Of those under way as many compute at once as there are
// processors, and those that have computed for longer than [lightTime] one fewer, in turns of [slice] by function: a function that
// computes without end has one processor less than there are, and gives it to who has not computed yet.
//
// Memory is counted while it is held, that of a body that is waited for and of an answer until it is closed too: a call gets no more when
// [Config].Memory is reached.
//
// # What is kept
//
// Machine code is shared by all functions with the same module and bound of memory, for as long as a view has one, and kept in a
// directory for the next start.
package function
