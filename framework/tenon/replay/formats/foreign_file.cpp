// Told by their first bytes, as file(1) does.
#include <tenon/replay/formats/foreign_file.h>

#include <fmt/format.h>

#include <array>

namespace tenon::replay {

namespace {

using namespace std::string_view_literals;

struct ForeignFile {
  std::string_view begins;
  std::string_view advice;  ///< {0}: the file's name
};

constexpr auto kArchive = "{}; unpack it and name the history in it: {} {}"sv;

struct Packed {
  std::string_view begins;
  std::string_view what;
  std::string_view command;
};
constexpr std::array kPacked = {
    Packed{"PK\x03\x04"sv, "a zip archive", "unzip"},
    Packed{"(\xb5\x2f\xfd"sv, "compressed by zstd", "unzstd"},
    Packed{"\xfd"
           "7zXZ"sv,
           "compressed by xz", "unxz -k"},
    Packed{"BZh"sv, "compressed by bzip2", "bunzip2 -k"},
    Packed{"7z\xbc\xaf"sv, "a 7z archive", "7z x"},
    Packed{"\x04\x22\x4d\x18"sv, "compressed by lz4", "unlz4"},
};

constexpr std::array kOthers = {
    ForeignFile{"<!DOCTYPE"sv, "a page, not a history: name the file that it was made from"},
    ForeignFile{"<html"sv, "a page, not a history: name the file that it was made from"},
    ForeignFile{"\x7f"
                "ELF"sv,
                "a program or a plugin, not a history"},
    ForeignFile{"\x89PNG"sv, "a picture, not a history"},
    ForeignFile{"#!"sv, "a script, not a history"},
};

/// torch.save writes a zip whose first entry is NAME/data.pkl.
bool is_of_torch_save(std::string_view head) {
  return head.starts_with("PK\x03\x04"sv) && head.substr(0, 256).find("/data.pkl") != std::string_view::npos;
}

}  // namespace

std::string foreign_file_advice(std::string_view head, std::string_view path) {
  if (is_of_torch_save(head)) {
    return "a zip archive of torch.save; a snapshot is written by torch.cuda.memory._dump_snapshot(\"memory.pickle\"), "
           "or by pickle.dump of torch.cuda.memory._snapshot()";
  }
  for (const Packed& packed : kPacked) {
    if (head.starts_with(packed.begins)) return fmt::format(kArchive, packed.what, packed.command, path);
  }
  constexpr std::size_t kTarMark = 257;
  if (head.size() > kTarMark && head.substr(kTarMark).starts_with("ustar"))
    return fmt::format(kArchive, "a tar archive", "tar xf", path);
  for (const ForeignFile& other : kOthers) {
    if (head.starts_with(other.begins)) return std::string(other.advice);
  }
  return {};
}

}  // namespace tenon::replay
