// Reads one exported data symbol out of an ELF file's bytes, without loading it: none of its code runs.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace tenon {

enum class ElfProblem {
  kNone,
  kUnreadable,    ///< no such file, no permission, not a regular file
  kNotElf,        ///< some other kind of file
  kWrongMachine,  ///< ELF for another processor, word size or byte order
  kNotShared,     ///< ELF, but no shared library
  kDamaged,       ///< offsets point outside the file: truncated or tampered with
  kNoSymbol,      ///< a healthy library that does not export the symbol
};

struct ElfSymbol {
  ElfProblem problem = ElfProblem::kNone;
  std::string detail;            ///< one phrase about the problem
  std::vector<std::byte> bytes;  ///< the symbol's first bytes, at most what was asked for, at most its own size
  std::size_t size = 0;          ///< the size that the file states for it
};

/// Looks `symbol` up in the dynamic symbol table and copies up to
/// `max_bytes` of it. The file may be hostile: every offset is checked against its length, every loop is bounded. Never
/// throws for what the file holds.
ElfSymbol read_elf_symbol(const std::filesystem::path& path, std::string_view symbol, std::size_t max_bytes);

}  // namespace tenon
