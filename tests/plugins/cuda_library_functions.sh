#!/usr/bin/env bash
# The functions that the CUDA plugin looks for in NVIDIA's libraries are in the libraries of the toolkit, and in the
# stand-ins that tests use instead.
set -euo pipefail

toolkit=$(dirname "$(readlink -f "$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)")")/..
missing=0 checked=0

check() { # check SOURCE LIBRARY: every function named in SOURCE is exported by LIBRARY
  local name exported
  exported=$(nm -D --defined-only "$2" | awk '{ sub(/@.*/, "", $3); print $3 }')
  while read -r name; do
    checked=$((checked + 1))
    grep -qxF "$name" <<<"$exported" && continue
    echo "$2 has no $name"
    missing=1
  done < <(sed -n -E 's/.*(library\.find|look_up)\(.*"(cu[A-Za-z0-9_]*)"\).*/\2/p' "$1")
}

for pair in kernels/libraries/cublaslt:libcublasLt.so.13 kernels/libraries/cudnn:libcudnn.so.9 activity_trace:libcupti.so.13; do
  source=$TENON_SOURCE_DIR/plugins/cuda/${pair%%:*}.cpp
  for library in "$TENON_BINARY_DIR/tests/emulated_cuda/libraries/${pair##*:}" "$toolkit/lib64/${pair##*:}"; do
    if [[ -e $library ]]; then check "$source" "$library"; fi
  done
done
if ((checked == 0)); then
  echo "there are neither libraries nor stand-ins"
  exit 77
fi
echo "$checked functions looked up"
exit $missing
