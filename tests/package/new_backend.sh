#!/usr/bin/env bash
# The author of a backend: `tenon new backend` against the installed package, its build, and the conformance suite of kernels on
# its three. A fault in one of them is found.
source "$(dirname "$0")/common.sh"
suite=$TENON_BINARY_DIR/tests/tenon_kernel_conformance
[[ -x $suite ]] || skip "the conformance suite of kernels is not built"
build=$(fresh new_backend)
tenon=$installed/bin/tenon
(cd "$build" && "$tenon" new backend mine --dir mine) || fail "tenon new backend"
source=$build/mine/mine.cpp
lines=$(wc -l <"$source")
[[ $lines -lt 150 ]] || fail "the author's file has $lines lines"
conforms() { # conforms: the suite on the plugin, what it says in suite.txt
  compile "$build/build"
  TENON_CONFORMANCE_PLUGIN=$build/build/mine.so "$suite" --gtest_filter=-CpuLevels.* >"$build/suite.txt" 2>&1
}

configure -S "$build/mine" -B "$build/build" -DCMAKE_PREFIX_PATH="$installed"
conforms || { cat "$build/suite.txt"; fail "its kernels do not conform"; }
expect "[       OK ] Pointwise.BinaryRowsMatchTheirDefinition" "$build/suite.txt"
expect "the backend has no kernel 'softmax'" "$build/suite.txt"
"$tenon" plugins info "$build/build/mine.so" >"$build/info.txt" || fail "tenon plugins info"
expect "three kernels" "$build/info.txt"
PATH=$installed/bin:$PATH ctest --test-dir "$build/build" --output-on-failure --no-tests=error || fail "its own test"

sed -i 's/(a + static_cast<Sum>/(a - static_cast<Sum>/' "$source"
grep -q '(a - static_cast<Sum>' "$source" || fail "there is no sum to make a difference of"
if conforms; then fail "a sum that subtracts conforms"; fi
expect "[  FAILED  ] Pointwise.BinaryRowsMatchTheirDefinition" "$build/suite.txt"
