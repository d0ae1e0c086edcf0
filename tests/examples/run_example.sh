#!/usr/bin/env bash
# Runs one example program in a scratch folder, with the words of examples/NAME/test_arguments.txt if there are any, and
# compares what it prints with examples/NAME/expected.txt, if there is one. Skipped where a file that it reads is missing.
set -euo pipefail
name=$1
: "${TENON_SOURCE_DIR:?is set by CTest}" "${TENON_BINARY_DIR:?is set by CTest}"
source=$TENON_SOURCE_DIR/examples/$name
arguments=()
if [[ -e $source/test_arguments.txt ]]; then read -ra arguments <"$source/test_arguments.txt"; fi
for word in "${arguments[@]}"; do
  if [[ $word == /* && ! -e $word ]]; then
    echo "$word is not here; the package dataset-fashion-mnist has it"
    exit 77
  fi
done
scratch=$TENON_BINARY_DIR/examples/run/$name
rm -rf "$scratch"
mkdir -p "$scratch"
cd "$scratch"
"$TENON_BINARY_DIR/examples/$name" "${arguments[@]}" >output.txt && code=0 || code=$?
cat output.txt
if [[ $code != 0 ]]; then
  echo "$name ended with exit code $code"
  exit 1
fi
expected=$source/expected.txt
if [[ -e $expected ]]; then diff -u "$expected" output.txt; fi
