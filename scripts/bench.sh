#!/usr/bin/env bash
# Prints the figures: medians and 99th percentiles of each part and of the whole
# gateway. BENCHTIME sets how long each is measured (default 3s).
set -euo pipefail
cd "$(dirname "$0")/.."
go=${GO:-go}
packages=(./internal/analysis ./internal/sandbox ./internal/store ./internal/learn ./internal/embedding ./internal/graph ./internal/search ./internal/execute ./internal/daemon)
for package in "${packages[@]}"; do
  echo "── $package"
  "$go" test -run '^$' -bench . -benchtime "${BENCHTIME:-3s}" -timeout 30m "$package" | grep -E '^Benchmark|^FAIL|^---'
done
