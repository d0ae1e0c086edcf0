// `tenon new allocator NAME`, `tenon new backend NAME`: out-of-tree projects that build against the installed package.
#include <tenon/cli/new_backend_templates.h>
#include <tenon/cli/new_templates.h>
#include <tenon/cli/verb.h>
#include <tenon/core/files/atomic_file.h>
#include <tenon/measure/bench/workload.h>
#include <tenon/memory/factory.h>
#include <tenon/memory/layers/layer.h>
#include <tenon/report/text/command_line.h>
#include <tenon/runtime/plugins/shipped_plugins.h>

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

namespace tenon::cli {

namespace fs = std::filesystem;

namespace {

struct NewOptions {
  std::string name;
  std::string folder;
};

/// What is begun: its word, how its class ends, and its files.
struct Project {
  const char* article;
  const char* what;
  const char* class_ending;
  std::span<const Template> files;
  std::string (*why_taken)(const std::string& name);
};

bool is_good_name(const std::string& name) {
  const auto plain = [](unsigned char c) { return std::islower(c) != 0 || std::isdigit(c) != 0 || c == '_'; };
  return !name.empty() && name.size() < 60 && std::islower(static_cast<unsigned char>(name.front())) != 0 &&
         std::all_of(name.begin(), name.end(), plain);
}

/// Why no plugin may be called so though it is a word; empty: one may.
std::string why_taken(const std::string& name) {
  const auto is_it = [&](std::string_view other) { return name == other; };
  if (std::ranges::any_of(shipped_plugins(), is_it) ||
      std::ranges::any_of(shipped_backends(), is_it, &ShippedBackend::kind))
    return "Tenon ships with a plugin of that name";
  return {};
}

/// The same of an allocator.
std::string why_taken_by_settings(const std::string& name) {
  if (std::string why = why_taken(name); !why.empty()) return why;
  const auto is_it = [&](std::string_view other) { return name == other; };
  const std::vector<LayerInfo>& layers = built_in_layers();
  if (std::ranges::any_of(layers, is_it, &LayerInfo::name))
    return fmt::format("[allocator.{}] in a file is the section of a layer", name);
  if (name == "name" || name == "layers") return fmt::format("allocator.{} in a file is another setting", name);
  if (name == kIdealAllocator || name == measure::kHarness) return "tables of results have a row of that name";
  return {};
}

/// my_cache -> MyCache, and an ending that no name in reach has.
std::string class_name(const std::string& name, const char* ending) {
  std::string text;
  bool upper = true;
  for (const char c : name) {
    if (c != '_') text += upper ? static_cast<char>(std::toupper(static_cast<unsigned char>(c))) : c;
    upper = c == '_';
  }
  return text + ending;
}

/// Where CMake finds the package that this program belongs to: PREFIX/bin/tenon, or the bin of a build folder.
std::string package_argument() {
  std::error_code problem;
  const fs::path program = fs::read_symlink("/proc/self/exe", problem);
  const fs::path prefix = program.parent_path().parent_path();
  if (problem || prefix.empty()) return "-DCMAKE_PREFIX_PATH=PREFIX";
  const bool is_build = fs::exists(prefix / "TenonConfig.cmake", problem);
  return shell_word(fmt::format("-D{}={}", is_build ? "Tenon_DIR" : "CMAKE_PREFIX_PATH", prefix.string()));
}

std::string filled_in(std::string_view pattern, const std::string& name, const char* class_ending) {
  std::string text(pattern);
  for (const auto& [mark, value] :
       {std::pair{std::string("@NAME@"), name}, std::pair{std::string("@CLASS@"), class_name(name, class_ending)},
        std::pair{std::string("@PACKAGE@"), package_argument()}}) {
    for (std::size_t at = 0; (at = text.find(mark, at)) != std::string::npos; at += value.size())
      text.replace(at, mark.size(), value);
  }
  return text;
}

/// All of them or none: half a project would stand in the way of the next try.
void write_files(const Project& project, const std::string& name, const fs::path& folder, bool is_new_folder) {
  const auto path_of = [&](const Template& file) { return folder / filled_in(file.path, name, project.class_ending); };
  try {
    for (const Template& file : project.files)
      write_atomically(path_of(file), filled_in(file.text, name, project.class_ending));
  } catch (const Error&) {
    std::error_code ignored;
    for (const Template& file : project.files) fs::remove(path_of(file), ignored);
    if (is_new_folder) fs::remove(folder, ignored);
    throw;
  }
}

ExitCode make_project(const Project& project, const NewOptions& options) {
  if (!is_good_name(options.name)) {
    throw ConfigError(
        fmt::format("\"{}\" cannot name {} {}: use lower-case letters, digits and '_', beginning with a letter",
                    options.name, project.article, project.what));
  }
  if (const std::string why = project.why_taken(options.name); !why.empty())
    throw ConfigError(
        fmt::format("\"{0}\" cannot name {2} {3}: {1}; my_{0} can", options.name, why, project.article, project.what));
  const fs::path folder = options.folder.empty() ? fs::path(options.name) : fs::path(options.folder);
  std::error_code problem;
  const bool is_new = fs::create_directories(folder, problem);
  if (problem) throw ConfigError(fmt::format("cannot make the folder {}: {}", folder.string(), problem.message()));
  if (!fs::is_empty(folder, problem)) {
    throw ConfigError(fmt::format("{} is not empty; choose another folder with --dir", folder.string()));
  }
  write_files(project, options.name, folder, is_new);
  print(
      fmt::format("A project for the {4} '{0}'. Build it, and test it:\n"
                  "  cmake -S {1} -B {2} {3}\n"
                  "  cmake --build {2}\n"
                  "  ctest --test-dir {2} --output-on-failure\n"
                  "\nfiles: {5}\n",
                  options.name, shell_word(folder.string()), shell_word((folder / "build").string()),
                  package_argument(), project.what, folder.string()));
  return ExitCode::kDone;
}

}  // namespace

void add_new(Verb program, Outcome& outcome) {
  static constexpr Project kAllocator{"an", "allocator", "Policy", kAllocatorTemplates, &why_taken_by_settings};
  static constexpr Project kBackend{"a", "backend", "", kBackendTemplates, &why_taken};
  const Verb verb = program.add_verb("new", "begin a plugin of your own");
  verb.require_verb(1);
  verb.footer(example("tenon new allocator my_cache"));
  const auto add = [&](const Project& project, const char* summary, const char* shown) {
    auto options = std::make_shared<NewOptions>();
    const Verb one = verb.add_verb(project.what, summary);
    one.add_option("name", options->name, fmt::format("name of the {}: lower-case letters, digits, '_'", project.what))
        .required();
    one.add_option("--dir", options->folder, "folder of the project; default: NAME").type_name("DIR");
    one.footer(example(shown));
    one.callback([&project, options, &outcome] { outcome.exit_code = make_project(project, *options); });
  };
  add(kAllocator, "write a project with one C++ file, a TOML file, a test and a README",
      "tenon new allocator my_cache --dir ~/my_cache");
  add(kBackend, "write a project with a device, three kernels and their tests", "tenon new backend my_device");
}

}  // namespace tenon::cli
