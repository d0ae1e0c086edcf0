// What refusals of the layer `budget` say beyond their figures.
#pragma once

#include <tenon/core/error.h>
#include <tenon/core/export.h>
#include <tenon/memory/purpose.h>

#include <optional>

namespace tenon {

/// The purpose whose budget was too small: `limit_bytes` is that budget then, and no ceiling of the device's memory.
/// Empty where something else refused the request.
TENON_API std::optional<Purpose> purpose_over_budget(const OutOfMemoryInfo& refusal);

}  // namespace tenon
