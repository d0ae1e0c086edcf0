#!/usr/bin/env bash
# Without a GPU, bench/gpu_check says in one sentence what is missing, ends with exit code 2, and writes nothing.
set -euo pipefail
: "${TENON_SOURCE_DIR:?is set by CTest}"

if ! command -v python3 >/dev/null; then
  echo "bench/gpu_check needs python3"
  exit 77
fi
if command -v nvidia-smi >/dev/null && nvidia-smi >/dev/null 2>&1; then
  echo "a GPU is there, which bench/gpu_check would not refuse"
  exit 77
fi

pages() { find "$TENON_SOURCE_DIR/bench/results" -path '*/gpu/*' -printf '%p %t\n' | sort; }

before=$(pages) code=0
said=$("$TENON_SOURCE_DIR/bench/gpu_check" 2>&1) || code=$?
echo "exit code $code: $said"
[[ $code == 2 ]]
[[ $(wc -l <<<"$said") == 1 ]]
grep -qE '^gpu_check: (this machine has no NVIDIA GPU|no NVIDIA GPU can be used here)' <<<"$said"
[[ $(pages) == "$before" ]]
