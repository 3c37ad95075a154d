// Package api is the control plane's HTTP interface: the messages, the server that answers them from a
// control.Service, and the clients that people's tools and the fleet's nodes use.
package api
