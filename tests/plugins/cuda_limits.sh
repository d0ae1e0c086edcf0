#!/usr/bin/env bash
# What each CUDA kernel takes of a multiprocessor, by ptxas: registers, bytes that registers are spilled to, static shared
# memory. None may take more than its line of plugins/cuda/kernel_limits.txt allows, and each line there is needed.
set -euo pipefail
ptxas=$(command -v ptxas || true)
[[ -n $ptxas ]] || ptxas=$(ls "${CUDA_HOME:-/usr/local/cuda}/bin/ptxas" 2>/dev/null || true)
if [[ -z $ptxas ]]; then
  echo "ptxas is not in PATH"
  exit 77
fi
limits=$TENON_SOURCE_DIR/plugins/cuda/kernel_limits.txt
work=$TENON_BINARY_DIR/cuda_limits
rm -rf "$work" && mkdir -p "$work"

# used.txt: architecture, registers, bytes spilled, bytes of shared memory, kernel.
find "$TENON_BINARY_DIR/plugins/cuda/kernels" -name '*.cu.o' | sort | while read -r object; do
  for target in 75 90; do
    perl -0ne 'if (/\.target sm_'$target'/) { s/^.*?(?=\.version)//s; s/\0$//; print }' "$object" >"$work/kernels.ptx"
    [[ -s $work/kernels.ptx ]] || continue
    "$ptxas" -arch=sm_$target -v -o "$work/kernels.cubin" "$work/kernels.ptx" 2>&1 |
      awk -v target=$target '
        /Compiling entry function/ { split($0, part, "\047"); kernel = part[2]; next }
        /Function properties for/ { own = ($NF == kernel); next }
        /bytes spill stores/ { if (own) for (i = 1; i < NF; ++i) if ($(i + 2) == "spill" && $(i + 3) ~ /^stores/) spilled = $i; next }
        /Used [0-9]+ registers/ {
          registers = shared = 0
          for (i = 1; i < NF; ++i) {
            if ($(i + 1) ~ /^registers/) registers = $i
            if ($(i + 2) ~ /^smem/) shared = $i
          }
          print target, registers, spilled + 0, shared, kernel
          spilled = 0
        }'
  done
done >"$work/used.txt"

# The first line whose pattern a kernel's name has is its limit.
awk '
  NR == FNR { if ($0 !~ /^#/ && NF == 4) { ++n; pattern[n] = $1; registers[n] = $2; spilled[n] = $3; shared[n] = $4 } next }
  {
    ++kernels
    for (i = 1; i <= n && !(pattern[i] == "*" || index($5, pattern[i])); ++i) {}
    used[i] = 1
    if (i > n) { print $5 " has no line"; bad = 1 }
    else if ($2 > registers[i] || $3 > spilled[i] || $4 > shared[i]) {
      print "sm_" $1 " " $5 ": " $2 " registers, " $3 " bytes spilled, " $4 " of shared memory; allowed are " registers[i] ", " spilled[i] ", " shared[i]
      bad = 1
    }
  }
  END {
    for (i = 1; i <= n; ++i) if (!used[i]) { print "no kernel has the name of the line of " pattern[i]; bad = 1 }
    if (kernels < 500) { print "only " kernels + 0 " kernels were found"; bad = 1 }
    print kernels " kernels"
    exit bad
  }' "$limits" "$work/used.txt"
