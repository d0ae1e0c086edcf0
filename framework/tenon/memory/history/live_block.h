// A block that lives: what its history knows of it.
#pragma once

#include <tenon/memory/call_stacks.h>
#include <tenon/memory/purpose.h>

#include <cstdint>

namespace tenon {

struct LiveBlock {
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;   ///< as requested
  std::uint64_t number = 0;  ///< the how-manieth allocation of the recording it was, from 1: younger is larger
  StackId stack = 0;         ///< that allocated it; 0 where none was taken
  std::uint16_t label = 0;
  Purpose purpose = Purpose::kOther;
  bool page_locked = false;  ///< host memory that a device copies from and to by itself
};

}  // namespace tenon
