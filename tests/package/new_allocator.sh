#!/usr/bin/env bash
# `tenon new allocator` writes a project that builds against the installed package and whose own test passes.
source "$(dirname "$0")/common.sh"
build=$(fresh new)
(cd "$build" && "$installed/bin/tenon" new allocator mine --dir mine) || fail "tenon new allocator"
lines=$(wc -l <"$(find "$build/mine" -name '*.cpp' | head -n 1)")
[[ $lines -lt 80 ]] || fail "the author's file has $lines lines"
configure -S "$build/mine" -B "$build/build" -DCMAKE_PREFIX_PATH="$installed"
compile "$build/build"
PATH=$installed/bin:$PATH ctest --test-dir "$build/build" --output-on-failure --no-tests=error || fail "its own test"
