// What has to be the same on all ranks of a run, in words: compared where they meet.
#pragma once

#include <tenon/comm/communicator.h>
#include <tenon/core/export.h>

#include <string>
#include <vector>

namespace tenon {

/// Every rank's text, by rank, where they are not all the same; empty where they are, which takes one all_gather of 16
/// bytes. Every rank calls it, whatever its text is. Throws DistributedError.
TENON_API std::vector<std::string> differing_texts(Communicator& ranks, const std::string& own);

}  // namespace tenon
