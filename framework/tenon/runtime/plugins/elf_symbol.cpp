// A small ELF64 reader: program headers -> dynamic section -> hash table -> symbol -> bytes. Everything is
// bounds-checked.
#include <tenon/runtime/plugins/elf_symbol.h>

#include <elf.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstdint>
#include <cstring>
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
constexpr std::size_t kMaxChain = 1 << 20;  // symbols looked at before a hash chain counts as damaged

struct Fault {
  ElfProblem problem;
  std::string detail;
};

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

  std::uint64_t size() const { return size_; }

  void read(std::uint64_t offset, void* into, std::size_t bytes, const char* what) const {
    if (bytes > size_ || offset > size_ - bytes) {
      throw Fault{ElfProblem::kDamaged,
                  fmt::format("its {} would lie at offset {} + {} bytes, the file has {}", what, offset, bytes, size_)};
    }
    auto* to = static_cast<char*>(into);
    while (bytes != 0) {
      const ssize_t got = ::pread(descriptor_, to, bytes, static_cast<off_t>(offset));
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) throw Fault{ElfProblem::kUnreadable, got < 0 ? std::strerror(errno) : "it shrank while being read"};
      to += got;
      offset += static_cast<std::uint64_t>(got);
      bytes -= static_cast<std::size_t>(got);
    }
  }
  template <class T>
  T get(std::uint64_t offset, const char* what) const {
    T value;
    read(offset, &value, sizeof value, what);
    return value;
  }

 private:
  void close() {
    if (descriptor_ >= 0) ::close(descriptor_);
    descriptor_ = -1;
  }
  int descriptor_;
  std::uint64_t size_ = 0;
};

// The file as the loader would place it: virtual addresses are translated through the PT_LOAD entries.
class Image {
 public:
  explicit Image(const File& file) : file_(file) {
    unsigned char ident[EI_NIDENT] = {};
    if (file.size() < EI_NIDENT) throw Fault{ElfProblem::kNotElf, fmt::format("it has {} bytes", file.size())};
    file.read(0, ident, sizeof ident, "identification");
    if (std::memcmp(ident, ELFMAG, SELFMAG) != 0)
      throw Fault{ElfProblem::kNotElf, "it does not begin like an ELF file"};
    if (ident[EI_CLASS] != ELFCLASS64 || ident[EI_DATA] != kByteOrder) {
      throw Fault{ElfProblem::kWrongMachine, "other word size or byte order"};
    }
    const auto header = file.get<Elf64_Ehdr>(0, "header");
    if (header.e_machine != kMachine)
      throw Fault{ElfProblem::kWrongMachine, fmt::format("ELF machine {}", header.e_machine)};
    if (header.e_type != ET_DYN) throw Fault{ElfProblem::kNotShared, fmt::format("ELF type {}", header.e_type)};
    if (header.e_phentsize != sizeof(Elf64_Phdr) || header.e_phnum == 0) {
      throw Fault{ElfProblem::kDamaged, "it has no program headers"};
    }
    segments_.resize(header.e_phnum);
    file.read(header.e_phoff, segments_.data(), segments_.size() * sizeof(Elf64_Phdr), "program header table");
    for (const Elf64_Phdr& segment : segments_) {
      if (segment.p_type == PT_LOAD &&
          (segment.p_filesz > file.size() || segment.p_offset > file.size() - segment.p_filesz)) {
        throw Fault{ElfProblem::kDamaged, fmt::format("a segment ends at byte {}, the file at {}: it looks truncated",
                                                      segment.p_offset + segment.p_filesz, file.size())};
      }
    }
    read_dynamic();
  }

  /// Copies from a virtual address; all of it has to lie in one segment's file part.
  void read(std::uint64_t address, void* into, std::size_t bytes, const char* what) const {
    for (const Elf64_Phdr& segment : segments_) {
      if (segment.p_type != PT_LOAD || address < segment.p_vaddr) continue;
      const std::uint64_t within = address - segment.p_vaddr;
      if (within >= segment.p_filesz) continue;
      if (bytes > segment.p_filesz - within) break;
      file_.read(segment.p_offset + within, into, bytes, what);
      return;
    }
    throw Fault{ElfProblem::kDamaged, fmt::format("its {} points outside the file", what)};
  }
  template <class T>
  T get(std::uint64_t address, const char* what) const {
    T value;
    read(address, &value, sizeof value, what);
    return value;
  }

  std::optional<Elf64_Sym> find(std::string_view name) const {
    if (gnu_hash_ != 0) return find_gnu(name);
    if (sysv_hash_ != 0) return find_sysv(name);
    throw Fault{ElfProblem::kDamaged, "its dynamic section names no hash table"};
  }

 private:
  void read_dynamic() {
    for (const Elf64_Phdr& segment : segments_) {
      if (segment.p_type != PT_DYNAMIC) continue;
      for (std::uint64_t at = 0; at + sizeof(Elf64_Dyn) <= segment.p_filesz; at += sizeof(Elf64_Dyn)) {
        const auto entry = file_.get<Elf64_Dyn>(segment.p_offset + at, "dynamic section");
        if (entry.d_tag == DT_NULL) break;
        if (entry.d_tag == DT_SYMTAB) symbols_ = entry.d_un.d_ptr;
        if (entry.d_tag == DT_STRTAB) strings_ = entry.d_un.d_ptr;
        if (entry.d_tag == DT_STRSZ) strings_size_ = entry.d_un.d_val;
        if (entry.d_tag == DT_GNU_HASH) gnu_hash_ = entry.d_un.d_ptr;
        if (entry.d_tag == DT_HASH) sysv_hash_ = entry.d_un.d_ptr;
      }
    }
    if (symbols_ == 0 || strings_ == 0) throw Fault{ElfProblem::kNotShared, "it has no dynamic symbols"};
  }

  bool named(const Elf64_Sym& symbol, std::string_view name) const {
    if (symbol.st_name >= strings_size_ || strings_size_ - symbol.st_name < name.size() + 1) return false;
    std::string text(name.size() + 1, '\1');
    read(strings_ + symbol.st_name, text.data(), text.size(), "string table");
    return std::string_view(text.data(), name.size()) == name && text.back() == '\0';
  }

  std::optional<Elf64_Sym> match(std::uint64_t index, std::string_view name) const {
    const auto symbol = get<Elf64_Sym>(symbols_ + index * sizeof(Elf64_Sym), "symbol table");
    if (symbol.st_shndx == SHN_UNDEF || ELF64_ST_TYPE(symbol.st_info) != STT_OBJECT || !named(symbol, name)) {
      return std::nullopt;
    }
    return symbol;
  }

  std::optional<Elf64_Sym> find_gnu(std::string_view name) const {
    std::uint32_t hash = 5381;
    for (const unsigned char c : name) hash = hash * 33 + c;
    struct {
      std::uint32_t buckets, first_symbol, bloom_words, bloom_shift;
    } header{};
    read(gnu_hash_, &header, sizeof header, "hash table");
    if (header.buckets == 0) return std::nullopt;
    const std::uint64_t buckets = gnu_hash_ + sizeof header + std::uint64_t{header.bloom_words} * 8;
    const std::uint64_t chains = buckets + std::uint64_t{header.buckets} * 4;
    std::uint64_t index = get<std::uint32_t>(buckets + (hash % header.buckets) * 4, "hash bucket");
    if (index < header.first_symbol) return std::nullopt;
    for (std::size_t step = 0; step < kMaxChain; ++step, ++index) {
      const auto entry = get<std::uint32_t>(chains + (index - header.first_symbol) * 4, "hash chain");
      if ((entry | 1U) == (hash | 1U)) {
        if (const auto symbol = match(index, name)) return symbol;
      }
      if ((entry & 1U) != 0) return std::nullopt;
    }
    throw Fault{ElfProblem::kDamaged, "a hash chain does not end"};
  }

  std::optional<Elf64_Sym> find_sysv(std::string_view name) const {
    std::uint32_t hash = 0;
    for (const unsigned char c : name) {
      hash = (hash << 4) + c;
      const std::uint32_t high = hash & 0xf0000000U;
      hash ^= high >> 24;
      hash &= ~high;
    }
    const auto buckets = get<std::uint32_t>(sysv_hash_, "hash table");
    if (buckets == 0) return std::nullopt;
    std::uint32_t index = get<std::uint32_t>(sysv_hash_ + 8 + std::uint64_t{hash % buckets} * 4, "hash bucket");
    for (std::size_t step = 0; index != 0; ++step) {
      if (step == kMaxChain) throw Fault{ElfProblem::kDamaged, "a hash chain does not end"};
      if (const auto symbol = match(index, name)) return symbol;
      index = get<std::uint32_t>(sysv_hash_ + 8 + (std::uint64_t{buckets} + index) * 4, "hash chain");
    }
    return std::nullopt;
  }

  const File& file_;
  std::vector<Elf64_Phdr> segments_;
  std::uint64_t symbols_ = 0, strings_ = 0, strings_size_ = 0, gnu_hash_ = 0, sysv_hash_ = 0;
};

}  // namespace

ElfSymbol read_elf_symbol(const std::filesystem::path& path, std::string_view symbol, std::size_t max_bytes) {
  ElfSymbol result;
  try {
    const File file(path);
    const Image image(file);
    const auto found = image.find(symbol);
    if (!found) throw Fault{ElfProblem::kNoSymbol, fmt::format("it exports no data symbol {}", symbol)};
    result.size = found->st_size;
    result.bytes.resize(std::min<std::size_t>(found->st_size, max_bytes));
    image.read(found->st_value, result.bytes.data(), result.bytes.size(), "descriptor");
  } catch (const Fault& fault) {
    result.problem = fault.problem;
    result.detail = fault.detail;
    result.bytes.clear();
  }
  return result;
}

}  // namespace tenon
