#!/usr/bin/env bash
# bench/gpu_check on the emulated device in place of a GPU: its parts that take seconds run, and the page has what they found.
set -euo pipefail
: "${TENON_SOURCE_DIR:?is set by CTest}" "${TENON_BINARY_DIR:?is set by CTest}"

if ! command -v python3 >/dev/null; then
  echo "bench/gpu_check needs python3"
  exit 77
fi
work=$TENON_BINARY_DIR/gpu_check_dry_run
rm -rf "$work"
mkdir -p "$work/path" "$work/tree/lib/tenon/plugins"
cat >"$work/path/nvidia-smi" <<'END'
#!/bin/sh
echo "Emulated GPU, 9.0, 8192 MiB, 580.00"
END
chmod +x "$work/path/nvidia-smi"
ln -s "$TENON_BINARY_DIR/bin" "$work/tree/bin"
ln -s "$TENON_BINARY_DIR/tests" "$work/tree/tests"
ln -s "$TENON_BINARY_DIR/tests/emulated_cuda/cuda.so" "$work/tree/lib/tenon/plugins/cuda.so"
export PATH=$work/path:$PATH TENON_PLUGIN_PATH=$TENON_BINARY_DIR/tests/emulated_cuda
export TENON_CUDA_LIBRARIES=$TENON_BINARY_DIR/tests/emulated_cuda/libraries

check() { # check PART: it is right, and the page names it and the machine
  "$TENON_SOURCE_DIR/bench/gpu_check" --build "$work/tree" --results "$work" --only "$1" | tee "$work/said"
  # shellcheck disable=SC2016 # the marks are of the page
  grep -q '^# Emulated GPU: what `bench/gpu_check` found' "$work/emulated-gpu.md"
  grep -q '^| compute capability | 9.0 |' "$work/emulated-gpu.md"
  grep -qE "^\\| $1[a-z, ]* \\| [0-9]+ \\| 0 \\| " "$work/emulated-gpu.md"
}

pages() { find "$TENON_SOURCE_DIR/bench/results/gpu" -printf '%p %t\n' | sort; }
before=$(pages)

refused() { # refused SENTENCE OPTION…: exit code 2 and that sentence, nothing run and no page
  local code=0 said
  said=$("$TENON_SOURCE_DIR/bench/gpu_check" --build "$work/tree" "${@:2}" 2>&1) || code=$?
  echo "exit code $code: $said"
  [[ $code == 2 ]]
  grep -qF -- "$1" <<<"$said"
}
refused "no part has 'nothing' in its name; they are: memory, streams, events; kernels, conformance;" --only nothing
refused "-5 is not a number of seconds above 0" --limit -5
refused "is no folder" --results "$work/path/nvidia-smi"
[[ ! -e $work/tree/gpu_check ]]

# A part that fails says so, and the page of a few parts does not replace that of all.
code=0
TENON_PLUGIN_PATH=/nowhere "$TENON_SOURCE_DIR/bench/gpu_check" --build "$work/tree" --only memcheck >"$work/said" || code=$?
cat "$work/said"
if command -v compute-sanitizer >/dev/null || [[ -x /usr/local/cuda/bin/compute-sanitizer ]]; then
  [[ $code == 1 ]]
  grep -qE '^memcheck: .*failed' "$work/said"
else
  grep -qE '^memcheck: not run: compute-sanitizer is not there' "$work/said"
fi
[[ -e $work/tree/gpu_check/emulated-gpu.md ]]
[[ $(pages) == "$before" ]]

check memory,
grep -qE '^memory, streams, events: [0-9]+ passed' "$work/said"
check ulps
# shellcheck disable=SC2016 # the marks are of the page
rows=$(grep -cE '^\| `[a-z0-9_]+` \|( [0-9.e+-]+ \([0-9.]+ %\) \|){4}$' "$work/emulated-gpu.md")
echo "$rows rows of ulps"
((rows > 70))
