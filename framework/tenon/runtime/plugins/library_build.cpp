// The note NT_GNU_BUILD_ID of the library that this code is in. By hand: libelf reads the file, which may have been
// replaced since it was loaded; a hash of its ten megabytes would take each run longer, and has the same fault.
#include <tenon/runtime/plugins/library_build.h>

#include <tenon/runtime/plugins/sha256.h>

#include <dlfcn.h>
#include <elf.h>
#include <link.h>

#include <fmt/format.h>

#include <cstring>
#include <exception>

namespace tenon {

namespace {

struct Search {
  ElfW(Addr) inside = 0;  ///< an address in the library that is meant
  std::string build_id;
};

/// Notes: three words, then the owner's name and the content, each padded to four bytes.
std::string build_id_in(const char* note, std::size_t bytes) {
  const auto padded = [](std::size_t size) { return (size + 3) / 4 * 4; };
  while (bytes >= sizeof(ElfW(Nhdr))) {
    ElfW(Nhdr) head;
    std::memcpy(&head, note, sizeof head);
    const std::size_t content = sizeof head + padded(head.n_namesz), end = content + padded(head.n_descsz);
    if (end > bytes) return {};
    if (head.n_type == NT_GNU_BUILD_ID) {
      std::string digits;
      for (std::size_t i = 0; i < head.n_descsz; ++i)
        digits += fmt::format("{:02x}", static_cast<unsigned char>(note[content + i]));
      return digits;
    }
    note += end;
    bytes -= end;
  }
  return {};
}

int look_at(dl_phdr_info* library, std::size_t /*size*/, void* data) {
  auto& search = *static_cast<Search*>(data);
  bool is_it = false;
  std::string build_id;
  for (int i = 0; i < library->dlpi_phnum; ++i) {
    const ElfW(Phdr)& part = library->dlpi_phdr[i];
    const ElfW(Addr) begin = library->dlpi_addr + part.p_vaddr;
    if (part.p_type == PT_LOAD) is_it |= search.inside >= begin && search.inside < begin + part.p_memsz;
    if (part.p_type == PT_NOTE && build_id.empty())
      build_id = build_id_in(reinterpret_cast<const char*>(begin), part.p_memsz);
  }
  if (is_it) search.build_id = std::move(build_id);
  return is_it ? 1 : 0;
}

std::string find() {
  Search search{.inside = reinterpret_cast<ElfW(Addr)>(&library_build), .build_id = {}};
  ::dl_iterate_phdr(&look_at, &search);
  Dl_info file{};
  if (!search.build_id.empty() || ::dladdr(reinterpret_cast<const void*>(&library_build), &file) == 0)
    return search.build_id;
  try {
    return sha256_of_file(file.dli_fname);
  } catch (const std::exception&) {  // the file is gone: nothing can be said
    return {};
  }
}

}  // namespace

const std::string& library_build() {
  static const std::string found = find();
  return found;
}

}  // namespace tenon
