// Package host assembles rooms into processes: the control plane that listens, and the edge node that serves.
package host
