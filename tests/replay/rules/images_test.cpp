// Pictures of devices: what a replay makes of drawn histories on devices that are large enough and that are not, as
// each format writes it. Recorded in images.txt; who changes any of it on purpose writes the table anew
// (support/recorded_table.h), with the filter ImagesTable*.
#include "replay/drawn_history.h"
#include "replay/support.h"
#include "support/recorded_table.h"

#include <tenon/replay/formats/image/snapshot_image.h>
#include <tenon/replay/formats/writers.h>
#include <tenon/runtime/allocator_spec.h>
#include <tenon/runtime/plugins/plugins.h>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

namespace tenon::replay {
namespace {

/// The events in which histories differ most, hand made: what lived before, failures, frees that wait, marks.
constexpr char kEventful[] =
    "# allocator: mine\na 0 3000000 0\na 1 5000 0\nm recording starts\nm step 0\na 2 700000 3\nu 2 0\nf 2\n"
    "m tenon:failed 3 40000000 1000\na 3 90000000 0\nf 3\na 4 30000000 0\nu 4 5\nm tenon:deferred 4\nf 4\ne\n"
    "a 5 20000000 5\nm tenon:completed 4\nm step 1\nf 0\na 6 1000 3\nf 6\nf 1\nm END step 1\ne\n";

TEST(ImagesTable, OfReplaysAreWrittenAsTheyWere) {
  load_all_plugins();
  static test::RecordedTable table("tests/replay/rules/images.txt");
  for (const int which : {0, 81, 82}) {
    Trace trace = which == 0 ? read_one(kEventful) : drawn_history(static_cast<std::uint64_t>(which), 120, which == 81);
    if (which == 82) trace.header.clear();
    for (const char* spec :
         {"direct", "caching", "expandable",
          "caching:max_split_size=64MiB,roundup_power2_divisions=4,garbage_collection_threshold=0.5"})
      for (const int percent : {0, 60, 110})
        for (const Failures failures : {Failures::kAttempted, Failures::kKept}) {
          const std::uint64_t capacity = trace.facts.peak_requested_bytes * static_cast<std::uint64_t>(percent) / 100;
          std::string outcome;
          try {
            const SnapshotImage image =
                image_of_replay(trace, allocator_from_spec(spec),
                                percent == 0 ? std::nullopt : std::optional<std::uint64_t>(capacity), failures);
            outcome = fmt::format("{} events, {} seeds, {} failures, {} left", image.events.size(), image.seeded_blocks,
                                  image.failures.size(), image.unlisted_bytes);
            for (const Format* const format : formats()) {
              if (format->write_image == nullptr) continue;
              const std::string path = scratch("image");
              format->write_image(image, path);
              outcome += fmt::format(", {} {}", format->name, hash_of(content(path)));
              std::filesystem::remove(path);
            }
          } catch (const Error& error) {
            outcome = "refused, " + one_line(error.what());
          }
          table.expect(fmt::format("{} under {} on {} %{}", which, spec, percent,
                                   failures == Failures::kKept ? ", failures kept" : ""),
                       outcome);
        }
  }
}

}  // namespace
}  // namespace tenon::replay
