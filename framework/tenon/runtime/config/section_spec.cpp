// The runtime's own sections.
#include <tenon/runtime/allocator_spec.h>
#include <tenon/runtime/config/recordings.h>
#include <tenon/runtime/config/section_spec.h>
#include <tenon/runtime/device_setup.h>

#include <algorithm>

namespace tenon {

bool is_device_memory(const SectionSpec& section, const OptionSpec& option) {
  return section.name.starts_with("device.") && option.name == kCapacityOption;
}

std::vector<std::string> split_list(const std::string& joined) {
  std::vector<std::string> items;
  std::size_t begin = 0;
  while (begin < joined.size()) {
    const std::size_t comma = std::min(joined.find(',', begin), joined.size());
    if (comma > begin) items.push_back(joined.substr(begin, comma - begin));
    begin = comma + 1;
  }
  return items;
}

std::vector<SectionSpec> runtime_sections() {
  std::vector<SectionSpec> sections;
  sections.push_back(
      {.name = "",
       .summary = "the experiment",
       .options = {OptionSpec::text("name", "", "what its results are filed under; the file's name if empty")}});
  sections.push_back(
      {.name = "plugins",
       .summary = "where plugins come from",
       .options = {OptionSpec::text("search", "", "folders to look for plugins in, relative to the file"),
                   OptionSpec::text("load", "", "plugins to load first: names, or paths to .so files")},
       .lists = {"search", "load"}});
  sections.push_back(
      {.name = "device",
       .summary = "what computes",
       .options = {OptionSpec::text("name", "cpu", "a kind with an optional index: cpu, cuda:0, simulated:0"),
                   OptionSpec::text("names", "",
                                    "in its place: devices among which every batch is divided (data parallelism)")},
       .lists = {"names"}});
  sections.push_back(
      {.name = "allocator",
       .summary = "what decides where each tensor goes",
       .options = {OptionSpec::text(
                       "name", std::string(kDefaultAllocator),
                       "a policy's name, a path to a plugin, or either with options: caching:max_split_size=1MiB"),
                   OptionSpec::text("layers", "", "adaptors around the policy, outermost first")},
       .lists = {"layers"}});
  sections.push_back(
      {.name = "distributed",
       .summary = "several processes, the ranks, that train one model together (data parallelism)",
       .options = {
           OptionSpec::text("name", "", "the communicator between them, which a plugin supplies; empty: one process"),
           OptionSpec::size("bucket_cap", std::size_t{25} << 20,
                            "gradients are summed over the ranks in buckets of this size"),
           OptionSpec::boolean("overlap", true, "a bucket is on its way while backward goes on, not when it has ended"),
           OptionSpec::text("shard", "none",
                            "what is divided over the ranks instead of being on each: nothing, what the optimiser "
                            "remembers (ZeRO 1), that and gradients (ZeRO 2), or parameters too (ZeRO 3, FSDP)")
               .one_of({"none", "optimizer", "gradients", "parameters"}),
           OptionSpec::boolean("prefetch", true,
                               "with shard = \"parameters\": the next block is on its way while one computes"),
           OptionSpec::boolean("broadcast_buffers", true,
                               "what batch norm remembers becomes that of rank 0 before each step"),
           OptionSpec::boolean("find_unused_parameters", false,
                               "for models of which a step does not use every parameter")}});
  sections.push_back(
      {.name = "report",
       .summary = "what a run leaves behind besides result.json and config.resolved.toml",
       .options = {OptionSpec::boolean("html", true, "report.html: one offline page"),
                   OptionSpec::boolean("timeline", true, "a memory sample after each step in result.json"),
                   OptionSpec::boolean("losses", true, "every step's loss in result.json"),
                   OptionSpec::boolean("estimate", true, "the estimate of --dry-run beside what was measured"),
                   OptionSpec::boolean("by_purpose", false,
                                       "columns for what the memory was for, beside what theory expects"),
                   OptionSpec::boolean("attribution", false,
                                       "whose the memory was at the peak: by module, purpose, operator and phase"),
                   OptionSpec::text("record", "", "what else is written: " + recording_words(true)),
                   OptionSpec::boolean(
                       "stacks", true,
                       "call stacks in the snapshot, the folded stacks and, with attribution, the report of a failure"),
                   OptionSpec::boolean("replay_ooms", true,
                                       "out of memory: replay what led there under the other allocators")},
       .lists = {"record"}});
  return sections;
}

}  // namespace tenon
