#!/usr/bin/env bash
# The line of each test says its name: no parameter is printed as bytes or as an address, which no reader knows and which
# differs in each build. A type of parameters has a PrintTo().
set -euo pipefail
: "${TENON_BINARY_DIR:?is set by CTest}" "${CMAKE_COMMAND:?is set by CTest}"
names=$("$(dirname "$CMAKE_COMMAND")/ctest" --test-dir "$TENON_BINARY_DIR" -N)
grep -q 'Total Tests: [1-9]' <<<"$names"
if unreadable=$(grep -E 'byte object <|0x[0-9a-fA-F]{6}' <<<"$names"); then
  printf 'These tests are named by the bytes of a parameter; give its type a PrintTo():\n%s\n' "$unreadable"
  exit 1
fi
