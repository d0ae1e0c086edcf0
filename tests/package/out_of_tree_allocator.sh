#!/usr/bin/env bash
# find_package(Tenon), tenon_add_allocator, then the plugin by path: in a replay, and in a training run from TOML.
source "$(dirname "$0")/common.sh"
build=$(fresh allocator)
configure -S "$here/allocator" -B "$build" -DCMAKE_PREFIX_PATH="$installed"
compile "$build"
[[ -e $build/exact_fit.so ]] || fail "no exact_fit.so"
tenon=$installed/bin/tenon

"$tenon" plugins info "$build/exact_fit.so" >"$build/info.txt" || fail "tenon plugins info"
expect "granularity" "$build/info.txt"

trace=$TENON_SOURCE_DIR/examples/traces/gpt2_adam.trace.gz
[[ -e $trace ]] || trace=$(find "$TENON_SOURCE_DIR/examples/traces" -name '*.trace.gz' | sort | head -n 1)
"$tenon" replay "$trace" --allocator "$build/exact_fit.so:granularity=1KiB" --format json >"$build/replay.json" ||
  fail "tenon replay"
expect '"allocator": "exact_fit"' "$build/replay.json"
expect '"ideal"' "$build/replay.json"

cp "$here/allocator/experiment.toml" "$build"
"$tenon" config check "$build/experiment.toml" || fail "tenon config check"
if [[ ! -d /usr/share/datasets/fashion-mnist ]]; then
  skip "the data package dataset-fashion-mnist is not installed"
fi
logged "tenon run" "$tenon" run "$build/experiment.toml" train.max_steps=20 --out "$build/out"
expect "exact_fit" "$build/out/result.json"
