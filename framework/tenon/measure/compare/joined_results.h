// Several results of one side: their cases become one each, with a sample from every result.
#pragma once

#include <tenon/core/export.h>
#include <tenon/measure/compare/result_set.h>

#include <vector>

namespace tenon::measure {

/// At least one; one alone stays as it is. A figure is the median of its values, which are its samples. A case that
/// failed in one of them, or that one of them lacks, has failed. Settings that differ between them are listed. Throws
/// ConfigError where they are of different kinds.
TENON_API ResultSet joined(std::vector<ResultSet> results);

}  // namespace tenon::measure
