// Tests the reader of ELF files, with files that are built here.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <lzma.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "tests/support/elf_builder.h"
#include "tools/base/unique_fd.h"
#include "tools/elf/debug_files.h"
#include "tools/elf/elf_file.h"
#include "tools/elf/xz.h"

namespace elf {
namespace {

using tests::ElfBuilder;
using tests::ElfContents;

constexpr char kBuildId[] = "\x01\x23\x45\x67\x89\xab\xcd\xef";

class ElfFileTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() /
              absl::StrCat("elf-", getpid(), "-",
                           ::testing::UnitTest::GetInstance()->current_test_info()->name());
    std::filesystem::create_directories(folder_);
    std::filesystem::permissions(folder_, std::filesystem::perms(0755));
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string Write(const std::string& name, const std::string& bytes) const {
    const std::filesystem::path path = folder_ / name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << bytes;
    return path;
  }
  absl::StatusOr<ElfFile> OpenBytes(const std::string& bytes) const {
    return ElfFile::Open(Write("file", bytes));
  }
  absl::StatusOr<ElfFile> OpenElf(const ElfContents& contents) const {
    return OpenBytes(ElfBuilder(contents).Build());
  }
  // Returns the name of the function at each address; "-" if there is none.
  std::string NamesAt(const ElfContents& contents,
                      const std::vector<std::uint64_t>& addresses) const {
    const auto file = OpenElf(contents);
    EXPECT_TRUE(file.ok()) << file.status();
    const Functions found = file->FindFunctions(addresses);
    std::string text;
    for (const std::uint32_t index : found.of_address) {
      absl::StrAppend(&text, text.empty() ? "" : " ",
                      index == Functions::kNone ? "-" : found.functions[index].name);
    }
    return text;
  }

  std::filesystem::path folder_;
};

TEST_F(ElfFileTest, ReadsBothClassesAndByteOrders) {
  for (const bool is_64 : {false, true}) {
    for (const bool is_big : {false, true}) {
      SCOPED_TRACE(absl::StrCat(is_64, is_big));
      ElfContents contents{.is_64 = is_64, .is_big = is_big, .build_id = kBuildId};
      contents.debug_link = "a.debug";
      contents.debug_crc = 0x12345678;
      contents.symbols = {{"f", 0x401010, 0x10}};
      const auto file = OpenElf(contents);
      ASSERT_TRUE(file.ok()) << file.status();
      EXPECT_EQ(file->build_id(), kBuildId);
      EXPECT_EQ(file->AddressAt(0x1010), 0x401010u);
      EXPECT_EQ(file->AddressAt(0x2000), std::nullopt);
      EXPECT_EQ(file->AddressAt(0xfff), std::nullopt);
      EXPECT_EQ(file->OnlyCodeAddress(), 0x401000u);
      const auto link = file->ReadDebugLink();
      ASSERT_TRUE(link);
      EXPECT_EQ(link->name, "a.debug");
      EXPECT_EQ(link->crc, 0x12345678u);
      const std::vector<std::uint64_t> addresses = {0x401018};
      const Functions found = file->FindFunctions(addresses);
      ASSERT_EQ(found.functions.size(), 1u);
      EXPECT_EQ(found.functions[0].name, "f");
      EXPECT_EQ(found.functions[0].first, 0x401010u);
      EXPECT_EQ(found.functions[0].last, 0x40101fu);
    }
  }
}

// Returns the data in the format of xz.
std::string Compressed(const std::string& data) {
  std::string out(lzma_stream_buffer_bound(data.size()), '\0');
  std::size_t size = 0;
  EXPECT_EQ(lzma_easy_buffer_encode(1, LZMA_CHECK_CRC64, nullptr,
                                    reinterpret_cast<const std::uint8_t*>(data.data()), data.size(),
                                    reinterpret_cast<std::uint8_t*>(out.data()), &size, out.size()),
            LZMA_OK);
  out.resize(size);
  return out;
}

TEST_F(ElfFileTest, OpensCompressedDebugData) {
  ElfContents inner;
  inner.symbols = {{"hidden", 0x401010, 0x10}};
  ElfContents outer;
  outer.exports = {{"shown", 0x401000, 0x40}, {"last", 0x401020, 0x10}};
  const std::string data = Compressed(ElfBuilder(inner).Build());
  outer.debug_data = data;
  const auto file = OpenElf(outer);
  ASSERT_TRUE(file.ok()) << file.status();
  const auto more = file->OpenDebugData();
  ASSERT_TRUE(more);
  EXPECT_TRUE(more->has_symbols());
  const std::vector<std::uint64_t> addresses = {0x401008, 0x401018, 0x401028, 0x401040};
  const Functions found = Combine(file->FindFunctions(addresses), more->FindFunctions(addresses));
  std::vector<std::string> names;
  for (const std::uint32_t index : found.of_address) {
    names.push_back(index == Functions::kNone ? "-" : found.functions[index].name);
  }
  EXPECT_EQ(names, (std::vector<std::string>{"shown", "hidden", "last", "-"}));

  outer.debug_data = data.substr(0, data.size() / 2);
  EXPECT_FALSE(OpenElf(outer)->OpenDebugData());
  outer.debug_data = "no xz";
  EXPECT_FALSE(OpenElf(outer)->OpenDebugData());
  outer.debug_data = Compressed("no ELF file");
  EXPECT_FALSE(OpenElf(outer)->OpenDebugData());
  outer.debug_data.clear();
  EXPECT_FALSE(OpenElf(outer)->OpenDebugData());
}

TEST_F(ElfFileTest, BoundsTheSizeOfCompressedDebugData) {
  ElfContents outer;
  outer.debug_data = Compressed(ElfBuilder({}).Build() + std::string(kMaxDecompressed, '\0'));
  EXPECT_LT(outer.debug_data.size(), std::size_t{1} << 20);
  EXPECT_FALSE(OpenElf(outer)->OpenDebugData());
}

TEST_F(ElfFileTest, FindsOnlyFunctionsThatContainTheAddress) {
  ElfContents contents;
  contents.symbols = {{"a", 0x401010, 0x10},
                      {"b", 0x401020, 0x10},
                      {"data", 0x401040, 0x10, STT_OBJECT},
                      {"imported", 0x401050, 0x10, STT_FUNC, STB_GLOBAL, false}};
  EXPECT_EQ(
      NamesAt(contents, {0x40100f, 0x401010, 0x40101f, 0x401020, 0x401030, 0x401040, 0x401050}),
      "- a a b - - -");
}

TEST_F(ElfFileTest, PrefersTheInnermostFunction) {
  ElfContents contents;
  contents.symbols = {{"outer", 0x401000, 0x100}, {"inner", 0x401010, 0x10}};
  EXPECT_EQ(NamesAt(contents, {0x401008, 0x401018, 0x401028}), "outer inner outer");
  const std::vector<std::uint64_t> addresses = {0x401008, 0x401018, 0x401028};
  EXPECT_EQ(OpenElf(contents)->FindFunctions(addresses).functions.size(), 2u);
}

TEST_F(ElfFileTest, PrefersNamesWithoutUnderscoresAndVersions) {
  ElfContents contents;
  contents.symbols = {{"__write", 0x401000, 0x10},
                      {"write@@GLIBC_2.2.5", 0x401000, 0x10, STT_FUNC, STB_WEAK},
                      {"local", 0x401010, 0x10, STT_FUNC, STB_LOCAL},
                      {"global", 0x401010, 0x10}};
  EXPECT_EQ(NamesAt(contents, {0x401000, 0x401010}), "write global");
}

TEST_F(ElfFileTest, LabelsWithoutSizeEndAtTheNextFunction) {
  ElfContents contents;
  contents.symbols = {{"label", 0x401000, 0, STT_NOTYPE},
                      {"$d", 0x401008, 0, STT_NOTYPE, STB_LOCAL},
                      {"sized", 0x401010, 0x10},
                      {"last", 0x401100, 0}};
  // No function contains the address between the end of `sized` and `last`.
  EXPECT_EQ(NamesAt(contents, {0x40100c, 0x401018, 0x401028, 0x401200, 0x402000}),
            "label sized - last -");
  const auto file = OpenElf(contents);
  const std::vector<std::uint64_t> addresses = {0x40100c, 0x401200};
  const Functions found = file->FindFunctions(addresses);
  EXPECT_EQ(found.functions[0].last, 0x40100fu);
  EXPECT_EQ(found.functions[1].last, 0x401fffu);
}

TEST_F(ElfFileTest, UsesExportsWithoutOtherSymbols) {
  ElfContents contents;
  contents.exports = {{"shown", 0x401000, 0x10}};
  EXPECT_EQ(NamesAt(contents, {0x401000}), "shown");
  EXPECT_FALSE(OpenElf(contents)->has_symbols());
}

TEST_F(ElfFileTest, BoundsTheTimeOfOverlappingSymbols) {
  // All addresses but the last one are in functions that overlap. The limit is 2^20 pairs of a
  // function and an address in it, and 64 more for each address: here 2^21.
  constexpr std::uint64_t kAddresses = 1 << 14;
  constexpr std::uint64_t kLimit = (1 << 20) + 64 * kAddresses;
  std::vector<std::uint64_t> addresses;
  for (std::uint64_t i = 0; i + 1 < kAddresses; ++i) addresses.push_back(0x401000 + i);
  addresses.push_back(0x409000);
  const auto found_after = [&](std::uint64_t pairs) {
    ElfContents contents;
    contents.text_size = 1 << 20;
    while (pairs != 0) {
      const std::uint64_t size = std::min(pairs, kAddresses - 1);
      contents.symbols.push_back({"overlapping", 0x401000, size});
      pairs -= size;
    }
    contents.symbols.push_back({"last", 0x409000, 0x10});
    return OpenElf(contents)->FindFunctions(addresses);
  };
  const Functions below = found_after(kLimit - 1);
  EXPECT_FALSE(below.is_limited);
  ASSERT_NE(below.of_address.back(), Functions::kNone);
  EXPECT_EQ(below.functions[below.of_address.back()].name, "last");
  const Functions above = found_after(kLimit);
  EXPECT_TRUE(above.is_limited);
  EXPECT_EQ(above.of_address.back(), Functions::kNone);
  EXPECT_NE(above.of_address.front(), Functions::kNone);
}

TEST_F(ElfFileTest, BoundsTheBytesOfAllNames) {
  // Each function has a name of the maximum length.
  constexpr std::size_t kNames = Functions::kMaxNameBytes / kMaxName;
  const auto found_with = [this](std::size_t count) {
    ElfContents contents;
    contents.text_size = 1 << 20;
    std::vector<std::uint64_t> addresses;
    for (std::size_t i = 0; i < count; ++i) {
      addresses.push_back(0x401000 + i);
      contents.symbols.push_back({std::string(kMaxName, 'n'), 0x401000 + i, 1});
    }
    return OpenElf(contents)->FindFunctions(addresses);
  };
  const Functions below = found_with(kNames);
  EXPECT_FALSE(below.is_limited);
  EXPECT_NE(below.of_address.back(), Functions::kNone);
  const Functions above = found_with(kNames + 1);
  EXPECT_TRUE(above.is_limited);
  EXPECT_EQ(above.of_address.back(), Functions::kNone);
}

TEST_F(ElfFileTest, IgnoresFunctionsThatWrapAround) {
  ElfContents contents;
  contents.symbols = {{"wraps", 0x401000, ~std::uint64_t{0}}};
  EXPECT_EQ(NamesAt(contents, {0x401000}), "-");
}

TEST_F(ElfFileTest, BoundsNames) {
  ElfContents contents;
  contents.symbols = {{std::string(1 << 20, 'n'), 0x401000, 0x10}};
  const auto file = OpenElf(contents);
  const std::vector<std::uint64_t> addresses = {0x401000};
  EXPECT_EQ(file->FindFunctions(addresses).functions[0].name, std::string(kMaxName, 'n'));
}

TEST_F(ElfFileTest, ReadsCutFilesWithoutAnError) {
  ElfContents contents{.build_id = kBuildId};
  contents.debug_link = "a.debug";
  contents.symbols = {{"f", 0x401010, 0x10}};
  const std::string whole = ElfBuilder(contents).Build();
  const std::vector<std::uint64_t> addresses = {0x401018};
  for (std::size_t size = 0; size < whole.size(); size += 3) {
    const auto file = OpenBytes(whole.substr(0, size));
    if (!file.ok()) continue;
    file->FindFunctions(addresses);
    file->ReadDebugLink();
  }
}

TEST_F(ElfFileTest, RefusesOtherFilesWithoutWaiting) {
  EXPECT_TRUE(absl::IsInvalidArgument(OpenBytes("#!/bin/sh\n").status()));
  EXPECT_TRUE(absl::IsInvalidArgument(OpenBytes("").status()));
  EXPECT_TRUE(absl::IsInvalidArgument(ElfFile::Open(folder_).status()));
  EXPECT_TRUE(absl::IsNotFound(ElfFile::Open(folder_ / "none").status()));
  const std::string fifo = folder_ / "fifo";
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  EXPECT_TRUE(absl::IsInvalidArgument(ElfFile::Open(fifo).status()));
}

TEST_F(ElfFileTest, DoesNotOpenOtherFiles) {
  const std::string fifo = folder_ / "fifo";
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  const base::UniqueFd watch(inotify_init1(IN_NONBLOCK | IN_CLOEXEC));
  ASSERT_GE(inotify_add_watch(watch.get(), fifo.c_str(), IN_OPEN), 0);
  EXPECT_FALSE(ElfFile::Open(fifo).ok());
  inotify_event opened;
  EXPECT_EQ(read(watch.get(), &opened, sizeof opened), -1);
  EXPECT_EQ(errno, EAGAIN);
}

TEST_F(ElfFileTest, RefusesLinksToOtherFolders) {
  for (const char* const name : {"../secret", "a/b", "..", ""}) {
    ElfContents contents;
    contents.debug_link = name;
    EXPECT_EQ(OpenElf(contents)->ReadDebugLink(), std::nullopt) << name;
  }
}

TEST_F(ElfFileTest, ComputesTheChecksumOfDebugLinks) {
  // The check value of CRC-32.
  const auto file = OpenElf({});
  ASSERT_TRUE(file.ok());
  std::filesystem::resize_file(folder_ / "file", 0);
  std::ofstream(folder_ / "file") << "123456789";
  EXPECT_EQ(file->Checksum(), 0xcbf43926u);
}

TEST_F(ElfFileTest, FindsDebugFilesByBuildId) {
  ElfContents contents{.build_id = kBuildId};
  contents.symbols = {{"f", 0x401010, 0x10}};
  const std::string digits = absl::BytesToHexString(kBuildId);
  Write(absl::StrCat(".build-id/", digits.substr(0, 2), "/", digits.substr(2), ".debug"),
        ElfBuilder(contents).Build());
  const DebugFiles files({folder_});
  ASSERT_TRUE(files.FindByBuildId(kBuildId));
  EXPECT_FALSE(files.FindByBuildId("\x01\x23"));
  EXPECT_FALSE(files.FindByBuildId(""));
  // A file with another build id is not used, whatever its name is.
  contents.build_id = "other";
  Write(absl::StrCat(".build-id/", digits.substr(0, 2), "/", digits.substr(2), ".debug"),
        ElfBuilder(contents).Build());
  EXPECT_FALSE(files.FindByBuildId(kBuildId));
}

TEST_F(ElfFileTest, FindsDebugFilesByLink) {
  ElfContents contents;
  contents.symbols = {{"f", 0x401010, 0x10}};
  const std::string debug = ElfBuilder(contents).Build();
  const std::uint32_t crc = *ElfFile::Open(Write("copy", debug))->Checksum();
  const DebugFiles files({folder_ / "debug"});
  const std::vector<std::string> folders = {"bin", "bin/.debug",
                                            "debug" + folder_.string() + "/bin"};
  for (const std::string& folder : folders) {
    SCOPED_TRACE(folder);
    std::filesystem::remove_all(folder_ / "bin");
    const std::string link = Write(folder + "/linked", debug);
    const std::string path =
        Write("bin/program", ElfBuilder({.debug_link = "linked", .debug_crc = crc}).Build());
    const auto program = ElfFile::Open(path);
    ASSERT_TRUE(program.ok());
    EXPECT_TRUE(files.FindByLink(*program, path));
    // A file without a build id must be one that every user may read.
    std::filesystem::permissions(link, std::filesystem::perms(0600));
    EXPECT_FALSE(files.FindByLink(*program, path));
    std::filesystem::remove(link);
    EXPECT_FALSE(files.FindByLink(*program, path));
  }
}

TEST_F(ElfFileTest, IgnoresLinkedFilesWithAnotherChecksumOrBuildId) {
  ElfContents contents{.build_id = "other"};
  contents.symbols = {{"f", 0x401010, 0x10}};
  const std::string path = Write("linked", ElfBuilder(contents).Build());
  const std::uint32_t crc = *ElfFile::Open(path)->Checksum();
  const DebugFiles files({});
  const auto find = [&](const ElfContents& program) {
    return files.FindByLink(*OpenElf(program), folder_ / "file").has_value();
  };
  EXPECT_TRUE(find({.debug_link = "linked", .debug_crc = crc}));
  EXPECT_FALSE(find({.debug_link = "linked", .debug_crc = crc + 1}));
  EXPECT_FALSE(find({.build_id = kBuildId, .debug_link = "linked", .debug_crc = crc}));
  EXPECT_TRUE(find({.build_id = "other", .debug_link = "linked"}));
}

TEST_F(ElfFileTest, FilesInPrivateFoldersAreNotPublic) {
  const std::string path = Write("private/file", ElfBuilder({}).Build());
  const auto file = ElfFile::Open(path);
  ASSERT_TRUE(file.ok());
  std::filesystem::permissions(path, std::filesystem::perms(0644));
  EXPECT_TRUE(IsPublic(file->fd()));
  std::filesystem::permissions(folder_ / "private", std::filesystem::perms(0700));
  EXPECT_FALSE(IsPublic(file->fd()));
}

}  // namespace
}  // namespace elf
