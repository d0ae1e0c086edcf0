#!/usr/bin/env bash
# An application that found the package with find_package.
source "$(dirname "$0")/common.sh"
build=$(fresh application)
configure -S "$here/application" -B "$build" -DCMAKE_PREFIX_PATH="$installed"
compile "$build"
"$build/application" >"$build/out.txt" || { cat "$build/out.txt"; fail "the application ended with $?"; }
expect "gradient 3.0" "$build/out.txt"
