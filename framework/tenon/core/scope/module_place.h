// Modules by the tree that they are of, and the names by which tables tell them apart.
#pragma once

#include <tenon/core/export.h>

#include <compare>
#include <set>
#include <string>

namespace tenon::scopes {

/// A module by the type of the root of its tree, and its path there: empty for the root itself. Outside of modules both
/// are empty.
struct ModulePlace {
  std::string root, path;
  auto operator<=>(const ModulePlace&) const = default;
};

/// Roots of the trees in which a module would be shown as one of another place is; a root is shown by its type.
TENON_API std::set<std::string> roots_to_name(const std::set<ModulePlace>& places);

/// "encoder.0"; of a root its type, "Net"; "Net.encoder.0" where its root is to be named.
TENON_API std::string shown_name(const ModulePlace& place, const std::set<std::string>& named);

}  // namespace tenon::scopes
