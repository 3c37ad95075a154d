package dns

import (
	"encoding/binary"
	"strconv"

	mdns "github.com/miekg/dns"

	"github.com/guardyn-edge/guardyn/edge"
	"github.com/guardyn-edge/guardyn/edge/rrset"
)

// versionSet packs what v is as one TXT record of class CHAOS with TTL 0.
func versionSet(v *edge.View) rrset.Set {
	var text []byte
	for _, s := range []string{
		"version=" + strconv.FormatUint(v.Version(), 10),
		"generation=" + strconv.FormatUint(v.Generation(), 10),
		"content_hash=" + v.ContentHash(),
	} {
		text = append(append(text, byte(len(s))), s...)
	}
	data := []byte{0xc0, headerLen, 0, byte(mdns.TypeTXT), 0, byte(mdns.ClassCHAOS), 0, 0, 0, 0}
	data = binary.BigEndian.AppendUint16(data, uint16(len(text)))
	return rrset.Set{Data: append(data, text...), Count: 1}
}
