// The lists that cmake/TenonShipped.cmake gathered from the folders of the plugins.
#include <tenon/runtime/plugins/shipped_plugins.h>

#include <cstddef>

namespace tenon {

namespace {

#include "shipped_plugins.inc"

/// All but the last one, which is none. A build of the allocators alone has no communicator.
template <class Entry, std::size_t n>
constexpr std::span<const Entry> entries(const Entry (&list)[n]) {
  return std::span<const Entry>(list, n - 1);
}

}  // namespace

std::span<const std::string_view> shipped_plugins() { return entries(kPlugins); }
std::span<const ShippedBackend> shipped_backends() { return entries(kBackends); }
std::span<const ShippedCommunicator> shipped_communicators() { return entries(kCommunicators); }

}  // namespace tenon
