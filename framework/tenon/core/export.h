// Symbol visibility: everything is hidden unless it carries TENON_API.
#pragma once

#if defined(TENON_BUILDING)
#define TENON_API __attribute__((visibility("default")))
#else
#define TENON_API
#endif

/// For classes whose type identity must be shared with plugins (exceptions, interfaces).
#define TENON_EXPORT __attribute__((visibility("default")))
