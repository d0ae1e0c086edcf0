#!/usr/bin/env bash
# A compiler launcher that is a compiler cache of one build: where the build under test has compiled the same file with the
# same command, its object is taken; for everything else the compiler runs. REUSED_OBJECTS names the table of what there
# is; what was compiled is listed beside it, in a file with the ending .compiled.
#   reuse_objects.sh --table BUILD TARGET…   prints the table, "COMMAND<tab>OBJECT", of what these targets are made of
#   reuse_objects.sh COMPILER ARGUMENT…      compiles
set -euo pipefail

# The command without what depends on the build folder: the names of the object and of the list of its dependencies, and of
# a file that joins sources, for which its text stands.
key() {
  local words=()
  while [[ $# -gt 0 ]]; do
    case $1 in
      -MD) ;;
      -o | -MT | -MF) shift ;;
      */Unity/unity_*) words+=("$(<"$1")") ;;
      *) words+=("$1") ;;
    esac
    shift
  done
  printf '%q ' "${words[@]}"
}
# after OPTION ARGUMENT…: the argument that follows the option.
after() {
  local option=$1
  shift
  while [[ $# -gt 1 && $1 != "$option" ]]; do shift; done
  printf '%s' "${2:-}"
}

if [[ $1 == --table ]]; then # not of commands that a project wrote itself, as those of nvcc
  build=$2
  shift 2
  ninja -C "$build" -t commands "$@" | grep -F ' -c ' | grep -v '^cd ' | while IFS= read -r line; do
    eval "words=($line)"
    while [[ ${words[0]} != "$CXX" ]]; do words=("${words[@]:1}"); done # without its launcher
    printf '%s\t%s\n' "$(key "${words[@]}")" "$build/$(after -o "${words[@]}")"
  done
  exit
fi

object=$(after -o "$@")
wanted=$(key "$@")
found=$(wanted=$wanted awk -F '\t' '$1 == ENVIRON["wanted"] { print $2; exit }' "$REUSED_OBJECTS")
if [[ -n $found && -e $found ]]; then
  cp "$found" "$object"
  printf '%s:\n' "$object" >"$(after -MF "$@")"
else
  # What includes files that CMake has written into this build has a command of its own, and perhaps other rows.
  if [[ " $*" != *" -I$PWD/"* ]]; then printf '%s\n' "$object" >>"$REUSED_OBJECTS.compiled"; fi
  exec "$@"
fi
