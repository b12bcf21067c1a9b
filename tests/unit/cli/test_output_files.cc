// Tests which users may read the files that the programs write, and that no other user can redirect
// the writes.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "tools/cli/output_sink.h"
#include "tools/output/atomic_file.h"

namespace cli {
namespace {

constexpr uid_t kNobody = 65534;

class OutputFilesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::path(::testing::TempDir()) /
              ("output-files-" + std::to_string(getpid()) + "-" +
               ::testing::UnitTest::GetInstance()->current_test_info()->name());
    std::filesystem::create_directories(folder_);
    umask(0);  // Keeps all mode bits that the programs request.
  }
  void TearDown() override {
    umask(022);
    std::filesystem::remove_all(folder_);
  }

  std::string Path(const char* name) const { return folder_ / name; }
  std::string Write(const char* name, const std::string& text) const {
    std::ofstream(Path(name)) << text;
    return Path(name);
  }
  static std::string Read(const std::string& path) {
    std::ostringstream text;
    text << std::ifstream(path).rdbuf();
    return text.str();
  }
  static struct stat Facts(const std::string& path) {
    struct stat facts = {};
    EXPECT_EQ(lstat(path.c_str(), &facts), 0) << path;
    return facts;
  }
  static mode_t Mode(const std::string& path) { return Facts(path).st_mode & 07777; }
  std::ptrdiff_t FilesInFolder() const {
    return std::distance(std::filesystem::directory_iterator(folder_), {});
  }
  static absl::Status Put(nettrace::Sink* sink, const std::string& text) {
    std::size_t taken = 0;
    return sink->Append(std::as_bytes(std::span(text)), &taken);
  }
  // Writes the file at `path` with an AtomicFile.
  static absl::Status Replace(const std::string& path, const output::FileAccess& access) {
    output::AtomicFile file(path);
    auto sink = file.Create(access);
    if (!sink.ok()) return sink.status();
    if (absl::Status status = Put(sink->get(), "new"); !status.ok()) return status;
    return file.Keep();
  }
  // Writes the file at `path` with OpenOutputSink, as a recording does.
  static absl::Status Record(const std::string& path, mode_t mode = output::kPrivateMode) {
    auto sink = OpenOutputSink(path, mode);
    return sink.ok() ? Put(sink->get(), "new") : sink.status();
  }

  std::filesystem::path folder_;
};

#define ASSERT_ROOT() \
  if (geteuid() != 0) GTEST_SKIP() << "needs root, to make files of other users"

TEST_F(OutputFilesTest, AtomicFileIsPrivateUnlessAskedOtherwise) {
  const std::string path = Write("file", "old");
  chmod(path.c_str(), 0666);
  ASSERT_TRUE(Replace(path, {}).ok());
  EXPECT_EQ(Read(path), "new");
  EXPECT_EQ(Mode(path), 0600u);
  ASSERT_TRUE(Replace(path, {.mode = 0646, .owner = {}, .group = {}}).ok());
  EXPECT_EQ(Mode(path), 0646u);
  EXPECT_EQ(FilesInFolder(), 1);
}

TEST_F(OutputFilesTest, AtomicFileLeavesNothingUnlessKept) {
  {
    output::AtomicFile file(Path("file"));
    auto sink = file.Create({});
    ASSERT_TRUE(sink.ok()) << sink.status();
    ASSERT_TRUE(Put(sink->get(), "new").ok());
  }
  EXPECT_EQ(FilesInFolder(), 0);
}

TEST_F(OutputFilesTest, AtomicFolderAppearsWithAllItsFiles) {
  std::filesystem::create_directory(Path("trace"));
  output::AtomicFolder folder(Path("trace/"));
  ASSERT_TRUE(folder.Create({.mode = 0640, .owner = {}, .group = {}}).ok());
  for (const std::string text : {"a", "b"}) {
    ASSERT_TRUE(folder.Append("one", std::as_bytes(std::span(text))).ok());
    ASSERT_TRUE(folder.Append(text, std::as_bytes(std::span(text))).ok());
  }
  EXPECT_TRUE(std::filesystem::is_empty(Path("trace"))) << "the one that was there";
  ASSERT_TRUE(folder.Keep().ok());
  EXPECT_EQ(FilesInFolder(), 1);
  EXPECT_EQ(Read(Path("trace/one")), "ab");
  EXPECT_EQ(Read(Path("trace/b")), "b");
  EXPECT_EQ(Mode(Path("trace/one")), 0640u);
  EXPECT_EQ(Mode(Path("trace")), 0750u);
}

TEST_F(OutputFilesTest, AtomicFolderHasFoldersWithTheSameAccess) {
  for (const bool is_kept : {false, true}) {
    output::AtomicFolder folder(Path("tree"));
    ASSERT_TRUE(folder.Create({.mode = 0440, .owner = {}, .group = {}}).ok());
    for (const std::string text : {"a", "b"}) {
      ASSERT_TRUE(folder.Append("one/two/file", std::as_bytes(std::span(text))).ok());
      ASSERT_TRUE(folder.Append("one/" + text, std::as_bytes(std::span(text))).ok());
    }
    EXPECT_FALSE(folder.Append("one/a/file", {}).ok()) << "a file is no folder";
    if (!is_kept) continue;
    ASSERT_TRUE(folder.Keep().ok());
  }
  EXPECT_EQ(FilesInFolder(), 1) << "nothing is left of the first folder";
  EXPECT_EQ(Read(Path("tree/one/two/file")), "ab");
  EXPECT_EQ(Read(Path("tree/one/b")), "b");
  EXPECT_EQ(Mode(Path("tree/one/two/file")), 0440u);
  EXPECT_EQ(Mode(Path("tree/one/two")), 0550u);
  EXPECT_EQ(Mode(Path("tree")), 0550u);
}

TEST_F(OutputFilesTest, AtomicFolderReplacesNothing) {
  std::filesystem::create_directories(Path("full/of"));
  std::filesystem::create_directory(Path("empty"));
  std::filesystem::create_symlink(Path("empty"), Path("link"));
  for (const std::string& path : {Write("file", "old"), Path("full"), Path("link")}) {
    output::AtomicFolder folder(path);
    EXPECT_TRUE(absl::IsAlreadyExists(folder.Create({}))) << path;
  }
  EXPECT_EQ(FilesInFolder(), 4);
}

TEST_F(OutputFilesTest, AtomicFolderLeavesNothingUnlessKept) {
  {
    output::AtomicFolder folder(Path("trace"));
    ASSERT_TRUE(folder.Create({}).ok());
    ASSERT_TRUE(folder.Append("one", {}).ok());
    EXPECT_EQ(FilesInFolder(), 1);
  }
  EXPECT_EQ(FilesInFolder(), 0);
}

TEST_F(OutputFilesTest, AtomicFileReplacesALinkAndNotItsTarget) {
  const std::string target = Write("target", "old");
  std::filesystem::create_symlink(target, Path("link"));
  ASSERT_TRUE(Replace(Path("link"), {}).ok());
  EXPECT_EQ(Read(target), "old");
  EXPECT_EQ(Read(Path("link")), "new");
  EXPECT_TRUE(S_ISREG(Facts(Path("link")).st_mode));
}

TEST_F(OutputFilesTest, AtomicFileHasTheOwnerOfTheInput) {
  ASSERT_ROOT();
  const std::string path = Write("file", "old");
  ASSERT_EQ(chown(path.c_str(), kNobody, kNobody), 0);
  chmod(path.c_str(), 04640);
  const struct stat input = Facts(path);
  ASSERT_TRUE(Replace(path, output::AccessToAll({&input, 1})).ok());
  EXPECT_EQ(Facts(path).st_uid, kNobody);
  EXPECT_EQ(Facts(path).st_gid, kNobody);
  EXPECT_EQ(Mode(path), 0640u) << "not what makes a program run as its owner";
}

TEST_F(OutputFilesTest, OwnerThatCannotBeSetGivesItsGroupNothing) {
  ASSERT_ROOT();
  std::filesystem::permissions(folder_, std::filesystem::perms::all);
  ASSERT_EQ(seteuid(kNobody), 0);
  const absl::Status replaced = Replace(Path("file"), {.mode = 0640, .owner = 0, .group = 1});
  ASSERT_EQ(seteuid(0), 0);
  ASSERT_TRUE(replaced.ok()) << replaced;
  EXPECT_EQ(Facts(Path("file")).st_uid, kNobody);
  EXPECT_EQ(Mode(Path("file")), 0600u);
}

TEST_F(OutputFilesTest, AccessToSeveralFilesIsTheirIntersection) {
  struct stat a = {};
  a.st_mode = S_IFREG | 0644;
  a.st_uid = 1;
  a.st_gid = 2;
  struct stat b = a;
  b.st_mode = S_IFREG | 0660;
  const output::FileAccess both = output::AccessToAll(std::vector{a, b});
  EXPECT_EQ(both.mode, 0640u);
  EXPECT_EQ(both.owner, uid_t{1});
  EXPECT_EQ(both.group, gid_t{2});
  b.st_gid = 3;
  EXPECT_EQ(output::AccessToAll(std::vector{a, b}).mode, 0600u);
  EXPECT_EQ(output::AccessToAll(std::vector{a, b}).owner, std::nullopt);
  b.st_mode = S_IFIFO | 0666;
  EXPECT_EQ(output::AccessToAll(std::vector{b}).mode, 0600u);
}

TEST_F(OutputFilesTest, RecordingIsPrivateEvenOverAnExistingFile) {
  const std::string path = Path("file");
  ASSERT_TRUE(Record(path).ok());
  EXPECT_EQ(Mode(path), 0600u);
  chmod(path.c_str(), 0666);
  const int spy = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  ASSERT_TRUE(Record(path).ok());
  EXPECT_EQ(Mode(path), 0600u);
  struct stat before = {};
  ASSERT_EQ(fstat(spy, &before), 0);
  EXPECT_EQ(before.st_nlink, 0u) << "who had the file open sees what is written now";
  close(spy);
  ASSERT_TRUE(Record(path, 0644).ok());
  EXPECT_EQ(Mode(path), 0644u);
}

TEST_F(OutputFilesTest, SecondRecordingIntoAFileIsRefused) {
  const std::string path = Path("file");
  auto first = OpenOutputSink(path, output::kPrivateMode);
  ASSERT_TRUE(first.ok()) << first.status();
  ASSERT_TRUE(Put(first->get(), "first").ok());
  std::filesystem::create_symlink(path, Path("link"));
  for (const std::string& name : {path, Path("link")}) {
    const absl::Status refused = Record(name);
    EXPECT_TRUE(absl::IsAlreadyExists(refused)) << refused;
    EXPECT_NE(refused.message().find(name), absl::string_view::npos) << refused;
  }
  EXPECT_EQ(Read(path), "first");
  first->reset();
  EXPECT_TRUE(Record(path).ok());
  EXPECT_EQ(Read(path), "new");
}

TEST_F(OutputFilesTest, OwnLinkIsFollowed) {
  const std::string target = Write("target", "old and longer");
  chmod(target.c_str(), 0644);
  std::filesystem::create_symlink(target, Path("link"));
  ASSERT_TRUE(Record(Path("link")).ok());
  EXPECT_EQ(Read(target), "new");
  EXPECT_EQ(Mode(target), 0600u);
  EXPECT_TRUE(S_ISLNK(Facts(Path("link")).st_mode));
}

TEST_F(OutputFilesTest, LinkOfAnotherUserIsRefused) {
  ASSERT_ROOT();
  const std::string target = Write("target", "old");
  std::filesystem::create_symlink(target, Path("link"));
  ASSERT_EQ(lchown(Path("link").c_str(), kNobody, kNobody), 0);
  const absl::Status refused = Record(Path("link"));
  EXPECT_TRUE(absl::IsPermissionDenied(refused)) << refused;
  EXPECT_NE(refused.message().find("symbolic link"), absl::string_view::npos);
  EXPECT_EQ(Read(target), "old");
}

TEST_F(OutputFilesTest, FileOfAnotherUserIsReplacedAndNotWritten) {
  ASSERT_ROOT();
  const std::string path = Write("file", "old");
  ASSERT_EQ(link(path.c_str(), Path("kept").c_str()), 0);
  ASSERT_EQ(lchown(path.c_str(), kNobody, kNobody), 0);
  ASSERT_TRUE(Record(path).ok());
  EXPECT_EQ(Facts(path).st_uid, 0u);
  EXPECT_EQ(Read(Path("kept")), "old");
}

TEST_F(OutputFilesTest, SignalBeforeAPipeIsOpenedIsNotForgotten) {
  const std::string path = Path("pipe");
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  EXPECT_EXIT(
      {
        alarm(60);
        raise(SIGTERM);
        const auto sink = OpenOutputSink(path, 0600, nullptr);
        _exit(absl::IsCancelled(sink.status()) ? 0 : 1);
      },
      ::testing::ExitedWithCode(0), "");
}

TEST_F(OutputFilesTest, RefusesAPipeOfAnotherUserInASharedDirectory) {
  ASSERT_ROOT();
  const std::string path = Path("pipe");
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  ASSERT_EQ(chown(path.c_str(), kNobody, kNobody), 0);
  const int reader = open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  std::filesystem::permissions(folder_, std::filesystem::perms(01777));
  EXPECT_TRUE(absl::IsPermissionDenied(Record(path)));
  std::filesystem::permissions(folder_, std::filesystem::perms(0700));
  EXPECT_TRUE(Record(path).ok());
  close(reader);
}

TEST_F(OutputFilesTest, DeviceIsWrittenAndStays) {
  EXPECT_TRUE(Record("/dev/null").ok());
  EXPECT_TRUE(S_ISCHR(Facts("/dev/null").st_mode));
  EXPECT_FALSE(Record("/dev/full").ok());
  EXPECT_FALSE(Record(folder_).ok());
}

}  // namespace
}  // namespace cli
