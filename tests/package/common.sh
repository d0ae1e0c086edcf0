# Sourced by the package tests: where things are, and how to fail or skip with a sentence.
# shellcheck shell=bash disable=SC2034,SC2154
set -euo pipefail
here=$(dirname "${BASH_SOURCE[0]}")
: "${TENON_SOURCE_DIR:?is set by CTest}" "${TENON_BINARY_DIR:?is set by CTest}"
work=$TENON_BINARY_DIR/package
installed=$work/moved
if [[ -n ${CXX_LAUNCHER:-} ]]; then export CMAKE_CXX_COMPILER_LAUNCHER=${CXX_LAUNCHER// /;}; fi

fail() {
  echo "FAILED: $*" >&2
  exit 1
}
skip() {
  echo "$*"
  exit 77
}
# expect TEXT FILE: the file holds the text.
expect() { grep -qF -- "$1" "$2" || { cat "$2"; fail "'$1' is not in $(basename "$2")"; }; }
# fresh NAME: an empty folder for this test.
fresh() {
  rm -rf "${work:?}/$1"
  mkdir -p "$work/$1"
  echo "$work/$1"
}
# logged SENTENCE COMMAND…: quiet, unless it fails.
logged() {
  local what=$1
  shift
  "$@" >"$work/step.log" 2>&1 || { cat "$work/step.log"; fail "$what"; }
}
# setting NAME: of the build under test. A consumer is compiled alike, so that the compiler cache has what is compiled twice.
setting() { sed -n "s/^$1:[A-Z]*=//p" "$TENON_BINARY_DIR/CMakeCache.txt"; }
configure() {
  local type
  type=$(setting CMAKE_BUILD_TYPE)
  logged "configuring" "${CMAKE_COMMAND:-cmake}" -G Ninja -DCMAKE_BUILD_TYPE="$type" \
    -DCMAKE_CXX_FLAGS_"${type^^}"="$(setting "CMAKE_CXX_FLAGS_${type^^}")" "$@"
}
compile() { logged "building" "${CMAKE_COMMAND:-cmake}" --build "$@"; }
