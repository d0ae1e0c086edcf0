// What is refused at the door, with which words. None of these files is ever loaded: their code would abort the test.
#include <tenon/plugin/plugin.h>
#include <tenon/runtime/plugins/plugin_file.h>

#include "runtime/fixture.h"

#include <gmock/gmock.h>

#include <elf.h>
#include <fcntl.h>
#include <unistd.h>
#include <cstring>
#include <random>
#include <string>

namespace tenon::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

std::string refusal(const std::filesystem::path& path) {
  return message_of<PluginError>([&] { inspect_plugin_file(path); });
}

TEST(PluginFile, AGoodOneSaysWhatItIs) {
  const PluginFile file = inspect_plugin_file(fixture("tiny"));
  EXPECT_EQ(file.name, "tiny");
  EXPECT_EQ(file.version, "0.3");
  EXPECT_EQ(file.abi_major, plugin::kAbiMajor);
  EXPECT_EQ(file.build_tag, plugin::kBuildTag);
  EXPECT_TRUE(file.path.is_absolute());
}

TEST(PluginFile, AMissingFileIsNamed) {
  EXPECT_THAT(refusal("/nowhere/gone.so"),
              AllOf(HasSubstr("/nowhere/gone.so"), HasSubstr("No such file"), HasSubstr("check the path")));
}

TEST(PluginFile, AFolderIsNoPlugin) {
  const Folder folder;
  EXPECT_THAT(refusal(folder.path()), HasSubstr("it is a folder"));
}

TEST(PluginFile, ATextFileIsNoSharedLibrary) {
  const Folder folder;
  EXPECT_THAT(refusal(folder.write("text.so", "not a library, just words that go on for a while\n")),
              AllOf(HasSubstr("not a shared library"), HasSubstr("tenon_add_allocator")));
  EXPECT_THAT(refusal(folder.write("empty.so", "")), AllOf(HasSubstr("not a shared library"), HasSubstr("0 bytes")));
}

TEST(PluginFile, AnotherMachinesLibraryIsNamedAsSuch) {
  const Folder folder;
  std::string bytes = read_bytes(fixture("tiny"));
  bytes[18] = static_cast<char>(0xf7);  // e_machine: BPF
  bytes[19] = 0;
  EXPECT_THAT(refusal(folder.write("bpf.so", bytes)), HasSubstr("another kind of machine (ELF machine 247)"));
  bytes[4] = 1;  // 32 bit
  EXPECT_THAT(refusal(folder.write("small.so", bytes)), HasSubstr("another kind of machine"));
}

TEST(PluginFile, AProgramIsNoSharedLibrary) {
  const Folder folder;
  std::string bytes = read_bytes(fixture("tiny"));
  bytes[16] = ET_EXEC;  // e_type
  EXPECT_THAT(refusal(folder.write("program.so", bytes)), AllOf(HasSubstr("shared library"), HasSubstr("ELF type 2")));
}

TEST(PluginFile, ACutFileSaysWhereItEndsAndWhereItsSectionsWouldBegin) {
  const Folder folder;
  std::string bytes = read_bytes(fixture("tiny"));
  Elf64_Ehdr header;
  std::memcpy(&header, bytes.data(), sizeof header);
  const std::size_t length = bytes.size() - 1;
  EXPECT_THAT(refusal(folder.write("cut.so", bytes.substr(0, length))),
              HasSubstr("starts at byte " + std::to_string(header.e_shoff) + ", the file ends at " +
                        std::to_string(length) + ": it looks truncated"));
}

TEST(PluginFile, ASegmentMayEndWithTheFileAndNotBehindIt) {
  const Folder folder;
  std::string bytes = read_bytes(fixture("tiny"));
  Elf64_Ehdr header;
  std::memcpy(&header, bytes.data(), sizeof header);
  Elf64_Phdr segment;
  std::size_t at = header.e_phoff;
  do {
    std::memcpy(&segment, bytes.data() + at, sizeof segment);
    at += header.e_phentsize;
  } while (segment.p_type != PT_LOAD);
  for (const std::size_t behind : {0, 1}) {
    segment.p_offset = bytes.size() - segment.p_filesz + behind;
    std::memcpy(bytes.data() + at - header.e_phentsize, &segment, sizeof segment);
    const std::string words = "a segment ends at byte " + std::to_string(bytes.size() + 1) + ", the file at " +
                              std::to_string(bytes.size()) + ": it looks truncated";
    const auto path = folder.write("moved.so", bytes);
    std::string said;
    try {
      inspect_plugin_file(path);
    } catch (const PluginError& error) {  // for another reason: what it finds there is not what was there
      said = error.what();
    }
    EXPECT_EQ(said.find(words) != std::string::npos, behind == 1) << said;
  }
}

TEST(PluginFile, ASymbolTableBehindTheFileIsDamageAndNoLibraryWithoutADescriptor) {
  const Folder folder;
  std::string bytes = read_bytes(fixture("tiny"));
  Elf64_Ehdr header;
  std::memcpy(&header, bytes.data(), sizeof header);
  Elf64_Shdr section;
  std::size_t at = header.e_shoff;
  do {
    std::memcpy(&section, bytes.data() + at, sizeof section);
    at += header.e_shentsize;
  } while (section.sh_type != SHT_DYNSYM);
  section.sh_offset = bytes.size();
  std::memcpy(bytes.data() + at - header.e_shentsize, &section, sizeof section);
  EXPECT_THAT(refusal(folder.write("moved.so", bytes)),
              AllOf(HasSubstr("damaged or truncated: its symbol table cannot be read ("), HasSubstr("build it again")));
}

TEST(PluginFile, IsClosedAgainThoughItHadTheNumberOfStandardInput) {
  const int input = ::dup(STDIN_FILENO);
  ::close(STDIN_FILENO);
  inspect_plugin_file(fixture("tiny"));
  const bool is_closed = ::fcntl(STDIN_FILENO, F_GETFD) < 0;
  ::dup2(input, STDIN_FILENO);
  ::close(input);
  EXPECT_TRUE(is_closed);
}

TEST(PluginFile, AnOrdinaryLibraryIsToldHowToBecomeAPlugin) {
  EXPECT_THAT(refusal(fixture("plain")),
              AllOf(HasSubstr("no Tenon plugin"), HasSubstr("tenon_plugin_descriptor"), HasSubstr("TENON_ALLOCATOR")));
}

TEST(PluginFile, AnAbiThatDoesNotFitSaysWhichSideToRebuild) {
  EXPECT_THAT(refusal(fixture("old_abi")),
              AllOf(HasSubstr("plugin ABI 0."), HasSubstr("rebuild the plugin against this Tenon")));
  EXPECT_THAT(refusal(fixture("new_abi")),
              AllOf(HasSubstr("plugin ABI 99."), HasSubstr("update Tenon, or rebuild the plugin")));
  EXPECT_THAT(refusal(fixture("new_minor")), AllOf(HasSubstr(".99"), HasSubstr("update Tenon")));
}

TEST(PluginFile, AnotherBuildSaysHowTheTwoDiffer) {
  EXPECT_THAT(refusal(fixture("other_library")), AllOf(HasSubstr("itanium/libc++"), HasSubstr(plugin::kBuildTag),
                                                       HasSubstr("the same C++ standard library")));
  EXPECT_THAT(refusal(fixture("other_sanitizer")), AllOf(HasSubstr("+asan+tsan"), HasSubstr("same sanitizers")));
}

TEST(PluginFile, ADescriptorThatIsNoneIsRefused) {
  EXPECT_THAT(refusal(fixture("no_magic")), HasSubstr("does not hold a Tenon plugin descriptor"));
  EXPECT_THAT(refusal(fixture("short_struct")), AllOf(HasSubstr("has 100 bytes"), HasSubstr("rebuild")));
  EXPECT_THAT(refusal(fixture("no_name")), HasSubstr("no readable name"));
  EXPECT_THAT(refusal(fixture("control_name")), HasSubstr("no readable name"));
}

/// Either it is still the same plugin, or it is refused with a sentence; nothing crashes, hangs or throws anything
/// else.
void inspect_quietly(const std::filesystem::path& path) {
  try {
    EXPECT_FALSE(inspect_plugin_file(path).name.empty());
  } catch (const PluginError& error) {
    EXPECT_NE(std::string(error.what()), "");
  }
}

TEST(PluginFile, EveryTruncationIsRefused) {
  const Folder folder;
  const std::string whole = read_bytes(fixture("tiny"));
  for (std::size_t length = 0; length < whole.size(); length += length < 1024 ? 1 : 4093) {
    const auto path = folder.write("cut.so", whole.substr(0, length));
    inspect_quietly(path);
    if (length < 4096) {
      EXPECT_NE(refusal(path), "") << length;
    }
  }
}

TEST(PluginFile, NoChangeOfBytesBreaksTheReader) {
  const Folder folder;
  constexpr unsigned kSeed = 20260801;
  std::mt19937 random(kSeed);
  SCOPED_TRACE(kSeed);
  const std::string whole = read_bytes(fixture("tiny"));
  for (int round = 0; round < 400; ++round) {
    std::string bytes = whole;
    const int changes = 1 + static_cast<int>(random() % 8);
    for (int i = 0; i < changes; ++i) {
      // Half of the changes hit headers and tables at the file's beginning, where they hurt.
      const std::size_t range = random() % 2 == 0 ? std::min<std::size_t>(bytes.size(), 4096) : bytes.size();
      const std::size_t at = random() % range;
      bytes[at] = random() % 4 == 0 ? static_cast<char>(0xff) : static_cast<char>(random());
    }
    inspect_quietly(folder.write("changed.so", bytes));
  }
}

}  // namespace
}  // namespace tenon::test
