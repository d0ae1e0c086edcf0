// ThreadStart: which line a thread works for. Its call stacks go on with those of the thread that started it.
//
//   const ThreadStart start;                 // in the thread that starts another
//   std::thread([start] {
//     const ThreadStart::Scope here(start);  // stacks that are taken here end in the starter's main()
//     ...
//   });
#pragma once

#include <vector>

namespace tenon {

/// The call stack of the thread that makes it.
class ThreadStart {
 public:
  ThreadStart();

  /// For as long as it lives, stacks of this thread go on with that one, which has to live as long.
  class Scope {
   public:
    explicit Scope(const ThreadStart& start) noexcept;
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    const std::vector<void*>* before_;
  };

 private:
  std::vector<void*> addresses_;
};

}  // namespace tenon
