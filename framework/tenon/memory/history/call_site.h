// Which functions of a call stack say where memory comes from: a program's own, in front of those that every stack has.
#pragma once

#include <tenon/core/export.h>
#include <tenon/memory/call_stacks.h>

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tenon {

/// The frames of a stack that are the program's own, innermost first, by position: without those of Tenon, Python,
/// PyTorch, CUDA and the C library, as far as a path or a name tells. Where none is its own: the operators and modules
/// of Tenon, or one that names PyTorch's operator, or the innermost.
TENON_API std::vector<std::size_t> own_frames(std::span<const StackFrame> frames);

/// Whether a frame is one of Tenon's that every stack has: of the allocator, of a run, of the program `tenon`.
TENON_API bool is_machinery(const StackFrame& frame);

/// The name of a function of C++ without parameters and unnamed namespaces, those of functions around it left out as
/// well: "main::{lambda(int)#1}::operator()" of "main::{lambda(int)#1}::operator()(int) const"; others as they are.
TENON_API std::string without_parameters(std::string_view name);

/// "forward (model.py:31) < step (train.py:12)": the first three of own_frames, of functions of C++ without their
/// parameters; "[no stack]". `names_all`: every frame, as it is recorded.
TENON_API std::string call_site(std::span<const StackFrame> frames, bool names_all = false);

}  // namespace tenon
