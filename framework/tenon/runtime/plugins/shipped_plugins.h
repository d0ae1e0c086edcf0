// What Tenon ships with, as its build knows it: so that a plugin that is missing can be told from one that never was.
#pragma once

#include <tenon/core/export.h>

#include <span>
#include <string_view>

namespace tenon {

/// A backend that has a folder in plugins/, whether or not this build could make it.
struct ShippedBackend {
  std::string_view kind;      ///< "cuda"
  std::string_view to_build;  ///< what to do where its plugin was not built; empty: it always is
  std::string_view to_run;    ///< what its devices need; empty: every machine has one
};

/// The same of a communicator.
struct ShippedCommunicator {
  std::string_view name;      ///< as in distributed.name
  std::string_view to_build;  ///< what to do where its plugin was not built; empty: it always is
  std::string_view to_run;    ///< how several processes are launched with it
};

/// Names of the plugins that this build made: "cpu", "caching", …
TENON_API std::span<const std::string_view> shipped_plugins();
TENON_API std::span<const ShippedBackend> shipped_backends();
TENON_API std::span<const ShippedCommunicator> shipped_communicators();

}  // namespace tenon
