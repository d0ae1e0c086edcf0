#!/usr/bin/env bash
# Every relative link of every page of the tree leads to a file that is there, and to a heading of it where it names one.
set -euo pipefail
cd "${TENON_SOURCE_DIR:?is set by CTest}"

# The anchors of a page's headings, as GitHub makes them: lower case, blanks as hyphens, other signs left out.
anchors_of() {
  sed -n 's/^##* //p' "$1" | tr '[:upper:]' '[:lower:]' | sed 's/[^a-z0-9 _-]//g; s/ /-/g'
}

broken=0 checked=0
while IFS=: read -r page link; do
  target=${link#](}
  target=${target%)}
  if [[ -z $target || $target == *://* || $target == mailto:* ]]; then continue; fi
  checked=$((checked + 1))
  file=${target%%#*}
  where=$page
  if [[ -n $file ]]; then where=$(dirname "$page")/$file; fi
  if [[ ! -e $where ]]; then
    echo "$page: $target does not exist"
    broken=$((broken + 1))
  elif [[ $target == *'#'* ]] && ! anchors_of "$where" | grep -qxF -- "${target#*#}"; then
    echo "$page: $target names no heading of $where"
    broken=$((broken + 1))
  fi
done < <(find . -name '*.md' -not -path './build/*' -not -path './tenon-out/*' -exec grep -oH '](\([^)]*\))' {} +)
echo "$checked links, $broken broken"
[[ $broken == 0 && $checked -gt 0 ]]
