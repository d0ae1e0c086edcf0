// Purposes by the names that settings and files use.
#pragma once

#include <tenon/memory/purpose.h>

#include <optional>
#include <string_view>

namespace tenon {

/// The purpose with that name (name_of); empty for what is no such name.
std::optional<Purpose> purpose_named(std::string_view name);

}  // namespace tenon
