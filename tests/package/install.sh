#!/usr/bin/env bash
# Installs, moves the prefix, and checks what a package must not have: paths of the build, a library that needs them.
source "$(dirname "$0")/common.sh"
prefix=$(fresh prefix)
rm -rf "$installed"
logged "installing" "${CMAKE_COMMAND:-cmake}" --install "$TENON_BINARY_DIR" --prefix "$prefix"
mv "$prefix" "$installed"

for file in bin/tenon include/tenon/plugin/plugin.h include/tenon/tenon.h share/doc/Tenon/LICENSE \
  share/man/man1/tenon.1 share/man/man1/tenon-replay.1 share/bash-completion/completions/tenon \
  share/zsh/site-functions/_tenon share/fish/vendor_completions.d/tenon.fish; do
  [[ -e $installed/$file ]] || fail "$file was not installed"
done
libdir=$(dirname "$(find "$installed" -name 'libtenon.so')")
[[ -e $libdir/cmake/Tenon/TenonConfig.cmake && -e $libdir/pkgconfig/tenon.pc ]] || fail "no package files beside libtenon"
soname=$(readelf -d "$libdir/libtenon.so" | sed -n 's/.*SONAME.*\[\(.*\)\]/\1/p')
[[ $soname =~ ^libtenon\.so\.[0-9]+(\.[0-9]+)?$ ]] || fail "the SONAME is '$soname', not versioned"

# Debug information names its sources, and only a debug build has any.
find "$installed" -type f \( -name '*.so*' -o -path '*/bin/*' \) -exec strip --strip-debug {} +
leaks=$(grep -rlF -e "$TENON_SOURCE_DIR/" -e "$TENON_BINARY_DIR/" "$installed" || true)
[[ -z $leaks ]] || fail "files name the build: $leaks"

[[ -e $libdir/libtenon_pytorch_allocator.so && -e $libdir/tenon/python/tenon_torch.py ]] || fail "nothing for PyTorch was installed"
[[ ! -e $installed/include/tenon/compat/pytorch ]] || fail "headers of what PyTorch loads were installed"

listed=$("$installed/bin/tenon" plugins list --format json) || fail "tenon plugins list"
[[ $listed == *"$libdir/tenon/plugins/caching.so"* ]] || fail "the moved program did not find its own plugins: $listed"
