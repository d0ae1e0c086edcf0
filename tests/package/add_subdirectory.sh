#!/usr/bin/env bash
# The same names through add_subdirectory, from another project's build, on a machine without the CUDA Toolkit. Everything is
# configured, linked and run; what the build under test compiled with the same command is not compiled a second time.
source "$(dirname "$0")/common.sh"
build=$(fresh subdirectory)
export REUSED_OBJECTS=$build.objects
: >"$REUSED_OBJECTS.compiled"
bash "$here/reuse_objects.sh" --table "$TENON_BINARY_DIR" tenon tenon_all_plugins >"$REUSED_OBJECTS"

export CMAKE_CXX_COMPILER_LAUNCHER="bash;$here/reuse_objects.sh"
configure -S "$here/subdirectory" -B "$build" -DTENON_SOURCE_DIR="$TENON_SOURCE_DIR" \
  -DTENON_CUDA=auto -DCMAKE_DISABLE_FIND_PACKAGE_CUDAToolkit=ON \
  -DCMAKE_CXX_FLAGS="$(setting CMAKE_CXX_FLAGS)" -DCMAKE_UNITY_BUILD="$(setting CMAKE_UNITY_BUILD)" \
  -DCMAKE_UNITY_BUILD_BATCH_SIZE="$(setting CMAKE_UNITY_BUILD_BATCH_SIZE)"
if grep -iE 'cuda|warning' "$work/step.log" >&2; then fail "without the toolkit configuring is not silent"; fi
if ninja -C "$build" -t targets all | grep 'cuda/.*\.o:' >&2; then fail "without the toolkit the CUDA plugin is built"; fi
compile "$build" --target application tenon_plugin_exact_fit
[[ -e $build/exact_fit.so ]] || fail "the parent's own allocator is not in its own binary folder"
"$build/application" >"$build/out.txt" || { cat "$build/out.txt"; fail "the application ended with $?"; }
expect "gradient 3.0" "$build/out.txt"

# Carried by another project, Tenon is compiled as by itself: what was new is the parent's own.
ours=$(grep '^tenon/' "$REUSED_OBJECTS.compiled" || true)
[[ -z $ours ]] || fail "inside another project Tenon is compiled differently: $(head -n 3 <<<"$ours")"
