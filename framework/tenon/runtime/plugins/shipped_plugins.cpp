// The lists that cmake/TenonShipped.cmake gathered from the folders of the plugins.
#include <tenon/runtime/plugins/shipped_plugins.h>

namespace tenon {

namespace {

#include "shipped_plugins.inc"

}  // namespace

std::span<const std::string_view> shipped_plugins() { return kPlugins; }
std::span<const ShippedBackend> shipped_backends() { return kBackends; }
std::span<const ShippedCommunicator> shipped_communicators() { return kCommunicators; }

}  // namespace tenon
