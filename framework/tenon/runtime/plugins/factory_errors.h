// Errors of an allocator's constructor, which knows neither the name that it was asked for by nor its own file.
#pragma once

#include <tenon/memory/factory.h>

#include <filesystem>

namespace tenon {

/// The allocator, whose factory now says "allocator 'mine' (/path/mine.so) was not made: …" before what it throws.
/// ConfigError and PluginError stay what they are; errors that say more than words, as OutOfMemory does, pass.
AllocatorInfo with_named_errors(AllocatorInfo info, const std::filesystem::path& plugin);

}  // namespace tenon
