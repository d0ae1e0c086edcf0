// What each shipped allocator says of itself before it serves anything: traits at each edge of its options, and which
// options it refuses, alone and beside each other, in which words. Recorded in declared.txt; who changes one on purpose
// writes the table anew (support/recorded_table.h), with the filter Declared*.
#include "support/recorded_table.h"

#include <tenon/core/error.h>
#include <tenon/core/option_edges.h>
#include <tenon/core/units.h>
#include <tenon/memory/sources/address_only_source.h>
#include <tenon/runtime/allocator_spec.h>
#include <tenon/runtime/plugins/plugins.h>

#include <gtest/gtest.h>

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <regex>
#include <string>
#include <utility>
#include <vector>

namespace tenon {
namespace {

void expect_declared(const std::string& what, std::string outcome) {
  static test::RecordedTable table("tests/allocators/declared.txt");
  std::ranges::replace(outcome, '\n', '|');
  table.expect(what, outcome);
}

/// Values of an option that may matter: its edges, and what others of its kind begin or end to matter at.
std::vector<std::pair<std::string, std::string>> values_of(const OptionSchema& schema) {
  std::vector<std::pair<std::string, std::string>> values;
  for (const OptionSpec& spec : schema) {
    if (spec.name == "record") continue;  // it would be written
    const auto add = [&](const std::string& text) {
      Options options(schema);
      try {
        options.set_text(spec.name, text);
        values.emplace_back(spec.name, text);
      } catch (const ConfigError&) {
        // beyond its range
      }
    };
    for (const OptionEdge& edge : option_edges({spec})) add(to_string(edge.value));
    if (spec.type == OptionType::kSize)
      for (const char* const text :
           {"0", "1B", "1MiB", "10MiB", "11MiB", "12MiB", "19MiB", "20MiB", "20971521B", "22MiB", "1TiB"})
        add(text);
    if (spec.type == OptionType::kReal)
      for (const char* const text : {"0.5", "0.999", "1"}) add(text);
    if (spec.type == OptionType::kText && spec.choices.empty())
      for (const char* const text : {"", "3", "8", "[64:8,>:1]", "0.5", "1GiB", "x"}) add(text);
  }
  return values;
}

struct Refusals {
  int tried = 0, refused = 0;
  std::map<std::string, int> words;
};

void try_to_make(const AllocatorInfo& info, const Options& options, Refusals& refusals) {
  for (const std::size_t page : {2 * MiB, std::size_t{0}}) {
    AddressOnlySource device({.device = "addresses", .capacity_bytes = 1 * GiB, .page_bytes = page});
    ++refusals.tried;
    try {
      const auto policy = info.create({.source = device, .options = options});
      EXPECT_NE(policy, nullptr);
    } catch (const Error& error) {
      ++refusals.refused;
      static const std::regex path(R"( \([^ ]*\.so\))");
      ++refusals.words[std::regex_replace(std::string(error.what()), path, "")];
    }
  }
}

class Declared : public testing::TestWithParam<const char*> {};

TEST_P(Declared, TraitsAndRefusalsAreThoseOfTheTable) {
  const AllocatorInfo& info = allocator_from_spec(GetParam()).policy;
  const std::string name = GetParam();
  std::string declared =
      fmt::format("{}, {}, '{}'", info.summary, info.traits.is_baseline ? "a baseline" : "no baseline",
                  info.traits.pytorch_conf.value_or("none"));
  std::string with, needs;
  Refusals alone, paired;
  const auto values = values_of(info.options);
  const auto describe = [&](const Options& options) {
    const std::size_t alignment = info.traits.alignment ? info.traits.alignment(options) : 0;
    const bool depends = !info.traits.depends_on_capacity || info.traits.depends_on_capacity(options);
    return fmt::format("{}{}", alignment, depends ? " by capacity" : "");
  };
  const std::string usual = describe(Options(info.options));
  declared += " aligns to " + usual;
  for (const auto& [option, text] : values) {
    Options options(info.options);
    options.set_text(option, text);
    if (const std::string its = describe(options); its != usual)
      declared += fmt::format(" | {}={} to {}", option, text, its);
    try_to_make(info, options, alone);
    for (const auto& [other, its_text] : values) {
      if (other <= option) continue;
      Options both = options;
      both.set_text(other, its_text);
      try_to_make(info, both, paired);
    }
  }
  AddressOnlySource device;
  const auto policy = info.create({.source = device, .options = Options(info.options)});
  declared += policy->is_thread_safe() ? " | for many threads" : " | for one thread at a time";
  expect_declared("traits of " + name, declared);
  for (const auto& [what, refusals] : {std::pair("alone", &alone), std::pair("paired", &paired)}) {
    expect_declared(fmt::format("refused of {} {}", name, what),
                    fmt::format("{} of {}", refusals->refused, refusals->tried));
    int number = 0;
    for (const auto& [text, count] : refusals->words)
      expect_declared(fmt::format("refusal {} of {} {}", ++number, name, what),
                      fmt::format("{} times, {}", count, text));
  }
}

INSTANTIATE_TEST_SUITE_P(Of, Declared,
                         testing::Values("arena", "bfc", "buddy", "caching", "cub_bins", "direct", "driver_async",
                                         "expandable", "mortise", "planned", "rmm_arena", "rmm_pool", "slab_by_lcm",
                                         "stitching", "tlsf"),
                         [](const auto& param) { return std::string(param.param); });

}  // namespace
}  // namespace tenon
