// The ranks of a test program: one communicator for all its cases, which every rank runs in the same order.
#pragma once

#include <tenon/comm/communicator.h>

#include <memory>
#include <string>

namespace tenon::test {

/// Of this program; made by main with 60 s of patience.
std::shared_ptr<Communicator>& ranks();

/// Another communicator of that spec in place of ranks(), on every rank; the first one comes back.
class OtherRanks {
 public:
  explicit OtherRanks(const std::string& spec);
  ~OtherRanks();
  OtherRanks(const OtherRanks&) = delete;
  OtherRanks& operator=(const OtherRanks&) = delete;
};

}  // namespace tenon::test
