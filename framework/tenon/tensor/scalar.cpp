// The complaint about a number that a type cannot hold.
#include <tenon/tensor/scalar.h>

#include <string>

namespace tenon::detail {

void report_overflow(Dtype dtype) {
  // c10 names the C++ type in these words, and in no others.
  constexpr const char* kNames[kDtypeCount] = {"bool",    "uint8_t",  "int8_t",       "int16_t", "int",
                                               "int64_t", "at::Half", "at::BFloat16", "float",   "double"};
  throw Error(std::string("value cannot be converted to type ") + kNames[static_cast<int>(dtype)] +
              " without overflow");
}

}  // namespace tenon::detail
