// What a source that carries mutants is compiled with (`-include`, see README.md): one number decides which of them is
// on.
//
//   MUTANT=17              mutant 17 is on, in this process and in those that it starts
//   MUTANT_REACH=FILE      none is on; each that is evaluated adds its number to FILE, once a process
#pragma once
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

namespace tenon_mutants {

inline constexpr int kUnread = -1;  // the environment has not been asked yet
inline constexpr int kWatch = -2;   // none is on, and which are reached is written down
inline constexpr int kMost = 1 << 16;

// No std::atomic: the sources under tests/schedules are compiled with another one.
[[gnu::visibility("hidden")]] inline int active = kUnread;
[[gnu::visibility("hidden")]] inline unsigned char seen[kMost];

[[gnu::visibility("hidden")]] inline void note(int id) noexcept {
  if (__atomic_load_n(&seen[id], __ATOMIC_RELAXED) != 0 || __atomic_exchange_n(&seen[id], 1, __ATOMIC_RELAXED) != 0) {
    return;
  }
  const int before = errno;
  char line[16];
  int at = sizeof(line);
  line[--at] = '\n';
  for (int rest = id; rest > 0; rest /= 10) {
    line[--at] = static_cast<char>('0' + rest % 10);
  }
  const int file = open(getenv("MUTANT_REACH"), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
  if (file >= 0) {
    [[maybe_unused]] const auto written = write(file, line + at, sizeof(line) - static_cast<unsigned>(at));
    close(file);
  }
  errno = before;
}

[[gnu::visibility("hidden")]] inline bool decide(int id) noexcept {
  int now = __atomic_load_n(&active, __ATOMIC_RELAXED);
  if (now == kUnread) {
    const char* chosen = getenv("MUTANT");
    now = chosen != nullptr ? atoi(chosen) : getenv("MUTANT_REACH") != nullptr ? kWatch : 0;
    __atomic_store_n(&active, now, __ATOMIC_RELAXED);
  }
  if (now == kWatch) {
    note(id);
  }
  return now == id;
}

// In a constant expression no mutant is on.
[[gnu::visibility("hidden")]] constexpr bool on(int id) noexcept {
  return __builtin_is_constant_evaluated() ? false : decide(id);
}

}  // namespace tenon_mutants
