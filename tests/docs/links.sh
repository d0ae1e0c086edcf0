#!/usr/bin/env bash
# Every relative link of every page of the tree leads to a file that is there.
set -euo pipefail
cd "${TENON_SOURCE_DIR:?is set by CTest}"
broken=0 checked=0
while IFS=: read -r page link; do
  target=${link#](}
  target=${target%)}
  target=${target%%#*}
  if [[ -z $target || $target == *://* || $target == mailto:* ]]; then continue; fi
  checked=$((checked + 1))
  if [[ ! -e $(dirname "$page")/$target ]]; then
    echo "$page: $target does not exist"
    broken=$((broken + 1))
  fi
done < <(find . -name '*.md' -not -path './build/*' -not -path './tenon-out/*' -exec grep -oH '](\([^)]*\))' {} +)
echo "$checked links, $broken broken"
[[ $broken == 0 && $checked -gt 0 ]]
