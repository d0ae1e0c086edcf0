#!/usr/bin/env bash
# The CUDA plugin that is tested on the emulated device is made of the very objects of the one that is shipped, and no
# source of it knows that there is an emulation.
set -euo pipefail

if [[ ! -e $TENON_BINARY_DIR/build.ninja ]]; then
  echo "the objects of a target can be asked for with Ninja only"
  exit 77
fi

objects_of() { # objects_of PLUGIN: checksum and path of each object that is linked into it
  (cd "$TENON_BINARY_DIR" && ninja -t query "$1" | sed -n 's|^ *\(plugins/cuda/.*\.o\)$|\1|p' | sort | xargs sha256sum)
}

shipped=$(objects_of lib/tenon/plugins/cuda.so)
tested=$(objects_of tests/emulated_cuda/cuda.so)
if [[ -z $shipped || $shipped != "$tested" ]]; then
  printf 'shipped:\n%s\ntested:\n%s\n' "$shipped" "$tested"
  exit 1
fi
echo "$(wc -l <<<"$shipped") objects in both"

if grep -rniE 'emulat' --exclude=README.md "$TENON_SOURCE_DIR/plugins/cuda"; then
  echo "plugins/cuda mentions the emulation"
  exit 1
fi
