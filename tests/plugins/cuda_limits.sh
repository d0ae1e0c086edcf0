#!/usr/bin/env bash
# What each CUDA kernel takes of a multiprocessor, by ptxas: registers, bytes that registers are spilled to, static shared
# memory. None may take more than its line of plugins/cuda/kernel_limits.txt allows, and each line there is needed: with
# TENON_TEST_DEVICES=all (./dev test --full). Without it of layers and products alone, whose registers are what limits
# them, and of the code for sm_90, which has all kernels.
set -euo pipefail
ptxas=$(command -v ptxas || true)
[[ -n $ptxas ]] || ptxas=$(ls "${CUDA_HOME:-/usr/local/cuda}/bin/ptxas" 2>/dev/null || true)
if [[ -z $ptxas ]]; then
  echo "ptxas is not in PATH"
  exit 77
fi
limits=$TENON_SOURCE_DIR/plugins/cuda/kernel_limits.txt
work=$TENON_BINARY_DIR/cuda_limits
mkdir -p "$work"
targets=90 all=0 folders=(linalg nn quantized)
if [[ ${TENON_TEST_DEVICES:-} == all ]]; then targets='75 90' all=1 folders=(.); fi

# What ptxas says of the PTX in $1 for sm_$2: architecture, registers, bytes spilled, bytes of shared memory, kernel.
used_by() {
  "$ptxas" -arch="sm_$2" -v -o "$work/kernels.cubin" "$1" 2>&1 |
    awk -v target="$2" '
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
}

# ptxas takes more than a minute for all of them, so what it said of an object is kept under the target and the object's
# digest, which is that of ptxas and of this script, too.
tool=$({ "$ptxas" --version && cat "$0"; } | sha256sum)
: >"$work/used.txt"
: >"$work/needed"
while read -r object; do
  digest=$({ echo "$tool" && cat "$object"; } | sha256sum | cut -d ' ' -f 1)
  for target in 75 90; do echo "$digest.$target.used" >>"$work/needed"; done
  for target in $targets; do
    kept=$digest.$target.used
    if [[ ! -e $work/$kept ]]; then
      perl -0ne 'if (/\.target sm_'"$target"'/) { s/^.*?(?=\.version)//s; s/\0$//; print }' "$object" >"$work/kernels.ptx"
      if [[ -s $work/kernels.ptx ]]; then used_by "$work/kernels.ptx" "$target"; fi >"$work/part"
      mv "$work/part" "$work/$kept"
    fi
    cat "$work/$kept" >>"$work/used.txt"
  done
done < <(cd "$TENON_BINARY_DIR/plugins/cuda/kernels" && find "${folders[@]/#/$PWD/}" -name '*.cu.o' | sort)
if [[ $all == 1 ]]; then # what was said of objects that are gone
  find "$work" -name '*.used' -printf '%f\n' | { grep -vxFf "$work/needed" || true; } | while read -r old; do rm -f "$work/$old"; done
fi

# The first line whose pattern a kernel's name has is its limit.
awk -v all="$all" '
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
    for (i = 1; i <= n && all; ++i) if (!used[i]) { print "no kernel has the name of the line of " pattern[i]; bad = 1 }
    if (kernels < (all ? 500 : 100)) { print "only " kernels + 0 " kernels were found"; bad = 1 }
    print kernels " kernels"
    exit bad
  }' "$limits" "$work/used.txt"
