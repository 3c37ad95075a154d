package sqlstore_test

import (
	"testing"

	"github.com/guardyn-edge/guardyn/internal/testpg"
)

func TestMain(m *testing.M) { testpg.Main(m) }
