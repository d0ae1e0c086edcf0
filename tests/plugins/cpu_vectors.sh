#!/usr/bin/env bash
# Every pointwise kernel for AVX2 and AVX-512 that calls no function works on vectors: one line that the compiler cannot turn
# into vectors makes a row ten times as slow, and no value shows it.
set -euo pipefail
plugin=$TENON_BINARY_DIR/lib/tenon/plugins/cpu.so
if ! objdump -f "$plugin" 2>/dev/null | grep -q 'x86-64'; then
  echo "objdump is not in PATH, or this is no x86-64"
  exit 77
fi

# Bodies of kernels: a name, "calls", "vectors", both or nothing. Tail calls and jumps to another function are calls.
objdump -dC --no-show-raw-insn "$plugin" | awk '
  function told() { if (body) print name "\t" (calls ? " calls" : "") (vectors ? " vectors" : "") }
  /^[0-9a-f]+ <.*>:$/ {
    told()
    name = $0
    sub(/^[0-9a-f]+ </, "", name)
    sub(/>:$/, "", name)
    sub(/\(char\* const\*.*/, "", name)
    body = name ~ /^void tenon::cpu::(avx2|avx512)::.*_body</
    calls = vectors = 0
    next
  }
  !body { next }
  / %[yz]mm|,%[yz]mm|[({]%[yz]mm/ { vectors = 1 }
  /(call|jmp) +[0-9a-f]+ </ { if (index($0, name) == 0) calls = 1 }
  END { told() }' >"$TENON_BINARY_DIR/cpu_vectors.txt"

bodies=$(wc -l <"$TENON_BINARY_DIR/cpu_vectors.txt")
if ((bodies < 400)); then
  echo "found only $bodies bodies of kernels in $plugin: is its name table gone?"
  exit 1
fi
if awk -F '\t' '$2 == "" { print "  " $1; found = 1 } END { exit !found }' "$TENON_BINARY_DIR/cpu_vectors.txt"; then
  echo "these kernels take one element at a time: ask the compiler why with -fopt-info-vec-missed"
  exit 1
fi
echo "$bodies bodies, $(grep -c vectors "$TENON_BINARY_DIR/cpu_vectors.txt") on vectors"
