#!/usr/bin/env bash
# Serves examples/mcp.json over HTTP on loopback, runs every example through it as
# an MCP client, and goes on serving until Ctrl-C. ONCE=1 ends after the examples.
set -euo pipefail
cd "$(dirname "$0")/.."

pml=bin/pml
listen=${LISTEN:-127.0.0.1:7420}
"$pml" setup

"$pml" serve --http "$listen" --config examples/mcp.json &
gateway=$!
trap 'kill "$gateway" 2>/dev/null || true; wait "$gateway" 2>/dev/null || true' EXIT

# The address accepts connections once the gateway owns the data folder.
until (exec 3<>"/dev/tcp/${listen%:*}/${listen##*:}") 2>/dev/null; do
  kill -0 "$gateway" || exit 1
  sleep 0.1
done
"$pml" servers --wait 300s
failed=0
for example in examples/*.ts; do
  echo
  echo "── $example"
  "$pml" run "$example" --url "http://$listen/mcp" || failed=1
done

echo
if [ -n "${ONCE:-}" ]; then
  exit "$failed"
fi
echo "serving MCP on http://$listen/mcp (Ctrl-C ends)"
trap - EXIT
wait "$gateway"
