// What the host says that an instruction of PTX computes: written from the description of PTX, not from the
// interpreter.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace tenon::ptx_test {

using Word = std::uint64_t;
using Inputs = std::vector<Word>;

struct Reference {
  std::size_t inputs = 0;
  std::size_t result_bits = 64;  ///< the rest of the result is not looked at
  std::vector<Inputs> cases;
  std::function<Word(const Inputs&)> want;
};
using References = std::map<std::string, Reference>;

void add_whole_references(References& references);
void add_float_references(References& references);
void add_half_references(References& references);

/// Every choice of `count` words out of these.
std::vector<Inputs> choices(const std::vector<Word>& words, std::size_t count);

}  // namespace tenon::ptx_test
