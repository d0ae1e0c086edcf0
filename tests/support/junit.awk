# Reads the JUnit file that CTest writes; prints STATUS<tab>NAME<tab>REASON per test. STATUS: run, fail, notrun, disabled.
# For a skipped GoogleTest case the reason is the line after "Skipped", for a script its last line.
function attribute(line, key,    rest) {
  if (!match(line, " " key "=\"[^\"]*\"")) return ""
  rest = substr(line, RSTART + length(key) + 3, RLENGTH - length(key) - 4)
  return plain(rest)
}
function plain(text) {
  gsub(/&lt;/, "<", text); gsub(/&gt;/, ">", text); gsub(/&quot;/, "\"", text); gsub(/&apos;/, "'", text)
  gsub(/&amp;/, "\\&", text)
  return text
}
/<testcase / { name = attribute($0, "name"); status = attribute($0, "status"); reason = ""; last = ""; next_is_reason = 0 }
/<system-out>/ { inside = 1; sub(/.*<system-out>/, "") }
inside {
  line = $0
  sub(/<\/system-out>.*/, "", line)
  if (next_is_reason && line ~ /[^ ]/) { reason = line; next_is_reason = 0 }
  if (line ~ /: Skipped$/) next_is_reason = 1
  if (line ~ /[^ ]/ && line !~ /^\[/) last = line
}
/<\/system-out>/ { inside = 0 }
/<\/testcase>/ { printf "%s\t%s\t%s\n", status, name, plain(reason == "" ? last : reason) }
