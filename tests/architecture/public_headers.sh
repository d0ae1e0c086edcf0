#!/usr/bin/env bash
# Each installed header compiles alone: with TENON_TEST_HEADERS=all (./dev test --full) each of them, else at most 60: those
# that differ from the main branch (on it, from the commit before), then some of those that include one of these; some of
# all where git does not know. A header that includes one of the bases is compiled with that base precompiled in front of
# it: it has the same declarations then as by itself, since each header on the way is compiled alone as well.
set -euo pipefail
: "${TENON_SOURCE_DIR:?is set by CTest}" "${TENON_BINARY_DIR:?is set by CTest}" "${CXX:?is set by CTest}"
bases=(tenon/tensor/tensor.h tenon/memory/allocator.h) # the first that a header includes is taken
export framework=$TENON_SOURCE_DIR/framework work=$TENON_BINARY_DIR/tests/public_headers
rm -rf "$work"
mkdir -p "$work"
cd "$framework"

# compile HEADER [COMPILER ARGUMENT…]
compile() {
  local header=$1
  shift
  "$CXX" -std=c++20 -w -I "$framework" -x c++ "$@" - <<<"#include <$header>"
}
# check "HEADER BASE": leaves what the compiler says of it in a file if it fails. "-" is no base.
check() {
  local header base option=()
  read -r header base <<<"$1"
  if [[ $base != - ]]; then option=(-include "$work/${base//\//_}"); fi
  if ! compile "$header" -fsyntax-only "${option[@]}" 2>"$work/${header//\//_}.log"; then
    printf '%s does not compile alone:\n' "$header"
    cat "$work/${header//\//_}.log"
    return 1
  fi
}
export -f compile check

for base in "${bases[@]}"; do
  echo "#include <$base>" >"$work/${base//\//_}"
  "$CXX" -std=c++20 -w -I "$framework" -x c++-header -o "$work/${base//\//_}.gch" "$work/${base//\//_}"
done

# The headers that were changed; "all" for all of them.
changed() {
  local base
  if [[ ${TENON_TEST_HEADERS:-changed} == all ]]; then echo all && return; fi
  base=$(git merge-base HEAD main 2>/dev/null || git merge-base HEAD origin/main 2>/dev/null || true)
  if [[ -z $base || $base == "$(git rev-parse HEAD)" ]]; then base=$(git rev-parse -q --verify HEAD~1 || true); fi
  if [[ -z $base ]]; then echo unknown && return; fi
  git diff --name-only --diff-filter=d --relative "$base" -- '*.h' '*.inl'
}

# "HEADER BASE" for each of these headers, the base found by what it includes, and they in turn. What stands inside an #if does not
# count: it may not be there. Of those that only include one that was changed, every so-many-th is taken.
find tenon -name '*.h' -not -path 'tenon/cli/*' | sort >"$work/headers"
# shellcheck disable=SC2016  # awk's own, not the shell's
xargs awk -v most=60 -v bases="${bases[*]}" -v changed="$(changed | tr '\n' ' ')" '
  function reaches(header, base,    i) {
    if ((header, base) in known) return known[header, base]
    known[header, base] = 0
    for (i = 1; i <= count[header]; i++)
      if (included[header, i] == base || reaches(included[header, i], base)) return known[header, base] = 1
    return 0
  }
  FNR == 1 { depth = 0; order[++files] = FILENAME }
  /^#[ ]*if/ { depth++ }
  /^#[ ]*endif/ { depth-- }
  depth == 0 && /^#include <tenon\// { included[FILENAME, ++count[FILENAME]] = substr($2, 2, length($2) - 2) }
  END {
    wanted = split(bases, base, " ")
    news = split(changed, new, " ")
    for (f = 1; f <= files; f++) {
      is_first = new[1] == "all"
      is_news = new[1] == "unknown"
      for (n = 1; n <= news; n++) {
        is_first = is_first || order[f] == new[n]
        is_news = is_news || reaches(order[f], new[n])
      }
      if (!is_first && !is_news) continue
      found = "-"
      for (b = wanted; b >= 1; b--) if (reaches(order[f], base[b])) found = base[b]
      if (is_first && (new[1] == "all" || firsts < most)) { print order[f], found; firsts++ }
      else others[++rest] = order[f] " " found
    }
    if (firsts + 0 >= most || rest == 0) exit
    for (o = 1; o <= rest; o++)
      if (rest <= most - firsts || int(o * (most - firsts) / rest) > int((o - 1) * (most - firsts) / rest)) print others[o]
  }' <"$work/headers" >"$work/plan"

total=$(wc -l <"$work/headers")
[[ $total -gt 100 ]] || { echo "only $total headers were found"; exit 1; }
awk '{ n[$2]++ } END { for (base in n) print n[base], "with base", base }' "$work/plan"
# shellcheck disable=SC2016
tr '\n' '\0' <"$work/plan" | xargs -0 -r -n 1 -P 2 bash -c 'check "$1" || exit 1' check
echo "$(wc -l <"$work/plan") of $total headers: each compiles alone"
