#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/collector/numbered_stream.h"
#include "tools/output/file_set_sink.h"
#include "tools/output/output_queue.h"
#include "tools/output/zstd_sink.h"

namespace output {
namespace {

using collector::testing::AreNumbers;
using collector::testing::ExpectVerifies;
using collector::testing::FileContents;
using collector::testing::NumberedStream;
using collector::testing::NumbersIn;
using collector::testing::PathsIn;
using collector::testing::ReadContents;
using collector::testing::TemporaryDirectory;

constexpr std::uint64_t kBlock = 4096;

std::uint64_t BytesIn(const std::string& directory) {
  std::uint64_t bytes = 0;
  for (const std::string& path : PathsIn(directory)) {
    bytes += (std::filesystem::file_size(path) + kBlock - 1) / kBlock * kBlock;
  }
  return bytes;
}

class FileSetSinkTest : public ::testing::Test {
 protected:
  FileSetSinkTest() {
    settings_.directory = directory();
    settings_.rotate_bytes = 40'000;
    settings_.keep_bytes = 0;
  }
  std::string directory() const { return temporary_.path() + "/files"; }

  std::unique_ptr<FileSetSink> MakeSink(std::optional<int> compressed = std::nullopt) {
    auto sink = FileSetSink::Create(settings_, "shop", compressed);
    EXPECT_TRUE(sink.ok()) << sink.status();
    control_ = (*sink)->control();
    return *std::move(sink);
  }
  FilesSettings settings_;
  TemporaryDirectory temporary_;
  std::shared_ptr<FileSetControl> control_;
};

TEST_F(FileSetSinkTest, FilesAreCompleteAndWithoutGaps) {
  NumberedStream stream(MakeSink());
  for (int i = 0; i < 100; ++i) stream.Write(100);
  ASSERT_TRUE(stream.Finish().ok());
  const std::vector<std::string> paths = PathsIn(directory());
  EXPECT_GE(paths.size(), 4u);
  EXPECT_EQ(static_cast<int>(paths.size()), stream.sections() + 1);
  for (const std::string& path : paths) {
    const std::string name = std::filesystem::path(path).filename();
    EXPECT_TRUE(name.starts_with("shop-20") && name.ends_with("Z.nettrace")) << name;
    struct stat facts = {};
    ASSERT_EQ(stat(path.c_str(), &facts), 0);
    EXPECT_EQ(facts.st_mode & 07777, 0640u);
  }
  EXPECT_TRUE(AreNumbers(NumbersIn(directory()), 0, stream.written()));
  const FilesState state = control_->state();
  EXPECT_EQ(state.files, paths.size());
  EXPECT_EQ(state.file_bytes, BytesIn(directory()));
  EXPECT_EQ(state.current_file, "");
  EXPECT_TRUE(state.error.ok()) << state.error;
}

TEST_F(FileSetSinkTest, CompressedFilesAreCompleteAndCountWithTheirDiskSize) {
  settings_.rotate_bytes = 30'000;
  auto compressing = ZstdSink::Create(MakeSink(1), {.level = 1});
  NumberedStream stream(*std::move(compressing));
  for (int i = 0; i < 100; ++i) stream.Write(200);
  ASSERT_TRUE(stream.Finish().ok());
  const std::vector<std::string> paths = PathsIn(directory());
  EXPECT_GE(paths.size(), 3u);
  for (const std::string& path : paths) EXPECT_TRUE(path.ends_with(".nettrace.zst")) << path;
  EXPECT_TRUE(AreNumbers(NumbersIn(directory()), 0, stream.written()));
  EXPECT_EQ(control_->state().file_bytes, BytesIn(directory()));
}

TEST_F(FileSetSinkTest, DiskUseIsNeverOverTheBound) {
  settings_.keep_bytes = 100 * kBlock;
  settings_.rotate_bytes = 0;
  NumberedStream stream(MakeSink());
  for (int i = 0; i < 600; ++i) {
    stream.Write(50);
    ASSERT_LE(BytesIn(directory()), settings_.keep_bytes) << i;
  }
  ASSERT_TRUE(stream.Finish().ok());
  ASSERT_LE(BytesIn(directory()), settings_.keep_bytes);
  const FilesState state = control_->state();
  EXPECT_GT(state.deleted, 0u);
  EXPECT_EQ(state.discarded, 0u);
  EXPECT_GT(BytesIn(directory()), settings_.keep_bytes / 2) << "more is deleted than need be";
  const std::vector<std::uint64_t> numbers = NumbersIn(directory());
  ASSERT_FALSE(numbers.empty());
  EXPECT_GT(numbers.front(), 0u);
  EXPECT_TRUE(AreNumbers(numbers, numbers.front(), stream.written()));
}

TEST_F(FileSetSinkTest, UnreadableFilesCountAndAreDeletedWhenTheyAreTheOldest) {
  settings_.keep_files = 3;
  settings_.rotate_bytes = 10'000;
  std::filesystem::create_directory(directory());
  const std::string old = directory() + "/shop-20200101T000000.000000Z.nettrace.unreadable";
  std::ofstream(old) << std::string(100, 'x');
  NumberedStream stream(MakeSink());
  stream.Write(1);
  EXPECT_EQ(control_->state().files, 1u);
  EXPECT_TRUE(std::filesystem::exists(old));
  for (int i = 0; i < 100; ++i) {
    stream.Write(100);
    ASSERT_LE(PathsIn(directory()).size(), 4u);
  }
  ASSERT_TRUE(stream.Finish().ok());
  EXPECT_FALSE(std::filesystem::exists(old));
}

TEST_F(FileSetSinkTest, KeepsTheGivenNumberOfFiles) {
  settings_.keep_files = 3;
  settings_.rotate_bytes = 10'000;
  NumberedStream stream(MakeSink());
  for (int i = 0; i < 100; ++i) {
    stream.Write(100);
    ASSERT_LE(PathsIn(directory()).size(), 4u);
  }
  ASSERT_TRUE(stream.Finish().ok());
  EXPECT_EQ(PathsIn(directory()).size(), 3u);
  EXPECT_EQ(NumbersIn(directory()).back() + 1, stream.written());
}

TEST_F(FileSetSinkTest, DeletesFilesOfEarlierRunsByAge) {
  settings_.keep_age = absl::Hours(1);
  {
    NumberedStream stream(MakeSink());
    stream.Write(1);
    ASSERT_TRUE(stream.Finish().ok());
  }
  const std::string old = PathsIn(directory()).at(0);
  const timespec before[2] = {{time(nullptr) - 7200, 0}, {time(nullptr) - 7200, 0}};
  ASSERT_EQ(utimensat(AT_FDCWD, old.c_str(), before, 0), 0);
  NumberedStream stream(MakeSink());
  stream.Write(1);
  EXPECT_FALSE(std::filesystem::exists(old));
  ASSERT_TRUE(stream.Finish().ok());
  EXPECT_EQ(PathsIn(directory()).size(), 1u);
}

TEST_F(FileSetSinkTest, DoesNotTouchOtherFiles) {
  settings_.keep_files = 1;
  settings_.rotate_bytes = 10'000;
  std::filesystem::create_directory(directory());
  const std::string target = temporary_.path() + "/target";
  std::ofstream(target) << "x";
  const std::vector<std::string> others = {
      "shop-20260101T000000.000000Z.nettrace.bak", "shop-20260101T000000Z.nettrace",
      "shop2-20260101T000000.000000Z.nettrace",    "shop-x20260101T000000.000000Z.nettrace",
      "20260101T000000.000000Z.nettrace",          "README"};
  for (const std::string& name : others) std::ofstream(directory() + "/" + name) << "x";
  const std::string link = directory() + "/shop-20250101T000000.000000Z.nettrace";
  std::filesystem::create_symlink(target, link);
  const std::string folder = directory() + "/shop-20250101T000001.000000Z.nettrace";
  std::filesystem::create_directory(folder);
  NumberedStream stream(MakeSink());
  for (int i = 0; i < 50; ++i) stream.Write(100);
  ASSERT_TRUE(stream.Finish().ok());
  EXPECT_GT(control_->state().deleted, 0u);
  for (const std::string& name : others) {
    EXPECT_TRUE(std::filesystem::exists(directory() + "/" + name)) << name;
  }
  EXPECT_TRUE(std::filesystem::is_symlink(link));
  EXPECT_TRUE(std::filesystem::exists(target));
  EXPECT_TRUE(std::filesystem::exists(folder));
}

TEST_F(FileSetSinkTest, RotatesByTime) {
  settings_.rotate_bytes = 0;
  settings_.rotate_every = absl::Milliseconds(20);
  NumberedStream stream(MakeSink());
  for (int i = 0; i < 5; ++i) {
    stream.Write(1);
    usleep(25'000);
  }
  ASSERT_TRUE(stream.Finish().ok());
  EXPECT_GE(PathsIn(directory()).size(), 4u);
  EXPECT_TRUE(AreNumbers(NumbersIn(directory()), 0, 5));
}

TEST_F(FileSetSinkTest, RotatesOnRequestAndReturnsTheCompleteFile) {
  NumberedStream stream(MakeSink());
  stream.Write(10);
  absl::StatusOr<std::string> path = absl::UnknownError("not called");
  control_->Rotate([&](absl::StatusOr<std::string> completed) { path = std::move(completed); });
  EXPECT_TRUE(control_->state().current_file.ends_with(".partial"));
  stream.Write(10);
  ASSERT_TRUE(path.ok()) << path.status();
  EXPECT_TRUE(AreNumbers(ReadContents(*path).numbers, 0, 20));
  ExpectVerifies(*path);
  path = absl::UnknownError("not called");
  control_->Rotate([&](absl::StatusOr<std::string> completed) { path = std::move(completed); });
  stream.Write(5);
  ASSERT_TRUE(stream.Finish().ok());
  ASSERT_TRUE(path.ok()) << path.status();
}

TEST_F(FileSetSinkTest, RequestToRotateIsAnsweredWhenTheSinkEnds) {
  absl::Status status;
  const FileSetControl::Done done = [&](const absl::StatusOr<std::string>& path) {
    status = path.status();
  };
  {
    NumberedStream stream(MakeSink());
    stream.Write(1);
    control_->Rotate(done);
  }
  EXPECT_TRUE(absl::IsCancelled(status)) << status;
  status = absl::OkStatus();
  control_->Rotate(done);
  EXPECT_TRUE(absl::IsCancelled(status)) << status;
  EXPECT_EQ(control_->state().files, 0u);
}

TEST_F(FileSetSinkTest, FileThatIsBegunEarlyTakesTheFirstData) {
  auto sink = MakeSink();
  sink->BeginEarly();
  const std::string begun = control_->state().current_file;
  ASSERT_EQ(PathsIn(directory()), std::vector<std::string>{begun});
  EXPECT_TRUE(begun.ends_with(".partial")) << begun;
  EXPECT_FALSE(sink->WantsSection());
  NumberedStream stream(std::move(sink));
  stream.Write(1);
  ASSERT_TRUE(stream.Finish().ok());
  const std::vector<std::string> paths = PathsIn(directory());
  ASSERT_EQ(paths.size(), 1u);
  EXPECT_EQ(paths[0] + ".partial", begun);
  EXPECT_TRUE(AreNumbers(NumbersIn(directory()), 0, stream.written()));
}

TEST_F(FileSetSinkTest, FileThatIsBegunEarlyAndGetsNoDataIsRemoved) {
  settings_.rotate_every = absl::ZeroDuration();
  const auto sink = MakeSink();
  sink->BeginEarly();
  // An empty file is never completed.
  ASSERT_TRUE(sink->BeginSection().ok());
  EXPECT_EQ(PathsIn(directory()).size(), 1u);
  ASSERT_TRUE(sink->Finish().ok());
  EXPECT_TRUE(PathsIn(directory()).empty());
  EXPECT_EQ(control_->state().files, 0u);
}

TEST_F(FileSetSinkTest, NamesDifferHoweverFastFilesFollow) {
  settings_.rotate_bytes = 1;
  NumberedStream stream(MakeSink());
  for (int i = 0; i < 300; ++i) stream.Write(1);
  ASSERT_TRUE(stream.Finish().ok());
  EXPECT_EQ(static_cast<int>(PathsIn(directory()).size()), stream.sections() + 1);
  EXPECT_TRUE(AreNumbers(NumbersIn(directory()), 0, stream.written()));
}

TEST_F(FileSetSinkTest, FileThatReachesTheBoundBeforeASectionBeginsIsCut) {
  settings_.keep_bytes = 50 * kBlock;
  auto sink = MakeSink();
  // Hides from the writer that the file set requests a section, so the file grows up to the limit.
  struct Deaf : nettrace::Sink {
    explicit Deaf(std::unique_ptr<nettrace::Sink> inner) : sink(std::move(inner)) {}
    absl::Status Append(std::span<const std::byte> bytes, std::size_t* taken) override {
      return sink->Append(bytes, taken);
    }
    absl::Status BeginSection() override { return sink->BeginSection(); }
    absl::Status Finish() override { return sink->Finish(); }
    bool WantsSection() const override { return false; }
    std::unique_ptr<nettrace::Sink> sink;
  };
  NumberedStream stream(std::make_unique<Deaf>(std::move(sink)));
  for (int i = 0; i < 200; ++i) {
    stream.Write(100);
    ASSERT_LE(BytesIn(directory()), settings_.keep_bytes);
  }
  const std::uint64_t before = stream.written();
  EXPECT_GT(control_->state().discarded, 0u);
  const FileContents cut = ReadContents(PathsIn(directory()).at(0));
  EXPECT_FALSE(cut.complete);
  EXPECT_TRUE(AreNumbers(cut.numbers, 0, cut.numbers.size()));
  stream.RequestSection();
  stream.Write(1);
  stream.Write(100);
  ASSERT_TRUE(stream.Finish().ok());
  const FileContents next = ReadContents(PathsIn(directory()).back());
  EXPECT_TRUE(next.complete);
  EXPECT_TRUE(AreNumbers(next.numbers, before + 1, stream.written()));
}

TEST_F(FileSetSinkTest, RemovedDirectoryIsMadeAgainWithoutLosses) {
  NumberedStream stream(MakeSink());
  stream.Write(300);
  std::filesystem::remove_all(directory());
  stream.Write(300);
  EXPECT_TRUE(absl::IsNotFound(control_->state().error)) << control_->state().error;
  ASSERT_TRUE(stream.Finish().ok());
  EXPECT_TRUE(AreNumbers(NumbersIn(directory()), 0, 600));
}

TEST_F(FileSetSinkTest, DirectoryThatIsRenamedIsMadeAgain) {
  NumberedStream stream(MakeSink());
  stream.Write(300);
  const std::string elsewhere = temporary_.path() + "/elsewhere";
  std::filesystem::rename(directory(), elsewhere);
  stream.Write(300);
  ASSERT_TRUE(stream.Finish().ok());
  EXPECT_TRUE(AreNumbers(NumbersIn(directory()), 0, 600));
  EXPECT_TRUE(PathsIn(elsewhere).empty()) << "a part of the file is there twice";
}

TEST_F(FileSetSinkTest, FileThatIsRemovedAloneIsWrittenAgain) {
  NumberedStream stream(MakeSink());
  stream.Write(300);
  std::filesystem::remove(PathsIn(directory()).at(0));
  stream.Write(300);
  ASSERT_TRUE(stream.Finish().ok());
  EXPECT_TRUE(AreNumbers(NumbersIn(directory()), 0, 600));
}

TEST_F(FileSetSinkTest, DirectoryThatCannotBeUsedIsWaitedFor) {
  std::ofstream(temporary_.path() + "/files") << "a file is in its place";
  auto sink = MakeSink();
  EXPECT_FALSE(control_->state().error.ok());
  std::size_t taken = 0;
  ASSERT_TRUE(sink->BeginSection().ok());
  const std::array<std::byte, 4> bytes = {};
  EXPECT_FALSE(sink->Append(bytes, &taken).ok());
  EXPECT_EQ(taken, 0u);
  std::filesystem::remove(directory());
  EXPECT_TRUE(sink->Append(bytes, &taken).ok());
  EXPECT_EQ(PathsIn(directory()).size(), 1u);
}

TEST_F(FileSetSinkTest, KeepsSpaceFreeOnAFullDisk) {
  if (geteuid() != 0) GTEST_SKIP() << "mounting a file system needs root";
  std::filesystem::create_directory(directory());
  if (mount("none", directory().c_str(), "tmpfs", 0, "size=1M") != 0) {
    GTEST_SKIP() << "no tmpfs can be mounted";
  }
  settings_.rotate_bytes = 100'000;
  settings_.keep_free_bytes = 400 << 10;
  {
    NumberedStream stream(MakeSink());
    for (int i = 0; i < 400; ++i) {
      stream.Write(100);
      ASSERT_GE(std::filesystem::space(directory()).available, settings_.keep_free_bytes);
    }
    EXPECT_GT(control_->state().deleted, 0u);
    ASSERT_TRUE(stream.Finish().ok());
    NumbersIn(directory());
  }
  settings_.keep_free_bytes = 0;
  auto sink = MakeSink();
  ASSERT_TRUE(sink->BeginSection().ok());
  const std::vector<std::byte> bytes(64 << 10);
  std::size_t taken = 0;
  absl::Status status;
  for (int i = 0; i < 100 && status.ok(); ++i) status = sink->Append(bytes, &taken);
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_TRUE(status.message().find("No space") != absl::string_view::npos) << status;
  for (const std::string& path : PathsIn(directory())) {
    if (path.ends_with(".nettrace")) std::filesystem::remove(path);
  }
  EXPECT_TRUE(sink->Append(std::span(bytes).subspan(taken), &taken).ok());
  sink.reset();
  umount2(directory().c_str(), MNT_DETACH);
}

TEST_F(FileSetSinkTest, ReservesAPartOfTheDiskByDefault) {
  if (geteuid() != 0) GTEST_SKIP() << "mounting a file system needs root";
  std::filesystem::create_directory(directory());
  if (mount("none", directory().c_str(), "tmpfs", 0, "size=1M") != 0) {
    GTEST_SKIP() << "no tmpfs can be mounted";
  }
  auto sink = MakeSink();
  ASSERT_TRUE(sink->BeginSection().ok());
  const std::vector<std::byte> bytes(16 << 10);
  std::size_t taken = 0;
  absl::Status status;
  for (int i = 0; i < 100 && status.ok(); ++i) status = sink->Append(bytes, &taken);
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  const auto space = std::filesystem::space(directory());
  EXPECT_GE(space.available, space.capacity / 20);
  EXPECT_LT(space.available, space.capacity / 20 + 2 * bytes.size());
  // The text of the error does not depend on how much space is free.
  std::ofstream(directory() + "/other") << std::string(5000, 'x');
  EXPECT_EQ(sink->Append(bytes, &taken), status);
  sink.reset();
  umount2(directory().c_str(), MNT_DETACH);
}

TEST_F(FileSetSinkTest, WaitsForAFullDiskWithoutLosses) {
  if (geteuid() != 0) GTEST_SKIP() << "mounting a file system needs root";
  std::filesystem::create_directory(directory());
  if (mount("none", directory().c_str(), "tmpfs", 0, "size=256K") != 0) {
    GTEST_SKIP() << "no tmpfs can be mounted";
  }
  settings_.keep_free_bytes = 0;
  for (const std::optional<int> compressed : {std::optional<int>(), std::optional<int>(1)}) {
    std::unique_ptr<nettrace::Sink> sink = MakeSink(compressed);
    if (compressed) sink = *ZstdSink::Create(std::move(sink), {*compressed});
    const auto queue = *OutputQueue::Create(std::move(sink), {});
    NumberedStream stream(std::make_unique<QueueSink>(queue));
    while (queue->stats().status.ok()) stream.Write(1000);
    EXPECT_TRUE(absl::IsResourceExhausted(queue->stats().status)) << queue->stats().status;
    for (int i = 0; i < 50; ++i) stream.Write(1000);
    ASSERT_EQ(mount("none", directory().c_str(), "tmpfs", MS_REMOUNT, "size=1G"), 0);
    queue->RetryNow();
    ASSERT_TRUE(stream.Finish().ok());
    EXPECT_EQ(queue->Close(absl::Seconds(60)), 0u);
    EXPECT_TRUE(AreNumbers(NumbersIn(directory()), 0, stream.written()));
    for (const std::string& path : PathsIn(directory())) std::filesystem::remove(path);
    ASSERT_EQ(mount("none", directory().c_str(), "tmpfs", MS_REMOUNT, "size=256K"), 0);
  }
  umount2(directory().c_str(), MNT_DETACH);
}

TEST_F(FileSetSinkTest, ContinuesInTheDirectoryBelowAnUnmountedOne) {
  if (geteuid() != 0) GTEST_SKIP() << "mounting a file system needs root";
  std::filesystem::create_directory(directory());
  if (mount("none", directory().c_str(), "tmpfs", 0, "size=1M") != 0) {
    GTEST_SKIP() << "no tmpfs can be mounted";
  }
  NumberedStream stream(MakeSink());
  stream.Write(300);
  ASSERT_EQ(umount2(directory().c_str(), MNT_DETACH), 0);
  stream.Write(300);
  ASSERT_TRUE(stream.Finish().ok());
  EXPECT_TRUE(AreNumbers(NumbersIn(directory()), 0, 600));
}

TEST_F(FileSetSinkTest, TemplatesThatNameNoFilesAreRefused) {
  for (const char* name : {"{session}", "a/{time}", ".{time}", "{time}{user}", "", "{time}}"}) {
    settings_.name = name;
    EXPECT_TRUE(absl::IsInvalidArgument(FileSetSink::Create(settings_, "shop", {}).status()))
        << name;
  }
  settings_.name = std::string(230, 'x') + "{time}";
  EXPECT_TRUE(absl::IsInvalidArgument(FileSetSink::Create(settings_, "shop", {}).status()));
  settings_.name = "{host}.{session}.{time}.{time}";
  EXPECT_TRUE(FileSetSink::Create(settings_, "shop", {}).ok());
}

}  // namespace
}  // namespace output
