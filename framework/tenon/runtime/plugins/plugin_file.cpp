// The checks at the door. Each refusal is a sentence that ends with what to do.
#include <tenon/core/error.h>
#include <tenon/plugin/descriptor.h>
#include <tenon/runtime/plugins/elf_symbol.h>
#include <tenon/runtime/plugins/plugin_file.h>

#include <dlfcn.h>

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstring>

namespace tenon {

namespace {

using plugin::Descriptor;

[[noreturn]] void refuse(const std::filesystem::path& path, const std::string& what) {
  throw PluginError(fmt::format("plugin {}: {}", path.string(), what));
}

std::string explain(const ElfSymbol& read) {
  const std::string& detail = read.detail;
  switch (read.problem) {
    case ElfProblem::kUnreadable:
      return fmt::format("cannot be read: {}; check the path and its permissions", detail);
    case ElfProblem::kNotElf:
      return fmt::format(
          "not a shared library: {}; a plugin is a .so built with tenon_add_allocator or tenon_add_plugin", detail);
    case ElfProblem::kWrongMachine:
      return fmt::format("built for another kind of machine ({}); rebuild it on this one", detail);
    case ElfProblem::kNotShared:
      return fmt::format(
          "an ELF file, but not a shared library ({}); build it with tenon_add_allocator or "
          "tenon_add_plugin, which make loadable modules",
          detail);
    case ElfProblem::kDamaged:
      return fmt::format("damaged or truncated: {}; copy or build it again", detail);
    case ElfProblem::kNoSymbol:
      return fmt::format(
          "a shared library, but no Tenon plugin: {}; end one of its sources with TENON_ALLOCATOR or "
          "TENON_PLUGIN",
          detail);
    case ElfProblem::kNone:
      break;
  }
  return {};
}

/// A field of the descriptor as text; empty unless it is terminated and plain, since it ends up on terminals.
template <std::size_t N>
std::string text_of(const char (&field)[N]) {
  const char* end = static_cast<const char*>(std::memchr(field, '\0', N));
  if (end == nullptr) return {};
  const std::string text(static_cast<const char*>(field), end);
  const bool plain = std::all_of(text.begin(), text.end(), [](unsigned char c) { return c > ' ' && c < 0x7f; });
  return plain ? text : std::string();
}

constexpr std::string_view kAsan = "+asan";

/// Whether AddressSanitizer is in this process, built in or by LD_PRELOAD.
bool has_address_sanitizer() { return ::dlsym(RTLD_DEFAULT, "__asan_init") != nullptr; }

/// A plugin under AddressSanitizer alone goes with a Tenon without it, where the sanitizer was loaded first.
bool fits(const std::string& theirs) {
  const std::string ours = plugin::kBuildTag;
  return theirs == ours || (theirs == ours + std::string(kAsan) && has_address_sanitizer());
}

std::string explain_build_tag(const std::string& theirs) {
  const std::string ours = plugin::kBuildTag;
  const std::string both = fmt::format("it was built as '{}', this Tenon as '{}'", theirs, ours);
  const auto has = [](const std::string& tag, const char* word) { return tag.find(word) != std::string::npos; };
  const auto without_sanitizers = [](const std::string& tag) { return tag.substr(0, tag.find('+')); };
  if (theirs == ours + std::string(kAsan)) {
    return fmt::format(
        "{}; load the sanitizer first: LD_PRELOAD=$(gcc -print-file-name=libasan.so) "
        "ASAN_OPTIONS=detect_leaks=0 tenon …",
        both);
  }
  if (without_sanitizers(theirs) == without_sanitizers(ours)) {
    return fmt::format("{}; build both with the same sanitizers (TENON_SANITIZE)", both);
  }
  if (has(theirs, "libc++") != has(ours, "libc++")) return both + "; build both with the same C++ standard library";
  return both + "; rebuild the plugin with the compiler and the flags of this Tenon";
}

}  // namespace

PluginFile inspect_plugin_file(const std::filesystem::path& given) {
  const auto path = std::filesystem::absolute(given).lexically_normal();
  const ElfSymbol read = read_elf_symbol(path, plugin::kDescriptorSymbol, sizeof(Descriptor));
  if (read.problem != ElfProblem::kNone) refuse(path, explain(read));

  // Magic, size and ABI come first in the struct and stay there in every version; the rest is read once those fit.
  Descriptor descriptor{};
  std::memcpy(&descriptor, read.bytes.data(), read.bytes.size());
  if (read.bytes.size() < offsetof(Descriptor, build_tag) ||
      std::memcmp(static_cast<const char*>(descriptor.magic), static_cast<const char*>(plugin::kMagic),
                  sizeof descriptor.magic) != 0) {
    refuse(path, fmt::format("its symbol {} does not hold a Tenon plugin descriptor; define it with TENON_PLUGIN only",
                             plugin::kDescriptorSymbol));
  }
  const std::string abi = fmt::format("{}.{}", descriptor.abi_major, descriptor.abi_minor);
  const std::string host_abi = fmt::format("{}.{}", plugin::kAbiMajor, plugin::kAbiMinor);
  const std::string versions =
      fmt::format("built for plugin ABI {}, this Tenon {} has {}", abi, TENON_VERSION, host_abi);
  if (descriptor.abi_major < plugin::kAbiMajor) refuse(path, versions + "; rebuild the plugin against this Tenon");
  if (descriptor.abi_major > plugin::kAbiMajor || descriptor.abi_minor > plugin::kAbiMinor) {
    refuse(path, versions + "; update Tenon, or rebuild the plugin against this one");
  }
  if (descriptor.struct_size < sizeof(Descriptor) || read.bytes.size() < sizeof(Descriptor)) {
    refuse(path, fmt::format("its descriptor has {} bytes, {} are expected for plugin ABI {}; rebuild the plugin",
                             std::min<std::size_t>(descriptor.struct_size, read.size), sizeof(Descriptor), abi));
  }
  PluginFile file{path,
                  text_of(descriptor.name),
                  text_of(descriptor.version),
                  text_of(descriptor.build_tag),
                  descriptor.abi_major,
                  descriptor.abi_minor};
  if (file.name.empty()) refuse(path, "its descriptor has no readable name; define it with TENON_PLUGIN only");
  if (!fits(file.build_tag)) refuse(path, explain_build_tag(file.build_tag));
  return file;
}

}  // namespace tenon
