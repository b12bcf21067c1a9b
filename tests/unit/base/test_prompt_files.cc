// Tests which paths PromptFiles opens, and its errors. tests/kernel/stacks_test.py tests that
// PromptFiles does not wait for a file system that does not answer (FUSE).
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tools/base/prompt_files.h"
#include "tools/base/unique_fd.h"

namespace base {
namespace {

using LastLink = PromptFiles::LastLink;

class PromptFilesTest : public ::testing::Test {
 protected:
  PromptFilesTest() {
    folder_ = std::filesystem::canonical(mkdtemp(name_.data()));
    std::filesystem::create_directory(folder_ / "in");
    std::ofstream(folder_ / "in" / "file") << "text";
  }
  ~PromptFilesTest() override { std::filesystem::remove_all(folder_); }

  void Link(const std::string& target, const std::string& name) {
    std::filesystem::create_symlink(target, folder_ / name);
  }
  // Returns whether `path`, relative to the folder, leads to the file in/file.
  bool FindsFile(const std::string& path) {
    const absl::StatusOr<UniqueFd> found = files_.Open(folder_ / path);
    struct stat facts = {};
    struct stat wanted = {};
    return found.ok() && fstat(found->get(), &facts) == 0 &&
           stat((folder_ / "in" / "file").c_str(), &wanted) == 0 && facts.st_ino == wanted.st_ino &&
           facts.st_dev == wanted.st_dev;
  }
  // Returns the errno of opening a path below the folder; 0: no error; -1: another error.
  int ErrorOf(const std::string& path) {
    const absl::Status status = files_.Open(folder_ / path).status();
    for (const int error : {ENOENT, ENOTDIR, ELOOP, ENAMETOOLONG}) {
      if (status == absl::ErrnoToStatus(error, "cannot be opened")) return error;
    }
    return status.ok() ? 0 : -1;
  }

  std::string name_ = ::testing::TempDir() + "/prompt_files.XXXXXX";
  std::filesystem::path folder_;
  PromptFiles files_;
};

TEST_F(PromptFilesTest, OpensWhatThePathLeadsTo) {
  Link(folder_, "absolute");
  Link("in/../in/file", "relative");
  Link("absolute/in", "again");
  for (const char* path : {"in/file", "in//file", "./in/./file", "in/../in/file", "relative",
                           "absolute/relative", "again/file", "again/../relative"}) {
    EXPECT_TRUE(FindsFile(path)) << path;
  }
}

TEST_F(PromptFilesTest, ReturnsTheErrorsOfOpen) {
  Link("loop", "loop");
  Link("none", "dangling");
  EXPECT_EQ(ErrorOf("none"), ENOENT);
  EXPECT_EQ(ErrorOf("dangling"), ENOENT);
  EXPECT_EQ(ErrorOf("in/file/x"), ENOTDIR);
  EXPECT_EQ(ErrorOf("loop"), ELOOP);
}

TEST_F(PromptFilesTest, FollowsALimitedNumberOfLinksAndParts) {
  Link("in/file", "link1");
  for (int i = 2; i <= 41; ++i) Link("link" + std::to_string(i - 1), "link" + std::to_string(i));
  EXPECT_TRUE(FindsFile("link40"));
  EXPECT_EQ(ErrorOf("link41"), ELOOP);
  std::string path;
  for (int i = 0; i < 1024; ++i) path += "./";
  EXPECT_EQ(ErrorOf(path + "in/file"), ENAMETOOLONG);
}

TEST_F(PromptFilesTest, OpensALinkItselfIfItIsTheLastPart) {
  Link("in", "folder");
  Link("file", "in/link");
  const absl::StatusOr<UniqueFd> link = files_.Open(folder_ / "folder/link", LastLink::kOpen);
  struct stat facts = {};
  ASSERT_TRUE(link.ok() && fstat(link->get(), &facts) == 0);
  EXPECT_TRUE(S_ISLNK(facts.st_mode));
  EXPECT_TRUE(FindsFile("folder/link"));
}

TEST_F(PromptFilesTest, KnowsTheMountsOfOpenFiles) {
  const UniqueFd file(open((folder_ / "in/file").c_str(), O_PATH | O_CLOEXEC));
  const UniqueFd process(open("/proc/self", O_PATH | O_CLOEXEC));
  EXPECT_TRUE(files_.IsPrompt(file.get()));
  EXPECT_TRUE(files_.IsPrompt(process.get()));
  EXPECT_NE(MountOf(file.get()), MountOf(process.get()));
  EXPECT_FALSE(files_.IsPrompt(-1));
  EXPECT_EQ(MountOf(-1), std::nullopt);
}

}  // namespace
}  // namespace base
