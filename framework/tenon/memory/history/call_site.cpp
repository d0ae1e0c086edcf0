// Names and paths that tell libraries from programs.
#include <tenon/memory/history/call_site.h>

#include <algorithm>
#include <cctype>
#include <initializer_list>
#include <string_view>

namespace tenon {

namespace {

constexpr std::size_t kNamedFrames = 3;
/// Of functions in C++ and C; a name of Python's has a file that ends in .py.
constexpr std::string_view kLibraryNames[] = {
    "torch::",        "c10::",      "at::",  "THP",    "_Py",     "Py",
    "pymain_",        "pyrun_",     "std::", "_start", "__libc_", "execute_native_thread",
    "__interceptor_",  // of a sanitizer, linked into the program
    "__tsan_",        "pybind11::", "CLI::"};

std::string_view file_name(const StackFrame& frame) {
  return std::string_view(frame.file).substr(frame.file.find_last_of('/') + 1);
}

bool begins_with_one_of(std::string_view name, std::initializer_list<std::string_view> beginnings) {
  return std::ranges::any_of(beginnings, [&](std::string_view begin) { return name.starts_with(begin); });
}

/// Behind the bracket that closes the one at `open`; npos where none does.
std::size_t behind_bracket(std::string_view name, std::size_t open) {
  int depth = 0;
  for (std::size_t i = open; i < name.size(); ++i) {
    if (name[i] == '(') ++depth;
    if (name[i] == ')' && --depth == 0) return i + 1;
  }
  return std::string_view::npos;
}

bool is_of_a_word(char c) { return c == '_' || std::isalnum(static_cast<unsigned char>(c)) != 0; }

constexpr std::string_view kOperator = "operator";

/// Whether a name ends in "operator", or a word that does is a name of its own.
bool ends_in_operator(std::string_view name) {
  if (!name.ends_with(kOperator)) return false;
  if (name.size() == kOperator.size()) return true;
  const char before = name[name.size() - kOperator.size() - 1];
  return before == ':' || before == ' ' || before == '*' || before == '&';
}

/// Whether it is the name of an operator, or the beginning of one: what follows "operator" may have spaces.
bool begins_operator(std::string_view name) {
  const std::size_t end = name.find(kOperator) + kOperator.size();
  return name.find(kOperator) != std::string_view::npos && ends_in_operator(name.substr(0, end)) &&
         (end == name.size() || !is_of_a_word(name[end]));
}

/// Without the type that the name of a template begins with: "tenon::f<int>(int)" of "decltype (g(x))
/// tenon::f<int>(int)".
std::string_view without_result(std::string_view name) {
  constexpr std::string_view kUnnamed = "(anonymous namespace)";
  std::size_t begin = 0;
  int braces = 0;   // "{lambda(int)#1}" is a name
  int corners = 0;  // so is "<int (*)(char)>"; signs of an operator come behind all that is looked for
  for (std::size_t i = 0; i < name.size(); ++i) {
    if (name[i] == '{') ++braces;
    if (name[i] == '}') --braces;
    if (name[i] == '<') ++corners;
    if (name[i] == '>') --corners;
    if (braces > 0 || corners > 0) continue;
    const std::string_view word = name.substr(begin, i - begin);
    const bool is_decltype = word == "decltype" || word == "decltype ";
    if (name[i] == ' ' && !is_decltype && !begins_operator(word)) begin = i + 1;
    if (name[i] != '(') continue;
    if (name.substr(i).starts_with(kUnnamed)) {
      i += kUnnamed.size() - 1;
    } else if (is_decltype) {
      i = behind_bracket(name, i) - 1;
      if (i >= name.size()) break;
    } else {
      break;
    }
  }
  return name.substr(begin);
}

/// Functions of Tenon's library and program: by where they are, or by their name.
bool is_tenons(const StackFrame& frame) {
  return file_name(frame).starts_with("libtenon.so") || frame.file == "tenon" || frame.file.ends_with("/bin/tenon") ||
         frame.file.find("framework/tenon/") != std::string::npos ||  // what a header inlines has a bare name
         frame.file.find("include/tenon/") != std::string::npos || without_result(frame.name).starts_with("tenon::");
}

/// Of Tenon's functions those that every allocation and every run has, and helpers of a file.
bool is_tenons_machinery(const StackFrame& frame) {
  const std::string_view name = without_result(frame.name);
  return !name.starts_with("tenon::") ||
         name.substr(std::min(name.find_first_of("(<"), name.size())).starts_with("(anonymous namespace)") ||
         begins_with_one_of(name, {"tenon::allocate_", "tenon::AllocatorStack", "tenon::StorageImpl",
                                   "tenon::Storage::", "tenon::IntrusivePtr", "tenon::make_intrusive", "tenon::History",
                                   "tenon::StackTable", "tenon::list_", "tenon::alias_of", "tenon::cli::",
                                   "tenon::run_experiment", "tenon::train::Training", "tenon::nn::AnyModule",
                                   "tenon::autograd::GraphTask", "tenon::autograd::run_backward"});
}

/// Functions of PyTorch and of the machine below and around a program's own.
bool is_boilerplate(const StackFrame& frame) {
  if (frame.file == "??" || frame.file.empty() || is_tenons(frame)) return true;
  for (const char* part : {"/torch/", "/include/c++/", "/site-packages/", "/dist-packages/", "/aten/", "/c10/",
                           "/python3", "/csu/libc-start", "/libc_start_call_main", "libstdc++.so", "/nptl/",
                           "/sysdeps/", "/libsanitizer/", "/compiler-rt/", "libasan.so", "libtsan.so"}) {
    if (frame.file.find(part) != std::string::npos) return true;
  }
  if (frame.file.ends_with(".py")) return false;
  for (const char* part : {"/Python/", "/Objects/", "/Modules/", "/Include/"}) {  // CPython's own folders
    if (frame.file.find(part) != std::string::npos) return true;
  }
  if (frame.name.starts_with("_object*")) return true;  // the result of a binding
  const std::string_view name = without_result(frame.name);
  return std::ranges::any_of(kLibraryNames, [&](std::string_view begin) { return name.starts_with(begin); });
}

/// Of a stack without a frame of the program's own, as one of the backward pass is: the operator, which says more than
/// the allocator at the bottom.
std::size_t telling_frame(std::span<const StackFrame> frames) {
  for (std::size_t i = frames.size(); i-- > 0;) {  // the outermost first
    const std::string& name = frames[i].name;
    if (name.starts_with("torch::autograd::generated::") || name.starts_with("at::_ops::")) return i;
  }
  return 0;
}

}  // namespace

bool is_machinery(const StackFrame& frame) { return is_tenons(frame) && is_tenons_machinery(frame); }

std::vector<std::size_t> own_frames(std::span<const StackFrame> frames) {
  const auto those = [&](auto is_one) {
    std::vector<std::size_t> some;
    for (std::size_t i = 0; i < frames.size(); ++i)
      if (is_one(frames[i])) some.push_back(i);
    return some;
  };
  std::vector<std::size_t> own = those([](const StackFrame& frame) { return !is_boilerplate(frame); });
  if (own.empty()) own = those([](const StackFrame& frame) { return is_tenons(frame) && !is_tenons_machinery(frame); });
  if (own.empty() && !frames.empty()) own.push_back(telling_frame(frames));
  return own;
}

std::string without_parameters(std::string_view name) {
  constexpr std::string_view kUnnamed = "(anonymous namespace)::";
  if (name.starts_with("decltype")) name = without_result(name);
  std::string shorter;
  int braces = 0;   // "{lambda(int)#1}" is a name
  int corners = 0;  // so is "<int (*)(char)>"
  for (std::size_t i = 0; i < name.size(); ++i) {
    if (name.substr(i).starts_with(kUnnamed)) {
      i += kUnnamed.size() - 1;
      continue;
    }
    // Signs of an operator are no brackets.
    if (braces == 0 && corners == 0 && ends_in_operator(shorter) && !is_of_a_word(name[i])) {
      const std::size_t end = name[i] == '(' ? i + 2 : name.find_first_of(name[i] == ' ' ? "(" : "( ", i);
      shorter += name.substr(i, end == std::string_view::npos ? end : end - i);
      if (end >= name.size()) break;
      i = end - 1;
      continue;
    }
    if (name[i] == '{') ++braces;
    if (name[i] == '}') --braces;
    if (name[i] == '<') ++corners;
    if (name[i] == '>') --corners;
    if (name[i] == '(' && braces == 0 && corners == 0 && !shorter.empty()) {
      const std::size_t behind = behind_bracket(name, i);
      // Those of a function around it stand in front of "::"; what follows its own is "const" and the like.
      if (behind == std::string_view::npos || !name.substr(behind).starts_with("::")) break;
      i = behind - 1;
      continue;
    }
    shorter += name[i];
  }
  return shorter;
}

std::string call_site(std::span<const StackFrame> frames, bool names_all) {
  if (frames.empty()) return "[no stack]";
  std::vector<std::size_t> named = own_frames(frames);
  if (names_all) {
    named.resize(frames.size());
    for (std::size_t i = 0; i < frames.size(); ++i) named[i] = i;
  } else if (named.size() > kNamedFrames) {
    named.resize(kNamedFrames);
  }
  std::string site;
  for (const std::size_t i : named) {
    const StackFrame& frame = frames[i];
    site += (site.empty() ? "" : " < ") + (names_all ? frame.name : without_parameters(frame.name)) + " (" +
            std::string(file_name(frame)) + (frame.line == 0 ? "" : ":" + std::to_string(frame.line)) + ")";
  }
  return site;
}

}  // namespace tenon
