// The scope of a module whose forward is under way: the library's modules open it in forward(), holders and AnyModule
// for every module that is called through them. A module that is inside of its own scope opens no second one.
#pragma once

#include <tenon/core/export.h>
#include <tenon/core/scope/scope.h>

#include <string>

namespace tenon::nn {

class Module;

/// What its users call a module's type: "Gpt" of a tenon::train::GptImpl.
TENON_API std::string type_name_of(const Module& module);

/// `const ModuleScope scope(*this);` at the head of a forward(). Where nobody listens (core/scope/scope.h) it is a
/// branch.
class ModuleScope {
 public:
  explicit ModuleScope(const Module& module) noexcept {
    if (scopes::is_listening()) [[unlikely]]
      enter(module);
  }
  ~ModuleScope() {
    if (is_entered_) [[unlikely]]
      leave();
  }
  ModuleScope(const ModuleScope&) = delete;
  ModuleScope& operator=(const ModuleScope&) = delete;

 private:
  TENON_API void enter(const Module& module) noexcept;
  TENON_API void leave() noexcept;

  scopes::Scope scope_;
  const Module* outer_ = nullptr;
  bool is_entered_ = false;
};

}  // namespace tenon::nn
