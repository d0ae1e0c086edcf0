#!/usr/bin/env bash
# A first-time author's path against the installed package: `tenon new allocator`, edit, build, the kit, the table, and a
# write out of bounds that AddressSanitizer finds. What it took is printed.
source "$(dirname "$0")/common.sh"
build=$(fresh new)
tenon=$installed/bin/tenon
SECONDS=0
(cd "$build" && "$tenon" new allocator mine --dir mine) || fail "tenon new allocator"
source=$(find "$build/mine" -name '*.cpp' | head -n 1)
lines=$(wc -l <"$source")
[[ $lines -lt 80 ]] || fail "the author's file has $lines lines"

sed -i 's/"granularity", 512,/"granularity", 2048,/' "$source"
grep -q '"granularity", 2048,' "$source" || fail "there is no default of 512 to edit"
configure -S "$build/mine" -B "$build/build" -DCMAKE_PREFIX_PATH="$installed"
compile "$build/build"

"$tenon" plugins info "$build/build/mine.so" >"$build/info.txt" || fail "tenon plugins info"
expect "2KiB" "$build/info.txt"
"$tenon" plugins test "$build/build/mine.so" >"$build/kit.txt" || { cat "$build/kit.txt"; fail "the kit"; }
expect "22 passed, 0 failed, 1 not applicable" "$build/kit.txt"
"$tenon" plugins test "$build/build/mine.so" --edges --only aligns >"$build/edges.txt" || fail "the edges of its options"
expect "mine:granularity=512" "$build/edges.txt"
"$tenon" replay "$TENON_SOURCE_DIR/examples/traces/gpt2_adam.trace.gz" --allocator "$build/build/mine.so" --allocator caching \
  --capacity 8GiB >"$build/table.txt" || fail "tenon replay"
for name in mine caching ideal; do expect "$name  " "$build/table.txt"; done
echo "from nothing to the table: $SECONDS s"

PATH=$installed/bin:$PATH ctest --test-dir "$build/build" --output-on-failure --no-tests=error || fail "its own test"

# Names of a class that the template uses, and of a macro of the compiler's.
for name in request linux; do
  (cd "$build" && "$tenon" new allocator "$name") || fail "tenon new allocator $name"
  configure -S "$build/$name" -B "$build/$name/build" -DCMAKE_PREFIX_PATH="$installed"
  compile "$build/$name/build"
  "$tenon" plugins info "$build/$name/build/$name.so" >"$build/$name.txt" || fail "tenon plugins info $name.so"
  expect "allocator $name: " "$build/$name.txt"
done

# A write behind the end of the plugin's own memory: the allocators' page says how to find it, without another Tenon. That
# way is GCC's; a Tenon that is built with a sanitizer has its own.
asan=$("${CXX:-g++}" -print-file-name=libasan.so)
if [[ ! -f $asan || -n $(setting TENON_SANITIZE) ]]; then exit 0; fi
sed -i '/const std::size_t bytes = align_up/a static char* const notes = new char[8]; notes[8 + request.bytes % 2] = 1;' "$source"
line=$(grep -n 'notes\[8' "$source" | cut -d: -f1)
[[ -n $line ]] || fail "there is no line to plant a write behind"
logged "configuring for AddressSanitizer" "${CMAKE_COMMAND:-cmake}" -G Ninja -S "$build/mine" -B "$build/asan" \
  -DCMAKE_PREFIX_PATH="$installed" -DASAN=ON
compile "$build/asan"
if LD_PRELOAD=$asan ASAN_OPTIONS=detect_leaks=0 \
  "$tenon" plugins test "$build/asan/mine.so" --only aligns >"$build/asan.txt" 2>&1; then
  fail "a write out of bounds passes under AddressSanitizer"
fi
expect "heap-buffer-overflow" "$build/asan.txt"
expect "mine.cpp:$line" "$build/asan.txt"
