package jobs_test

import (
	"os"
	"testing"

	"github.com/pml-run/pml/internal/store/storetest"
)

func TestMain(m *testing.M) { os.Exit(storetest.Main(m)) }
