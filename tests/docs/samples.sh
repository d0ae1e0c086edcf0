#!/usr/bin/env bash
# What the pages show below `$ tenon …` is what the program prints. A page may leave out columns at the end of a table, and
# lines where it has a line of `…`: each line shown has to begin a line of the output, in the order of the output.
set -euo pipefail
cd "${TENON_SOURCE_DIR:?is set by CTest}"
shown=$(mktemp) printed=$(mktemp)
trap 'rm -f "$shown" "$printed"' EXIT

compare() {
  awk -v sample="$1" '
    function may_be_left_out(line) { return line == "" || line == "…" }
    { gsub(/[ \t]+/, " "); gsub(/-+/, "-") }  # the width of a column is that of its widest cell, which may be left out
    NR == FNR { wanted[++count] = $0; next }
    {
      while (reached < count && may_be_left_out(wanted[reached + 1])) reached++
      if (reached < count && index($0, wanted[reached + 1]) == 1) reached++
    }
    END {
      while (reached < count && may_be_left_out(wanted[reached + 1])) reached++
      if (reached == count) exit 0
      print sample ": the program does not print, or not there: " wanted[reached + 1]
      exit 1
    }' "$shown" "$printed"
}

broken=0 checked=0
while IFS=: read -r page line command; do
  checked=$((checked + 1))
  awk -v first="$line" 'NR <= first { next } /^```/ { exit } { print }' "$page" >"$shown"
  (read -ra words <<<"${command#\$ tenon }" && "${TENON_PROGRAM:?is set by CTest}" "${words[@]}") >"$printed" 2>/dev/null
  compare "$page:$line" || broken=$((broken + 1))
done < <(find . -name '*.md' -not -path './build/*' -not -path './tenon-out/*' -exec grep -nH '^\$ tenon ' {} +)
echo "$checked samples, $broken wrong"
[[ $broken == 0 && $checked -gt 0 ]]
