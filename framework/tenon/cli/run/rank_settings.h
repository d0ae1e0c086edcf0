// Settings of the ranks of one run: whether all of them were started with the same.
#pragma once

#include <tenon/comm/communicator.h>
#include <tenon/runtime/config/config.h>

#include <string>

namespace tenon::cli {

/// Ranks whose settings differ would train to a wrong end without a word. Every rank calls it. Throws ConfigError on
/// rank 0 that names the keys, and which ranks have which values; on the others DistributedError with its words.
///
/// What may differ, because it is of a rank's machine or changes no number: where files, plugins and results are
/// (`name`, `plugins`, `data.path`, what `train.save` and `train.resume` are called), what rank 0 alone writes
/// (`report`), which of its devices a rank uses, what such a device is like, and how its memory is allotted (`device`,
/// `allocator`), threads (`train.threads`), and patience (`timeout` of a communicator). The kind of the devices and
/// their number are the same.
///
/// `verb`: what the ranks do with them, in words; "--dry-run" and "a run" differ.
void compare_settings(Communicator& ranks, const Config& config, const std::string& verb = "a run");

}  // namespace tenon::cli
