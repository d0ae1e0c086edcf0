#!/usr/bin/env bash
# The mutation tool's own tests. Debian's module for clang belongs to the system's Python.
set -euo pipefail
python=/usr/bin/python3
if [[ ! -x $python ]]; then
  echo "there is no $python"
  exit 77
fi
exec "$python" -B "$TENON_SOURCE_DIR/tests/mutate/mutate_test.py"
