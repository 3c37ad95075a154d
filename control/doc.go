// Package control is the control plane's decisions: editing rows, building, planning, applying, history,
// tenancy, nodes and audit. It declares the ports that it needs and knows neither SQL nor HTTP.
package control
