#!/usr/bin/env bash
# Puts what the tests of the embedded database need into .tools: Deno, and the
# packages that deno.lock pins. Does nothing where they are there.
set -euo pipefail
cd "$(dirname "$0")/.."
deno_version=2.9.6
deno=${PML_DENO:-}
if [ -z "$deno" ]; then
  # The package's own launcher is a script; the binary is in the platform's package.
  find_deno() { find .tools/node_modules/@deno -maxdepth 2 -type f -name deno -perm -u+x 2>/dev/null | head -n 1; }
  if [ -z "$(find_deno)" ]; then
    mkdir -p .tools
    npm install --no-save --no-audit --no-fund --prefix .tools "deno@$deno_version" >&2
  fi
  deno=$PWD/$(find_deno)
fi
exec go run ./scripts/setup-runtime "$deno" "${PML_TEST_RUNTIME:-.tools/runtime}"
