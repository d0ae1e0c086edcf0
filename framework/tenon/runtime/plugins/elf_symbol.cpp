// Reading a symbol with elfutils' libelf: dynamic symbol table -> address -> segment -> bytes.
#include <tenon/runtime/plugins/elf_symbol.h>

#include <fcntl.h>
#include <gelf.h>
#include <libelf.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>

namespace tenon {

namespace {

#if defined(__x86_64__)
constexpr std::uint16_t kMachine = EM_X86_64;
#elif defined(__aarch64__)
constexpr std::uint16_t kMachine = EM_AARCH64;
#elif defined(__riscv)
constexpr std::uint16_t kMachine = EM_RISCV;
#else
constexpr std::uint16_t kMachine = EM_NONE;
#endif
constexpr unsigned char kByteOrder = std::endian::native == std::endian::little ? ELFDATA2LSB : ELFDATA2MSB;

struct Fault {
  ElfProblem problem;
  std::string detail;
};

[[noreturn]] void damaged(const char* what) {
  const char* reason = elf_errmsg(-1);
  throw Fault{ElfProblem::kDamaged, fmt::format("its {} cannot be read ({})", what, reason ? reason : "out of range")};
}

/// An open regular file. Reads, not maps, so that a file that shrinks meanwhile is an error and no signal.
class File {
 public:
  explicit File(const std::filesystem::path& path)
      : descriptor_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
    struct stat status {};
    if (descriptor_ < 0 || ::fstat(descriptor_, &status) != 0) {
      const int code = errno;
      close();
      throw Fault{ElfProblem::kUnreadable, std::strerror(code)};
    }
    if (!S_ISREG(status.st_mode)) {
      close();
      throw Fault{ElfProblem::kUnreadable, S_ISDIR(status.st_mode) ? "it is a folder" : "it is not a regular file"};
    }
    size_ = static_cast<std::uint64_t>(status.st_size);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  ~File() { close(); }

  int descriptor() const { return descriptor_; }
  std::uint64_t size() const { return size_; }

 private:
  void close() {
    if (descriptor_ >= 0) ::close(descriptor_);
    descriptor_ = -1;
  }
  int descriptor_;
  std::uint64_t size_ = 0;
};

struct EndElf {
  void operator()(Elf* elf) const { elf_end(elf); }
};
using ElfHandle = std::unique_ptr<Elf, EndElf>;

/// Throws unless the file is a whole shared library of this machine.
void check_kind(Elf* elf, const File& file) {
  if (elf_kind(elf) != ELF_K_ELF) {
    throw Fault{ElfProblem::kNotElf, file.size() < EI_NIDENT ? fmt::format("it has {} bytes", file.size())
                                                             : "it does not begin like an ELF file"};
  }
  const char* ident = elf_getident(elf, nullptr);
  if (ident[EI_CLASS] != ELFCLASS64 || ident[EI_DATA] != kByteOrder) {
    throw Fault{ElfProblem::kWrongMachine, "other word size or byte order"};
  }
  GElf_Ehdr header{};
  if (gelf_getehdr(elf, &header) == nullptr) damaged("header");
  if (header.e_machine != kMachine) {
    throw Fault{ElfProblem::kWrongMachine, fmt::format("ELF machine {}", header.e_machine)};
  }
  if (header.e_type != ET_DYN) throw Fault{ElfProblem::kNotShared, fmt::format("ELF type {}", header.e_type)};
  // libelf takes a section table that is cut off for none at all.
  const std::uint64_t table_bytes = std::uint64_t{header.e_shnum} * header.e_shentsize;
  if (table_bytes > file.size() || header.e_shoff > file.size() - table_bytes) {
    throw Fault{ElfProblem::kDamaged, fmt::format("its section table starts at byte {}, the file ends at {}: it looks "
                                                  "truncated",
                                                  header.e_shoff, file.size())};
  }
}

/// The segments that the loader maps. Throws where one of them ends behind the file.
std::vector<GElf_Phdr> loaded_segments(Elf* elf, const File& file) {
  std::size_t count = 0;
  if (elf_getphdrnum(elf, &count) != 0) damaged("program header table");
  std::vector<GElf_Phdr> segments;
  for (std::size_t i = 0; i < count; ++i) {
    GElf_Phdr segment{};
    if (gelf_getphdr(elf, static_cast<int>(i), &segment) == nullptr) damaged("program header table");
    if (segment.p_type != PT_LOAD) continue;
    if (segment.p_filesz > file.size() || segment.p_offset > file.size() - segment.p_filesz) {
      throw Fault{ElfProblem::kDamaged, fmt::format("a segment ends at byte {}, the file at {}: it looks truncated",
                                                    segment.p_offset + segment.p_filesz, file.size())};
    }
    segments.push_back(segment);
  }
  if (segments.empty()) throw Fault{ElfProblem::kDamaged, "it has no segments to load"};
  return segments;
}

/// Of the dynamic symbol table: what the loader would find under that name.
std::optional<GElf_Sym> find_symbol(Elf* elf, std::string_view name) {
  bool has_table = false;
  for (Elf_Scn* section = nullptr; (section = elf_nextscn(elf, section)) != nullptr;) {
    GElf_Shdr header{};
    if (gelf_getshdr(section, &header) == nullptr) damaged("section header table");
    if (header.sh_type != SHT_DYNSYM || header.sh_entsize == 0) continue;
    has_table = true;
    Elf_Data* const table = elf_getdata(section, nullptr);
    if (table == nullptr) damaged("symbol table");
    const std::size_t count = std::min<std::size_t>(header.sh_size / header.sh_entsize, INT32_MAX);
    for (std::size_t i = 0; i < count; ++i) {
      GElf_Sym symbol{};
      if (gelf_getsym(table, static_cast<int>(i), &symbol) == nullptr) break;
      if (symbol.st_shndx == SHN_UNDEF || GELF_ST_TYPE(symbol.st_info) != STT_OBJECT) continue;
      const char* text = elf_strptr(elf, header.sh_link, symbol.st_name);
      if (text != nullptr && text == name) return symbol;
    }
  }
  if (!has_table) throw Fault{ElfProblem::kNotShared, "it has no dynamic symbols"};
  return std::nullopt;
}

/// Bytes of the file that the loader places at a virtual address.
std::vector<std::byte> bytes_at(Elf* elf, const std::vector<GElf_Phdr>& segments, std::uint64_t address,
                                std::size_t count) {
  for (const GElf_Phdr& segment : segments) {
    if (address < segment.p_vaddr || address - segment.p_vaddr >= segment.p_filesz) continue;
    const std::uint64_t within = address - segment.p_vaddr;
    if (count > segment.p_filesz - within) break;
    if (count == 0) return {};
    Elf_Data* const data =
        elf_getdata_rawchunk(elf, static_cast<std::int64_t>(segment.p_offset + within), count, ELF_T_BYTE);
    if (data == nullptr || data->d_size < count) damaged("descriptor");
    const auto* const begin = static_cast<const std::byte*>(data->d_buf);
    return {begin, begin + count};
  }
  throw Fault{ElfProblem::kDamaged, "its descriptor points outside the file"};
}

}  // namespace

ElfSymbol read_elf_symbol(const std::filesystem::path& path, std::string_view symbol, std::size_t max_bytes) {
  ElfSymbol result;
  try {
    const File file(path);
    if (elf_version(EV_CURRENT) == EV_NONE) damaged("version");
    const ElfHandle elf(elf_begin(file.descriptor(), ELF_C_READ, nullptr));
    if (elf == nullptr) damaged("beginning");
    check_kind(elf.get(), file);
    const std::vector<GElf_Phdr> segments = loaded_segments(elf.get(), file);
    const auto found = find_symbol(elf.get(), symbol);
    if (!found) throw Fault{ElfProblem::kNoSymbol, fmt::format("it exports no data symbol {}", symbol)};
    result.size = found->st_size;
    result.bytes = bytes_at(elf.get(), segments, found->st_value, std::min<std::size_t>(found->st_size, max_bytes));
  } catch (const Fault& fault) {
    result.problem = fault.problem;
    result.detail = fault.detail;
    result.bytes.clear();
  }
  return result;
}

}  // namespace tenon
