package host

import "github.com/guardyn-edge/guardyn/bridge/document"

// Refuses tells whether a member that runs a document refuses to vote for another.
func Refuses(running, next *document.Document) bool { return classify(running, next).Refused }
