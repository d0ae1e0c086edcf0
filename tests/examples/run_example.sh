#!/usr/bin/env bash
# Runs one example program in a scratch folder and compares what it prints with examples/NAME/expected.txt, if there is one.
set -euo pipefail
name=$1
: "${TENON_SOURCE_DIR:?is set by CTest}" "${TENON_BINARY_DIR:?is set by CTest}"
scratch=$TENON_BINARY_DIR/examples/run/$name
rm -rf "$scratch"
mkdir -p "$scratch"
cd "$scratch"
"$TENON_BINARY_DIR/examples/$name" >output.txt && code=0 || code=$?
cat output.txt
if [[ $code != 0 ]]; then
  echo "$name ended with exit code $code"
  exit 1
fi
expected=$TENON_SOURCE_DIR/examples/$name/expected.txt
if [[ -e $expected ]]; then diff -u "$expected" output.txt; fi
