// What the compiler is told of symbols: everything is hidden unless it carries TENON_API. And what it tells: which
// sanitizer the code is compiled for.
#pragma once

#if defined(TENON_BUILDING)
#define TENON_API __attribute__((visibility("default")))
#else
#define TENON_API
#endif

/// For classes whose type identity must be shared with plugins (exceptions, interfaces).
#define TENON_EXPORT __attribute__((visibility("default")))

/// "+asan", "+tsan", or empty: a literal, to be put behind another one.
#if defined(__SANITIZE_ADDRESS__)
#define TENON_SANITIZER "+asan"
#elif defined(__SANITIZE_THREAD__)
#define TENON_SANITIZER "+tsan"
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define TENON_SANITIZER "+asan"
#elif __has_feature(thread_sanitizer)
#define TENON_SANITIZER "+tsan"
#endif
#endif
#if !defined(TENON_SANITIZER)
#define TENON_SANITIZER ""
#endif

namespace tenon {

/// Whether a sanitizer has to see every object come and go.
inline constexpr bool kIsSanitized = sizeof(TENON_SANITIZER) > 1;

}  // namespace tenon
