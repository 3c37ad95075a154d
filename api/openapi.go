package api

import (
	"encoding/json"
	"fmt"
	"net/http"
	stdpath "path"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/guardyn-edge/guardyn/seal"
)

// describe prints the OpenAPI 3.1 document of routes: of all, or of those that exist for somebody who is not
// an operator. Schemas come from the types that the routes read and write.
func describe(routes []*route, operators bool) ([]byte, error) {
	reg := huma.NewMapRegistry("#/components/schemas/", schemaName)
	reg.RegisterTypeAlias(reflect.TypeFor[jsontext.Value](), reflect.TypeFor[map[string]any]())
	doc := &huma.OpenAPI{
		OpenAPI: "3.1.0",
		Info: &huma.Info{
			Title: "Guardyn control plane", Version: "1",
			Description: "Edit zones, publish them, and ask what is served. Errors are RFC 9457 problem documents. " +
				"JSON is read strictly: unknown and repeated members are errors.",
		},
		Components: &huma.Components{
			Schemas: reg,
			SecuritySchemes: map[string]*huma.SecurityScheme{
				"token": {Type: "http", Scheme: "bearer", Description: "A token of a user, or of a node for the node routes: gdn_ and 43 characters."},
			},
		},
	}
	for _, rt := range routes {
		if rt.access == forOperators && !operators {
			continue
		}
		doc.AddOperation(operation(rt, reg))
	}
	for _, s := range reg.Map() {
		// nil collections are written as empty ones; null is never sent and never read.
		notNull(s)
	}
	body, err := json.Marshal(doc)
	if err != nil {
		return nil, fmt.Errorf("openapi document: %w", err)
	}
	return append(body, '\n'), nil
}

func notNull(s *huma.Schema) {
	for name, p := range s.Properties {
		if p.Type == huma.TypeArray || p.Type == huma.TypeObject || !slices.Contains(s.Required, name) {
			p.Nullable = false
		}
		notNull(p)
	}
	if s.Items != nil {
		notNull(s.Items)
	}
}

// schemaName is the type's name, with its package's where two packages have it.
func schemaName(t reflect.Type, hint string) string {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	name := huma.DefaultSchemaNamer(t, hint)
	if p := stdpath.Base(t.PkgPath()); t.Name() != "" && p != "api" && p != "." {
		return strings.ToUpper(p[:1]) + p[1:] + name
	}
	return name
}

func operation(rt *route, reg huma.Registry) *huma.Operation {
	op := &huma.Operation{
		Method: rt.method, Path: rt.pattern, Summary: rt.summary, OperationID: operationID(rt),
		Responses: map[string]*huma.Response{},
	}
	switch rt.access {
	case forUsers:
		op.Description = "For users"
		if rt.role != "" {
			op.Description += " whose role in the workspace is " + rt.role + " or more"
		}
		op.Description += "."
	case forOperators:
		op.Description = "For operators; for anybody else this path does not exist."
	case forNodes:
		op.Description = "For nodes, with the node's own token."
	}
	if rt.access != public {
		op.Security = []map[string][]string{{"token": {}}}
	}
	for s := range strings.SplitSeq(rt.pattern, "/") {
		if strings.HasPrefix(s, "{") {
			name := strings.Trim(s, "{}")
			op.Parameters = append(op.Parameters, &huma.Param{
				Name: name, In: "path", Required: true, Description: pathParameters()[name], Schema: &huma.Schema{Type: huma.TypeString},
			})
		}
	}
	known := queryParameters()
	for _, name := range rt.query {
		p := known[name]
		op.Parameters = append(op.Parameters, &huma.Param{
			Name: name, In: "query", Description: p.description, Schema: &p.schema, Required: name == "have" || name == "digest" || name == "member" || name == "topic",
		})
	}
	headers := rt.headers
	if rt.conditional {
		headers = append(slices.Clone(headers), "If-Match")
		if rt.method != http.MethodDelete {
			headers = append(headers, "If-None-Match")
		}
	}
	for _, name := range headers {
		op.Parameters = append(op.Parameters, &huma.Param{
			Name: name, In: "header", Description: headerParameters()[name], Schema: &huma.Schema{Type: huma.TypeString},
		})
	}
	switch {
	case rt.in != nil:
		op.RequestBody = &huma.RequestBody{Required: true, Content: jsonContent("application/json", rt.in, reg)}
	case rt.inType != "":
		op.RequestBody = &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{rt.inType: {Schema: &huma.Schema{Type: huma.TypeString}}}}
	}
	if op.RequestBody != nil {
		op.RequestBody.Description = fmt.Sprintf("At most %d bytes.", rt.limit)
	}
	describeResponses(op, rt, reg)
	return op
}

func describeResponses(op *huma.Operation, rt *route, reg huma.Registry) {
	ok := &huma.Response{Description: http.StatusText(rt.status)}
	switch {
	case rt.out != nil:
		ok.Content = jsonContent("application/json", rt.out, reg)
	case rt.outType != "" && rt.pattern == "/openapi.json":
		ok.Content = map[string]*huma.MediaType{rt.outType: {Schema: &huma.Schema{Type: huma.TypeObject}}}
	case rt.outType != "":
		ok.Content = map[string]*huma.MediaType{rt.outType: {Schema: &huma.Schema{Type: huma.TypeString}}}
	}
	if rt.conditional {
		ok.Headers = map[string]*huma.Param{"ETag": {Description: "The object's revision.", Schema: &huma.Schema{Type: huma.TypeString}}}
	}
	op.Responses[strconv.Itoa(rt.status)] = ok
	if rt.accepted {
		op.Responses["202"] = &huma.Response{
			Description: "It was put to the cohort: rollout is what to follow. Nothing of it is live yet.", Content: ok.Content,
		}
	}
	if rt.pattern == candidatePath {
		ok.Headers = envelopeHeaders()
		for _, name := range []string{seal.HeaderActivation, seal.HeaderGeneration, seal.HeaderFreshness} {
			delete(ok.Headers, name)
		}
		ok.Headers[headerMargin] = &huma.Param{
			Description: "By how much the share of 5xx answers may rise on trial, in hundredths of a percentage point.", Schema: &huma.Schema{Type: huma.TypeString},
		}
	}
	if rt.pattern == watchPath {
		op.Responses["204"] = &huma.Response{Description: "Nothing has changed."}
	}
	if rt.foreign {
		op.Responses["default"] = &huma.Response{Description: "A problem document whose code is one of the barrier's; it may carry the rollout."}
		return
	}
	if rt.pattern == pollPath {
		ok.Headers = envelopeHeaders()
		ok.Headers[headerPurges] = &huma.Param{
			Description: "The end of the log of purges, when the request has this header.", Schema: &huma.Schema{Type: huma.TypeString},
		}
		op.Responses["204"] = &huma.Response{
			Description: "The node is current. The version header is absent when nothing was published yet.",
			Headers: map[string]*huma.Param{
				seal.HeaderVersion:    ok.Headers[seal.HeaderVersion],
				seal.HeaderGeneration: ok.Headers[seal.HeaderGeneration],
				seal.HeaderFreshness:  ok.Headers[seal.HeaderFreshness],
				headerPurges:          ok.Headers[headerPurges],
			},
		}
	}
	if rt.access != public {
		op.Responses["default"] = &huma.Response{
			Description: "A problem document.", Content: jsonContent("application/problem+json", reflect.TypeFor[Error](), reg),
		}
	}
}

func jsonContent(media string, t reflect.Type, reg huma.Registry) map[string]*huma.MediaType {
	return map[string]*huma.MediaType{media: {Schema: reg.Schema(t, true, "")}}
}

// operationID is the method and the path's words: getZonesZoneRecords.
func operationID(rt *route) string {
	var b strings.Builder
	b.WriteString(strings.ToLower(rt.method))
	for _, s := range strings.FieldsFunc(strings.TrimPrefix(rt.pattern, "/v1"), func(r rune) bool { return strings.ContainsRune("/{}-.", r) }) {
		b.WriteString(strings.ToUpper(s[:1]) + s[1:])
	}
	return b.String()
}

// pathParameters describes every parameter of a path.
func pathParameters() map[string]string {
	return map[string]string{
		"zone":      "The zone's name or id.",
		"id":        "The id.",
		"phase":     "The phase at which the rules run.",
		"name":      "The object's name.",
		"host":      "The host name.",
		"workspace": "The workspace's name or id.",
		"email":     "The user's address.",
		"node":      "The node's name or id.",
	}
}

// headerParameters describes every request header that a route takes.
func headerParameters() map[string]string {
	return map[string]string{
		"If-Match":        "The ETag that the object must still have, else 412.",
		"If-None-Match":   "With *, the object must not exist, else 412.",
		"Idempotency-Key": "1 to 128 characters that name this request: sent again, it gets the first answer.",
		headerTrustedKeys: "The ids of the keys that the node trusts, separated by commas.",
		headerPurges:      "The place in the log of purges up to which the node has done all of them, or none: the poll is answered when the log goes on. A node that caches nothing does not send it.",
		headerDictionary:  "The SHA-256 of the payload that the node holds (RFC 9842). With Accept-Encoding: dcz the answer may be coded with it.",
	}
}

func envelopeHeaders() map[string]*huma.Param {
	out := map[string]*huma.Param{}
	for name, d := range map[string]string{
		seal.HeaderVersion:    "The live version.",
		seal.HeaderHash:       "The content hash of the snapshot.",
		seal.HeaderSignature:  "Ed25519 over the payload, in hex.",
		seal.HeaderKeyID:      "The id of the signing key.",
		seal.HeaderActivation: "The signed activation.",
		seal.HeaderGeneration: "The live generation.",
		seal.HeaderFreshness:  "The signed freshness, when a nonce was sent.",
		seal.HeaderCoding:     "With Content-Encoding: dcz: Ed25519 over prefix, dictionary and body, in hex.",
	} {
		out[name] = &huma.Param{Description: d, Schema: &huma.Schema{Type: huma.TypeString}}
	}
	return out
}
