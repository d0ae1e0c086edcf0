#!/usr/bin/env bash
# The same names through add_subdirectory, from another project's build.
source "$(dirname "$0")/common.sh"
build=$(fresh subdirectory)
configure -S "$here/subdirectory" -B "$build" -DTENON_SOURCE_DIR="$TENON_SOURCE_DIR" -DTENON_CUDA=off
compile "$build" --target application tenon_plugin_exact_fit
[[ -e $build/exact_fit.so ]] || fail "the parent's own allocator is not in its own binary folder"
"$build/application" >"$build/out.txt" || { cat "$build/out.txt"; fail "the application ended with $?"; }
expect "gradient 3.0" "$build/out.txt"
