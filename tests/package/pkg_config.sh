#!/usr/bin/env bash
# The same application without CMake, through pkg-config.
source "$(dirname "$0")/common.sh"
command -v pkg-config >/dev/null || skip "pkg-config is not installed"
build=$(fresh pkg-config)
PKG_CONFIG_PATH=$(dirname "$(find "$installed" -name tenon.pc)")
export PKG_CONFIG_PATH
[[ $(pkg-config --modversion tenon) =~ ^[0-9]+\.[0-9]+\.[0-9]+$ ]] || fail "no version"
read -ra flags <<<"$(pkg-config --cflags --libs tenon)"
"${CXX:-c++}" "$here/application/main.cpp" -o "$build/application" "${flags[@]}" -Wl,-rpath,"$(pkg-config --variable=libdir tenon)"
"$build/application" >"$build/out.txt" || { cat "$build/out.txt"; fail "the application ended with $?"; }
expect "gradient 3.0" "$build/out.txt"
