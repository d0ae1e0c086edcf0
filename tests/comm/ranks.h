// The ranks of a test program: one communicator for all its cases, which every rank runs in the same order.
#pragma once

#include <tenon/comm/communicator.h>

#include <memory>
#include <string>

namespace tenon::test {

/// Of this program; made by main with 60 s of patience.
std::shared_ptr<Communicator>& ranks();

/// What the mains of such programs do: ranks() are of `spec`, all tests run, and a rank other than 0 says what failed
/// and nothing else. Returns the exit code.
int run_as_rank(const std::string& spec);

/// Another communicator of that spec in place of ranks(), on every rank; the first one comes back.
class OtherRanks {
 public:
  explicit OtherRanks(const std::string& spec);
  ~OtherRanks();
  OtherRanks(const OtherRanks&) = delete;
  OtherRanks& operator=(const OtherRanks&) = delete;
};

}  // namespace tenon::test
