#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/collector/numbered_stream.h"
#include "tools/base/unique_fd.h"
#include "tools/output/file_set_sink.h"
#include "tools/output/recover_files.h"
#include "tools/output/zstd_sink.h"
#include "tools/trace/ring_positions.h"

namespace output {
namespace {

using collector::testing::AreNumbers;
using collector::testing::ExpectVerifies;
using collector::testing::FileContents;
using collector::testing::NumberedStream;
using collector::testing::PathsIn;
using collector::testing::ReadContents;
using collector::testing::TemporaryDirectory;
using Ending = trace::RecordedRings::Ending;
using Outcome = RecoveredFile::Outcome;

constexpr char kPartial[] = "shop-20261122T070102.123456Z.nettrace.partial";
constexpr char kComplete[] = "shop-20261122T070102.123456Z.nettrace";

class RecoverFilesTest : public ::testing::Test {
 protected:
  RecoverFilesTest() {
    settings_.directory = temporary_.path();
    settings_.keep_bytes = 0;
  }
  std::unique_ptr<nettrace::Sink> MakeSink(std::optional<int> compressed) {
    std::unique_ptr<nettrace::Sink> sink = *FileSetSink::Create(settings_, "shop", compressed);
    if (compressed) sink = *ZstdSink::Create(std::move(sink), {*compressed});
    return sink;
  }
  // Leaves a file like a process that was killed. Returns the path of the file.
  std::string LeavePartial(std::optional<int> compressed = std::nullopt) {
    {
      NumberedStream stream(MakeSink(compressed));
      for (int i = 0; i < 10; ++i) stream.Write(100);
    }
    const std::vector<std::string> paths = PathsIn(settings_.directory);
    EXPECT_EQ(paths.size(), 1u);
    EXPECT_TRUE(paths.at(0).ends_with(".partial"));
    return paths.at(0);
  }
  std::vector<RecoveredFile> Recover() {
    auto recovered = RecoverFiles(settings_, "shop");
    EXPECT_TRUE(recovered.ok()) << recovered.status();
    return *recovered;
  }
  std::string PathFor(const char* name) const { return settings_.directory + "/" + name; }

  TemporaryDirectory temporary_;
  FilesSettings settings_;
};

TEST_F(RecoverFilesTest, RepairsFilesOfACrashAndRecordsTheUnknownTime) {
  for (const std::optional<int> compressed : {std::optional<int>(), std::optional<int>(1)}) {
    const std::string partial = LeavePartial(compressed);
    const std::vector<RecoveredFile> recovered = Recover();
    ASSERT_EQ(recovered.size(), 1u);
    EXPECT_EQ(recovered[0].outcome, Outcome::kRepaired) << RecoveryText(recovered[0]);
    EXPECT_EQ(recovered[0].partial, partial);
    EXPECT_EQ(recovered[0].path + ".partial", partial) << "it has another name";
    EXPECT_EQ(recovered[0].events, 1000u);
    EXPECT_NE(RecoveryText(recovered[0]).find("from 20"), std::string::npos)
        << RecoveryText(recovered[0]);
    EXPECT_EQ(PathsIn(settings_.directory), std::vector<std::string>{recovered[0].path});
    ExpectVerifies(recovered[0].path);
    const FileContents contents = ReadContents(recovered[0].path);
    EXPECT_TRUE(contents.complete);
    EXPECT_TRUE(AreNumbers(contents.numbers, 0, 1000));
    EXPECT_EQ(contents.others, 1u) << "it does not say what is not known";
    EXPECT_TRUE(Recover().empty());
    std::filesystem::remove(recovered[0].path);
  }
}

TEST_F(RecoverFilesTest, TornEndIsLeftOut) {
  for (const std::optional<int> compressed : {std::optional<int>(), std::optional<int>(1)}) {
    const std::string partial = LeavePartial(compressed);
    const std::uintmax_t size = std::filesystem::file_size(partial);
    std::filesystem::resize_file(partial, size - size / 3);
    const std::vector<RecoveredFile> recovered = Recover();
    ASSERT_EQ(recovered.size(), 1u);
    EXPECT_EQ(recovered[0].outcome, Outcome::kRepaired) << RecoveryText(recovered[0]);
    ExpectVerifies(recovered[0].path);
    const FileContents contents = ReadContents(recovered[0].path);
    EXPECT_GE(contents.numbers.size(), 400u);
    EXPECT_TRUE(AreNumbers(contents.numbers, 0, contents.numbers.size()));
    std::filesystem::remove(recovered[0].path);
  }
}

TEST_F(RecoverFilesTest, CompleteFileGetsItsName) {
  {
    NumberedStream stream(MakeSink(std::nullopt));
    stream.Write(10);
    ASSERT_TRUE(stream.Finish().ok());
  }
  std::filesystem::rename(PathsIn(settings_.directory).at(0), PathFor(kPartial));
  const std::vector<RecoveredFile> recovered = Recover();
  ASSERT_EQ(recovered.size(), 1u);
  EXPECT_EQ(recovered[0].outcome, Outcome::kComplete) << RecoveryText(recovered[0]);
  EXPECT_EQ(recovered[0].path, PathFor(kComplete));
  EXPECT_EQ(ReadContents(PathFor(kComplete)).others, 0u);
}

TEST_F(RecoverFilesTest, NoFileIsReplaced) {
  const std::string partial = LeavePartial();
  std::filesystem::rename(partial, PathFor(kPartial));
  std::ofstream(PathFor(kComplete)) << "is there";
  const std::vector<RecoveredFile> recovered = Recover();
  ASSERT_EQ(recovered.size(), 1u);
  EXPECT_EQ(recovered[0].outcome, Outcome::kRepaired) << RecoveryText(recovered[0]);
  EXPECT_EQ(recovered[0].path, PathFor("shop-20261122T070102.123457Z.nettrace"));
  EXPECT_EQ(std::filesystem::file_size(PathFor(kComplete)), 8u);
}

TEST_F(RecoverFilesTest, FilesWithNothingInThemAreRemoved) {
  std::ofstream(PathFor(kPartial)).flush();
  std::ofstream(PathFor("shop-20261122T070102.123457Z.nettrace.partial"))
      << std::string(10'000, '\0');
  { NumberedStream stream(MakeSink(std::nullopt)); }
  const std::vector<RecoveredFile> recovered = Recover();
  for (const RecoveredFile& file : recovered) {
    EXPECT_EQ(file.outcome, Outcome::kEmpty) << RecoveryText(file);
  }
  EXPECT_GE(recovered.size(), 2u);
  EXPECT_TRUE(PathsIn(settings_.directory).empty());
}

TEST_F(RecoverFilesTest, RenamesUnreadableFiles) {
  std::ofstream(PathFor(kPartial)) << std::string(10'000, 'x');
  const std::vector<RecoveredFile> recovered = Recover();
  ASSERT_EQ(recovered.size(), 1u);
  EXPECT_EQ(recovered[0].outcome, Outcome::kUnreadable) << RecoveryText(recovered[0]);
  EXPECT_EQ(PathsIn(settings_.directory),
            std::vector<std::string>{PathFor("shop-20261122T070102.123456Z.nettrace.unreadable")});
  EXPECT_TRUE(Recover().empty());
}

TEST_F(RecoverFilesTest, FileThatIsBeingWrittenIsLetAlone) {
  NumberedStream stream(MakeSink(std::nullopt));
  stream.Write(10);
  const std::vector<RecoveredFile> recovered = Recover();
  ASSERT_EQ(recovered.size(), 1u);
  EXPECT_EQ(recovered[0].outcome, Outcome::kBusy) << RecoveryText(recovered[0]);
  stream.Write(10);
  ASSERT_TRUE(stream.Finish().ok());
  EXPECT_TRUE(AreNumbers(ReadContents(PathsIn(settings_.directory).at(0)).numbers, 0, 20));
}

bool LockAs(const base::UniqueFd& fd, short type) {
  struct flock lock = {};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  return fcntl(fd.get(), F_OFD_SETLK, &lock) == 0;
}

TEST_F(RecoverFilesTest, LocksOfReadersDoNotPreventRepair) {
  for (const bool whole : {true, false}) {
    const std::string partial = LeavePartial();
    const base::UniqueFd reader(open(partial.c_str(), O_RDONLY | O_CLOEXEC));
    if (whole) {
      ASSERT_EQ(flock(reader.get(), LOCK_EX | LOCK_NB), 0);
    } else {
      ASSERT_TRUE(LockAs(reader, F_RDLCK));
    }
    const std::vector<RecoveredFile> recovered = Recover();
    ASSERT_EQ(recovered.size(), 1u);
    EXPECT_EQ(recovered[0].outcome, Outcome::kRepaired) << RecoveryText(recovered[0]);
    EXPECT_EQ(PathsIn(settings_.directory), std::vector<std::string>{recovered[0].path});
    struct stat facts = {};
    ASSERT_EQ(stat(recovered[0].path.c_str(), &facts), 0);
    EXPECT_EQ(facts.st_mode & 07777, settings_.mode);
    std::filesystem::remove(recovered[0].path);
  }
}

TEST_F(RecoverFilesTest, ReaderCannotLockAFileThatIsBeingWritten) {
  NumberedStream stream(MakeSink(std::nullopt));
  stream.Write(10);
  const base::UniqueFd reader(
      open(PathsIn(settings_.directory).at(0).c_str(), O_RDONLY | O_CLOEXEC));
  ASSERT_TRUE(reader.valid());
  EXPECT_FALSE(LockAs(reader, F_RDLCK));
  EXPECT_FALSE(LockAs(reader, F_WRLCK));
}

TEST_F(RecoverFilesTest, FileThatAnotherProcessRepairsIsLetAlone) {
  const std::string partial = LeavePartial();
  const std::string copy =
      partial.substr(0, partial.size() - std::string_view(".partial").size()) + ".repairing";
  base::UniqueFd other(open(copy.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  ASSERT_TRUE(LockAs(other, F_WRLCK));
  std::vector<RecoveredFile> recovered = Recover();
  ASSERT_EQ(recovered.size(), 1u);
  EXPECT_EQ(recovered[0].outcome, Outcome::kBusy) << RecoveryText(recovered[0]);
  EXPECT_TRUE(std::filesystem::exists(copy));
  other.reset();
  recovered = Recover();
  ASSERT_EQ(recovered.size(), 1u);
  EXPECT_EQ(recovered[0].outcome, Outcome::kRepaired) << RecoveryText(recovered[0]);
}

TEST_F(RecoverFilesTest, RepairThatCameToNoEndIsDoneAgain) {
  const std::string partial = LeavePartial();
  const std::string copy =
      partial.substr(0, partial.size() - std::string_view(".partial").size()) + ".repairing";
  std::ofstream(copy) << "a part of it";
  const std::vector<RecoveredFile> recovered = Recover();
  ASSERT_EQ(recovered.size(), 1u);
  EXPECT_EQ(recovered[0].outcome, Outcome::kRepaired) << RecoveryText(recovered[0]);
  EXPECT_EQ(PathsIn(settings_.directory), std::vector<std::string>{recovered[0].path});
  EXPECT_EQ(ReadContents(recovered[0].path).numbers.size(), 1000u);
}

TEST_F(RecoverFilesTest, RepairKeepsWithinTheBound) {
  const std::string partial = LeavePartial();
  settings_.keep_bytes = std::filesystem::file_size(partial) * 3 / 2;
  std::vector<RecoveredFile> recovered = Recover();
  ASSERT_EQ(recovered.size(), 1u);
  EXPECT_EQ(recovered[0].outcome, Outcome::kFailed) << RecoveryText(recovered[0]);
  EXPECT_EQ(PathsIn(settings_.directory), std::vector<std::string>{partial});
  settings_.keep_bytes *= 2;
  recovered = Recover();
  ASSERT_EQ(recovered.size(), 1u);
  EXPECT_EQ(recovered[0].outcome, Outcome::kRepaired) << RecoveryText(recovered[0]);
}

TEST_F(RecoverFilesTest, FilesOfOtherSessionsAndLinksAreLetAlone) {
  const std::string partial = LeavePartial();
  const std::string other = PathFor("shop2-20261122T070102.123456Z.nettrace.partial");
  std::filesystem::rename(partial, other);
  std::filesystem::create_symlink(other, PathFor(kPartial));
  EXPECT_TRUE(Recover().empty());
  EXPECT_EQ(PathsIn(settings_.directory).size(), 2u);
}

// Adds a record to the stream that contains the position of one writer of a ring, and the end mark
// if `ends` is set.
void AddPosition(NumberedStream* stream, std::uint64_t number, bool ends = false) {
  nettrace::Writer& writer = stream->writer();
  const auto metadata = writer.AddMetadata(trace::RingPositionsMetadata());
  const auto thread = writer.AddThread({});
  ASSERT_TRUE(metadata.ok() && thread.ok());
  const trace::RingRecord record = trace::RecordOf({{{trace::RingWriterId{{}, 1}, {number, 2, 3}}},
                                                    ends ? Ending::kEnded : Ending::kInterrupted});
  for (const std::vector<std::byte>& payload : trace::RingPositionsPayloads(record)) {
    ASSERT_TRUE(writer
                    .WriteEvent({.metadata_id = *metadata,
                                 .capture_thread = *thread,
                                 .thread = *thread,
                                 .processor = nettrace::kNoProcessor,
                                 .timestamp = 1'000'000},
                                payload)
                    .ok());
  }
}

std::uint64_t PositionIn(const trace::RecordedRings& rings) {
  const auto found = rings.positions.find({{}, 1});
  EXPECT_NE(found, rings.positions.end());
  if (found == rings.positions.end()) return 0;
  EXPECT_EQ(found->second.skip, 2U);
  EXPECT_EQ(found->second.owed, 3U);
  return found->second.number;
}

TEST_F(RecoverFilesTest, ReturnsThePositionsOfTheNewestFileThatHasAny) {
  {
    NumberedStream stream(MakeSink(1));
    AddPosition(&stream, 10);
    ASSERT_TRUE(stream.Finish().ok());
  }
  trace::RecordedRings rings;
  ASSERT_TRUE(RecoverFiles(settings_, "shop", &rings).ok());
  EXPECT_EQ(PositionIn(rings), 10U) << "the complete file does not count";
  // The next file was cut before its first record of positions. RecoverFiles adds to this file the
  // positions that are at the end of the previous file.
  {
    NumberedStream stream(MakeSink(1));
    stream.Write(5);
  }
  for (int i = 0; i < 2; ++i) {
    rings = {};
    ASSERT_TRUE(RecoverFiles(settings_, "shop", &rings).ok());
    EXPECT_EQ(PositionIn(rings), 10U) << i;
  }
  std::filesystem::remove(PathsIn(settings_.directory).at(0));
  {
    NumberedStream stream(MakeSink(1));
    AddPosition(&stream, 20);
    ASSERT_TRUE(stream.writer().Flush().ok());
  }
  for (int i = 0; i < 2; ++i) {
    rings = {};
    ASSERT_TRUE(RecoverFiles(settings_, "shop", &rings).ok());
    EXPECT_EQ(PositionIn(rings), 20U) << i;
  }
  for (const std::string& path : PathsIn(settings_.directory)) ExpectVerifies(path);
}

TEST_F(RecoverFilesTest, ReturnsHowTheRecordingEnded) {
  trace::RecordedRings rings;
  const auto recover = [&] {
    rings = {};
    EXPECT_TRUE(RecoverFiles(settings_, "shop", &rings).ok());
    return rings.ending;
  };
  EXPECT_EQ(recover(), Ending::kEnded) << "there is no file";
  {
    NumberedStream stream(MakeSink(1));
    AddPosition(&stream, 10, /*ends=*/true);
    ASSERT_TRUE(stream.Finish().ok());
  }
  EXPECT_EQ(recover(), Ending::kEnded);
  // The next file was cut before its first record of positions, so it has no event of a ring.
  {
    NumberedStream stream(MakeSink(1));
    stream.Write(5);
  }
  EXPECT_EQ(recover(), Ending::kInterruptedEarly);
  EXPECT_EQ(recover(), Ending::kEnded) << "the repaired file";
  EXPECT_EQ(PositionIn(rings), 10U);
  {
    NumberedStream stream(MakeSink(1));
    AddPosition(&stream, 20);
    ASSERT_TRUE(stream.writer().Flush().ok());
    EXPECT_EQ(recover(), Ending::kEnded) << "the file is being written";
  }
  EXPECT_EQ(recover(), Ending::kInterrupted);
  EXPECT_EQ(recover(), Ending::kInterrupted) << "the repaired file";
  // A rotation has completed the next file, but not created another one, so the recording has no
  // end mark.
  {
    NumberedStream stream(MakeSink(1));
    AddPosition(&stream, 30);
    ASSERT_TRUE(stream.Finish().ok());
  }
  EXPECT_EQ(recover(), Ending::kInterrupted);
  EXPECT_EQ(PositionIn(rings), 30U);
}

TEST_F(RecoverFilesTest, RecordingIsInterruptedEarlyIfItsFirstFileHasNoPositions) {
  for (const std::string& contents : {std::string(), std::string(5000, '\0'), std::string("no")}) {
    SCOPED_TRACE(contents.size());
    std::ofstream(PathFor(kPartial)) << contents;
    trace::RecordedRings rings;
    ASSERT_TRUE(RecoverFiles(settings_, "shop", &rings).ok());
    EXPECT_EQ(rings.ending, Ending::kInterruptedEarly);
    EXPECT_TRUE(rings.positions.empty());
  }
}

}  // namespace
}  // namespace output
