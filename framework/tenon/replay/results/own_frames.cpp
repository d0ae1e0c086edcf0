// Names and paths that tell libraries from programs.
#include <tenon/replay/results/own_frames.h>

#include <algorithm>
#include <initializer_list>
#include <iterator>
#include <string_view>

namespace tenon::replay {

namespace {

constexpr std::size_t kNamedFrames = 3;
/// Of functions in C++ and C; a name of Python's has a file that ends in .py.
constexpr std::string_view kLibraryNames[] = {"_object*",  // of a binding, in front of its name
                                              "torch::",
                                              "c10::",
                                              "at::",
                                              "void at::",
                                              "THP",
                                              "_Py",
                                              "Py",
                                              "pymain_",
                                              "pyrun_",
                                              "std::",
                                              "_start",
                                              "__libc_",
                                              "execute_native_thread",
                                              "pybind11::",
                                              "CLI::"};

std::string_view file_name(const StackFrame& frame) {
  return std::string_view(frame.file).substr(frame.file.find_last_of('/') + 1);
}

bool begins_with_one_of(std::string_view name, std::initializer_list<std::string_view> beginnings) {
  return std::ranges::any_of(beginnings, [&](std::string_view begin) { return name.starts_with(begin); });
}

/// Without the type that a template's name begins with.
std::string_view without_result(std::string_view name) {
  const std::size_t space = name.find(" tenon::");
  const bool is_result = space != std::string_view::npos && space < name.find_first_of("(<");
  return is_result ? name.substr(space + 1) : name;
}

/// Functions of Tenon's library and program: by where they are, or by their name.
bool is_tenons(const StackFrame& frame) {
  return file_name(frame).starts_with("libtenon.so") || frame.file == "tenon" || frame.file.ends_with("/bin/tenon") ||
         without_result(frame.name).starts_with("tenon::");
}

/// Of Tenon's functions those that every allocation and every run has.
bool is_tenons_machinery(const StackFrame& frame) {
  return !without_result(frame.name).starts_with("tenon::") ||
         begins_with_one_of(without_result(frame.name),
                            {"tenon::(anonymous namespace)", "tenon::AllocatorStack", "tenon::StorageImpl",
                             "tenon::Storage::", "tenon::IntrusivePtr", "tenon::make_intrusive", "tenon::History",
                             "tenon::cli::", "tenon::run_experiment", "tenon::train::Training"});
}

/// Functions of PyTorch and of the machine below and around a program's own.
bool is_boilerplate(const StackFrame& frame) {
  if (frame.file == "??" || frame.file.empty() || is_tenons(frame)) return true;
  for (const char* part : {"/torch/", "/site-packages/", "/dist-packages/", "/aten/", "/c10/", "/python3",
                           "/csu/libc-start", "/libc_start_call_main"}) {
    if (frame.file.find(part) != std::string::npos) return true;
  }
  if (frame.file.ends_with(".py")) return false;
  for (const char* part : {"/Python/", "/Objects/", "/Modules/", "/Include/"}) {  // CPython's own folders
    if (frame.file.find(part) != std::string::npos) return true;
  }
  return std::ranges::any_of(kLibraryNames, [&](std::string_view begin) { return frame.name.starts_with(begin); });
}

/// Of a stack without a frame of the program's own, as one of the backward pass is: the operator, which says more than
/// the allocator at the bottom.
std::size_t telling_frame(const Trace& trace, const std::vector<std::uint32_t>& frames) {
  for (std::size_t i = frames.size(); i-- > 0;) {  // the outermost first
    const std::string& name = trace.stacks.frames[frames[i]].name;
    if (name.starts_with("torch::autograd::generated::") || name.starts_with("at::_ops::")) return i;
  }
  return 0;
}

/// "tenon::nn::LinearImpl::reset" of its declaration; a name of Python's has no parameters.
std::string without_parameters(std::string name) {
  constexpr std::string_view kUnnamed = "(anonymous namespace)::";
  for (std::size_t at; (at = name.find(kUnnamed)) != std::string::npos;) name.erase(at, kUnnamed.size());
  if (const std::size_t bracket = name.find('('); bracket != 0 && !name.substr(0, bracket).ends_with("operator"))
    name = name.substr(0, bracket);
  return name;
}

}  // namespace

std::vector<std::uint32_t> own_frames(const Trace& trace, StackId stack) {
  const std::vector<std::uint32_t>& frames = trace.stacks.stacks[stack];
  const auto those = [&](auto is_one) {
    std::vector<std::uint32_t> some;
    std::ranges::copy_if(frames, std::back_inserter(some),
                         [&](std::uint32_t frame) { return is_one(trace.stacks.frames[frame]); });
    return some;
  };
  std::vector<std::uint32_t> own = those([](const StackFrame& frame) { return !is_boilerplate(frame); });
  if (own.empty()) own = those([](const StackFrame& frame) { return is_tenons(frame) && !is_tenons_machinery(frame); });
  if (own.empty() && !frames.empty()) own.push_back(frames[telling_frame(trace, frames)]);
  return own;
}

std::string call_site(const Trace& trace, StackId stack, bool names_all) {
  const std::vector<std::uint32_t>& frames = trace.stacks.stacks[stack];
  if (frames.empty()) return "[no stack]";
  std::string site;
  std::size_t named = 0;
  for (const std::uint32_t number : names_all ? frames : own_frames(trace, stack)) {
    const StackFrame& frame = trace.stacks.frames[number];
    if (!names_all && named == kNamedFrames) break;
    site += (named++ == 0 ? "" : " < ") + (names_all ? frame.name : without_parameters(frame.name)) + " (" +
            std::string(file_name(frame)) + (frame.line == 0 ? "" : ":" + std::to_string(frame.line)) + ")";
  }
  return site;
}

}  // namespace tenon::replay
