// Settings of [model] that are set and that no model of the experiment reads: no error, and likely a mistake.
#pragma once

#include <tenon/core/export.h>
#include <tenon/runtime/config/config.h>

#include <string>
#include <vector>

namespace tenon {

/// A sentence for each, with what the model does read. Of a sweep over models, what none of them reads.
TENON_API std::vector<std::string> unread_model_settings(const Config& config);

}  // namespace tenon
