// What the tests of the runtime share: the fixture plugins, files in a folder of their own, and messages of errors.
#pragma once

#include "../support/message_of.h"

#include <tenon/core/error.h>
#include <tenon/core/units.h>
#include <tenon/runtime/config/config.h>

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace tenon::test {

inline std::filesystem::path fixture(const std::string& name) {
  return std::filesystem::path(TENON_FIXTURE_DIR) / (name + ".so");
}

/// A folder that lives as long as the test.
class Folder {
 public:
  Folder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "tenon-test-XXXXXX").string();
    path_ = ::mkdtemp(pattern.data());
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path write(const std::string& name, const std::string& text) const {
    std::filesystem::create_directories((path_ / name).parent_path());
    std::ofstream(path_ / name, std::ios::binary) << text;
    return path_ / name;
  }

 private:
  std::filesystem::path path_;
};

inline std::string read_bytes(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// The sections that the tests use beside the runtime's own.
inline std::vector<SectionSpec> test_sections() {
  return {{.name = "train",
           .summary = "for tests",
           .options = {OptionSpec::integer("epochs", 1, "passes").range(std::int64_t{1}, std::int64_t{1000}),
                       OptionSpec::integer("batch_size", 128, "examples").range(std::int64_t{1}, std::int64_t{4096}),
                       OptionSpec::real("lr", 0.1, "rate").range(0.0, 10.0),
                       OptionSpec::boolean("checkpoint", false, "recompute"), OptionSpec::size("budget", MiB, "a size"),
                       OptionSpec::text("optimizer", "adamw", "which").one_of({"sgd", "adamw"}),
                       OptionSpec::text("file", "", "a path")},
           .paths = {"file"}}};
}

inline Config load_text(const Folder& folder, const std::string& text, std::vector<std::string> overrides = {}) {
  ConfigRequest request;
  request.file = folder.write("exp.toml", text);
  request.overrides = std::move(overrides);
  request.sections = test_sections();
  return Config::load(request);
}

}  // namespace tenon::test
