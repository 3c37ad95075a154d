package expr

// globMatch reports whether the whole of s matches pattern: * any octets, ? one octet, \ takes the next
// octet as itself (a \ at the end is itself). Time is at most len(s) times len(pattern), memory constant.
func globMatch(s, pattern string) bool {
	i, p := 0, 0
	star, mark := -1, 0 // where to go on from when what follows the last * fails
	for i < len(s) {
		if p < len(pattern) {
			switch c := pattern[p]; {
			case c == '*':
				star, mark = p, i
				p++
				continue
			case c == '?':
				i, p = i+1, p+1
				continue
			default:
				n := 1
				if c == '\\' && p+1 < len(pattern) {
					c, n = pattern[p+1], 2
				}
				if c == s[i] {
					i, p = i+1, p+n
					continue
				}
			}
		}
		if star < 0 {
			return false
		}
		mark++
		i, p = mark, star+1
	}
	for p < len(pattern) && pattern[p] == '*' {
		p++
	}
	return p == len(pattern)
}
