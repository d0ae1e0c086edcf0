#!/usr/bin/env bash
# An example written for Tenon's front end is a libtorch program but for the namespace and the include: with those two
# changed it compiles against compat/torch/torch.h.
set -euo pipefail
name=$1
: "${TENON_SOURCE_DIR:?is set by CTest}" "${TENON_BINARY_DIR:?is set by CTest}" "${CXX:?is set by CTest}"
scratch=$TENON_BINARY_DIR/examples/compat
mkdir -p "$scratch"
sed -e 's/tenon::/torch::/g' -e 's|<tenon/tenon.h>|<torch/torch.h>|' "$TENON_SOURCE_DIR/examples/$name/main.cpp" >"$scratch/$name.cpp"
if grep -n 'tenon' "$scratch/$name.cpp"; then
  echo "$name uses more of Tenon than libtorch has"
  exit 1
fi
"$CXX" -std=c++20 -fsyntax-only -I "$TENON_SOURCE_DIR/compat" -I "$TENON_SOURCE_DIR/framework" "$scratch/$name.cpp"
