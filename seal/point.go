package seal

import (
	"errors"
	"math/big"
	"slices"
)

// checkPoint judges the encoding of a public key (RFC 8032 §5.1.3): y is below 2^255-19, the point is on
// the curve, x = 0 has sign 0, and eight times the point is not the identity. A key of small order would
// verify signatures that nobody made.
func checkPoint(enc [32]byte) error {
	sign := enc[31] >> 7
	enc[31] &= 0x7f
	be := slices.Clone(enc[:])
	slices.Reverse(be)
	y := new(big.Int).SetBytes(be)
	p := new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), 255), big.NewInt(19))
	if y.Cmp(p) >= 0 {
		return errors.New("it is not the canonical encoding of a point")
	}
	// -x² + y² = 1 + d·x²·y² with d = -121665/121666, so x² = (y²-1) / (d·y²+1).
	one := big.NewInt(1)
	d := new(big.Int).ModInverse(big.NewInt(121666), p)
	d.Mul(d, big.NewInt(-121665)).Mod(d, p)
	y2 := new(big.Int).Mul(y, y)
	u := new(big.Int).Sub(y2, one)
	v := new(big.Int).Mul(d, y2)
	v.Add(v, one).Mod(v, p)
	x2 := u.Mul(u, v.ModInverse(v, p))
	x2.Mod(x2, p)
	x := new(big.Int).ModSqrt(x2, p)
	if x == nil {
		return errors.New("it is not a point of the curve")
	}
	if x.Sign() == 0 && sign == 1 {
		return errors.New("it is not the canonical encoding of a point")
	}
	// Doubling three times gives the identity (0, 1) exactly for the eight points of small order. The sign of
	// x does not matter to that.
	for range 3 {
		x, y = double(x, y, d, p)
	}
	if x.Sign() == 0 && y.Cmp(one) == 0 {
		return errors.New("it is a point of small order, for which anybody can make signatures")
	}
	return nil
}

// double adds a point to itself: x' = 2xy/(1+dx²y²), y' = (y²+x²)/(1-dx²y²).
func double(x, y, d, p *big.Int) (*big.Int, *big.Int) {
	one := big.NewInt(1)
	xy := new(big.Int).Mul(x, y)
	t := new(big.Int).Mul(xy, xy)
	t.Mul(t, d).Mod(t, p)
	quotient := func(a, b *big.Int) *big.Int {
		b.Mod(b, p)
		a.Mul(a, b.ModInverse(b, p))
		return a.Mod(a, p)
	}
	sum := new(big.Int).Add(new(big.Int).Mul(x, x), new(big.Int).Mul(y, y))
	return quotient(new(big.Int).Lsh(xy, 1), new(big.Int).Add(one, t)),
		quotient(sum, new(big.Int).Sub(one, t))
}
