package zone

import "time"

// Duration is a span of whole milliseconds. Its text form has the fewest units: 10s, 1m30s, 1h, 250ms.
type Duration time.Duration

// Size is a number of bytes. Its text form is the largest binary unit that divides it: 64KiB, 4MiB, 1500B.
type Size int64

// Percent is a share in hundredths of a percent, 0 to 10,000. Its text form is 1.00%.
type Percent uint16
