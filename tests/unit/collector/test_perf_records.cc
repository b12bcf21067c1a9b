// Tests the parsing of perf's records, written by hand: each field, and records that are cut.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tools/collector/perf/perf_records.h"
#include "tools/collector/perf/user_registers.h"

namespace collector {
namespace {

using namespace std::string_literals;

// Returns a record of this type, with `body` after its header.
std::string PerfRecordBytes(std::uint32_t type, const std::string& body) {
  const perf_event_header header = {type, 0, static_cast<__u16>(sizeof header + body.size())};
  std::string bytes(sizeof header, '\0');
  std::memcpy(bytes.data(), &header, sizeof header);
  return bytes + body;
}

PerfRecord View(const std::string& bytes) {
  return {0, std::as_bytes(std::span(bytes.data(), bytes.size()))};
}

// All numbers of 4 and 8 bytes are small: one byte and zeros.
const std::string kTrailer = "\1\0\0\0"s + "\2\0\0\0"s + "\x63\0\0\0\0\0\0\0"s;
const std::string kSample =
    PerfRecordBytes(PERF_RECORD_SAMPLE, "\x0A\0\0\0\x0B\0\0\0"s + "\x63\0\0\0\0\0\0\0"s +
                                            "\1\0\0\0\0\0\0\0"s + "\3\0\0\0"s + "abc");
const std::string kTask = "\x0A\0\0\0\x0C\0\0\0\x0B\0\0\0\x0D\0\0\0"s + "\x63\0\0\0\0\0\0\0"s;
const std::string kComm =
    PerfRecordBytes(PERF_RECORD_COMM, "\x0A\0\0\0\x0B\0\0\0"s + "name\0\0\0\0"s + kTrailer);
const std::string kLost =
    PerfRecordBytes(PERF_RECORD_LOST, "\1\0\0\0\0\0\0\0\x11\0\0\0\0\0\0\0"s + kTrailer);

TEST(PerfRecords, SampleHasItsParts) {
  SampleRecord sample;
  ASSERT_TRUE(ParseSample(View(kSample), &sample));
  EXPECT_EQ(sample.pid, 10u);
  EXPECT_EQ(sample.tid, 11u);
  EXPECT_EQ(sample.raw.size(), 3u);
  EXPECT_EQ(static_cast<char>(sample.raw[0]), 'a');
}

TEST(PerfRecords, SampleMayHaveACgroup) {
  SampleRecord sample;
  const std::string raw = "\4\0\0\0"s + "abcd";
  const std::string body =
      "\x0A\0\0\0\x0B\0\0\0"s + "\x63\0\0\0\0\0\0\0"s + "\1\0\0\0\0\0\0\0"s + raw;
  const std::string with = PerfRecordBytes(PERF_RECORD_SAMPLE, body + "\x07\0\0\0\0\0\0\0"s);
  ASSERT_TRUE(ParseSample(View(with), &sample));
  EXPECT_EQ(sample.cgroup, 7u);
  EXPECT_EQ(sample.raw.size(), 4u);
  ASSERT_TRUE(ParseSample(View(PerfRecordBytes(PERF_RECORD_SAMPLE, body)), &sample));
  EXPECT_EQ(sample.cgroup, 0u);
  ASSERT_TRUE(ParseSample(View(with.substr(0, with.size() - 1)), &sample));
  EXPECT_EQ(sample.cgroup, 0u);
}

TEST(PerfRecords, DeferredStackHasItsParts) {
  DeferredStackRecord stack;
  const std::string cookie = "\x01\0\0\0\x05\0\0\0"s;
  const std::string two = "\2\0\0\0\0\0\0\0"s;
  const std::string entries = "\x0A\0\0\0\0\0\0\0"s + "\x0B\0\0\0\0\0\0\0"s;
  const std::string record = PerfRecordBytes(kDeferredStackType, cookie + two + entries + kTrailer);
  ASSERT_TRUE(ParseDeferredStack(View(record), &stack));
  EXPECT_EQ(stack.tid, 2u);
  EXPECT_EQ(stack.cookie, 0x5'0000'0001u);
  ASSERT_EQ(stack.entries.size(), 16u);
  EXPECT_EQ(static_cast<char>(stack.entries[8]), '\x0B');
  const auto rejects = [&stack](const std::string& bytes) {
    return !ParseDeferredStack(View(bytes), &stack);
  };
  EXPECT_TRUE(rejects(PerfRecordBytes(kDeferredStackType, cookie + two + kTrailer)));
  EXPECT_TRUE(rejects(PerfRecordBytes(kDeferredStackType, cookie + two + entries)));
  EXPECT_TRUE(rejects(PerfRecordBytes(kDeferredStackType, cookie + kTrailer)));
  EXPECT_TRUE(rejects(
      PerfRecordBytes(kDeferredStackType, cookie + std::string(8, '\xFF') + entries + kTrailer)));
  EXPECT_TRUE(rejects(kComm));
}

TEST(PerfRecords, CgroupHasItsParts) {
  CgroupRecord cgroup;
  const std::string id = "\x07\0\0\0\1\0\0\0"s;
  const std::string record = PerfRecordBytes(PERF_RECORD_CGROUP, id + "/a/b\0\0\0\0"s + kTrailer);
  ASSERT_TRUE(ParseCgroup(View(record), &cgroup));
  EXPECT_EQ(cgroup.id, 0x1'0000'0007u);
  EXPECT_EQ(cgroup.path, "/a/b");
  // The kernel had no memory for the name.
  EXPECT_FALSE(
      ParseCgroup(View(PerfRecordBytes(PERF_RECORD_CGROUP, id + "//enomem"s + kTrailer)), &cgroup));
  EXPECT_FALSE(ParseCgroup(View(PerfRecordBytes(PERF_RECORD_CGROUP, id)), &cgroup));
  EXPECT_FALSE(ParseCgroup(View(kComm), &cgroup));
}

TEST(PerfRecords, TaskHasItsParts) {
  TaskRecord task;
  ASSERT_TRUE(ParseFork(View(PerfRecordBytes(PERF_RECORD_FORK, kTask + kTrailer)), &task));
  EXPECT_EQ(task.pid, 10u);
  EXPECT_EQ(task.tid, 11u);
  EXPECT_EQ(task.parent_pid, 12u);
  EXPECT_EQ(task.parent_tid, 13u);
  EXPECT_TRUE(ParseExit(View(PerfRecordBytes(PERF_RECORD_EXIT, kTask + kTrailer)), &task));
}

TEST(PerfRecords, CommHasItsParts) {
  CommRecord comm;
  ASSERT_TRUE(ParseComm(View(kComm), &comm));
  EXPECT_EQ(comm.pid, 10u);
  EXPECT_EQ(comm.tid, 11u);
  EXPECT_EQ(comm.name, "name");
  // A name without a NUL ends where the trailer begins.
  const std::string full =
      PerfRecordBytes(PERF_RECORD_COMM, "\x0A\0\0\0\x0B\0\0\0"s + "12345678" + kTrailer);
  ASSERT_TRUE(ParseComm(View(full), &comm));
  EXPECT_EQ(comm.name, "12345678");
  EXPECT_FALSE(comm.executes);
}

TEST(PerfRecords, CommHasAFlagForExec) {
  std::string bytes = kComm;
  const perf_event_header header = {PERF_RECORD_COMM, PERF_RECORD_MISC_COMM_EXEC,
                                    static_cast<__u16>(bytes.size())};
  std::memcpy(bytes.data(), &header, sizeof header);
  CommRecord comm;
  ASSERT_TRUE(ParseComm(View(bytes), &comm));
  EXPECT_TRUE(comm.executes);
}

std::string Mapping(char tid, const std::string& path) {
  return PerfRecordBytes(PERF_RECORD_MMAP,
                         "\x0A\0\0\0"s + tid + "\0\0\0"s + std::string(24, '\1') + path + kTrailer);
}

TEST(PerfRecords, CodeIsThePathThatTheMainThreadMapped) {
  CodeRecord code;
  const std::string padded = Mapping(10, "/bin/ls\0"s);
  ASSERT_TRUE(ParseCode(View(padded), &code));
  EXPECT_EQ(code.pid, 10u);
  EXPECT_EQ(code.path, "/bin/ls");
  const std::string whole = Mapping(10, "/bin/lsx"s);
  ASSERT_TRUE(ParseCode(View(whole), &code));
  EXPECT_EQ(code.path, "/bin/lsx");
}

TEST(PerfRecords, MappingsThatAreNoProgramAreNoCode) {
  CodeRecord code;
  EXPECT_FALSE(ParseCode(View(Mapping(10, "//anon\0\0"s)), &code));
  EXPECT_FALSE(ParseCode(View(Mapping(10, "[vdso]\0\0"s)), &code));
  EXPECT_FALSE(ParseCode(View(Mapping(10, "\0\0\0\0\0\0\0\0"s)), &code));
  EXPECT_FALSE(ParseCode(View(Mapping(11, "/lib/so\0"s)), &code));
}

TEST(PerfRecords, LostHasItsCount) {
  std::uint64_t lost = 0;
  ASSERT_TRUE(ParseLost(View(kLost), &lost));
  EXPECT_EQ(lost, 17u);
}

TEST(PerfRecords, TimestampIsThatOfTheSampleOrTheTrailer) {
  for (const std::string& bytes :
       {kSample, kComm, kLost, PerfRecordBytes(PERF_RECORD_EXIT, kTask + kTrailer)}) {
    std::uint64_t timestamp = 0;
    EXPECT_TRUE(ParseTimestamp(View(bytes).bytes, &timestamp));
    EXPECT_EQ(timestamp, 99u);
  }
}

TEST(PerfRecords, RecordsOfOtherTypesAreRefused) {
  for (const std::string& bytes :
       {kSample, kComm, kLost, PerfRecordBytes(PERF_RECORD_THROTTLE, kTask)}) {
    SampleRecord sample;
    TaskRecord task;
    CommRecord comm;
    std::uint64_t lost = 0;
    const PerfRecord record = View(bytes);
    const int parsed = int(ParseSample(record, &sample)) + int(ParseFork(record, &task)) +
                       int(ParseExit(record, &task)) + int(ParseComm(record, &comm)) +
                       int(ParseLost(record, &lost));
    EXPECT_EQ(parsed, record.type() == PERF_RECORD_THROTTLE ? 0 : 1);
  }
}

TEST(PerfRecords, RecordsThatAreCutAreRefused) {
  SampleRecord sample;
  TaskRecord task;
  CommRecord comm;
  std::uint64_t number = 0;
  for (std::size_t size = sizeof(perf_event_header); size < kSample.size(); ++size) {
    EXPECT_FALSE(ParseSample(View(kSample.substr(0, size)), &sample)) << size;
  }
  for (std::size_t size = 8; size < 8 + kTask.size(); ++size) {
    const std::string bytes = PerfRecordBytes(PERF_RECORD_FORK, kTask).substr(0, size);
    EXPECT_FALSE(ParseFork(View(bytes), &task)) << size;
  }
  for (std::size_t size = 8; size < 32; ++size) {
    EXPECT_FALSE(ParseComm(View(kComm.substr(0, size)), &comm)) << size;
  }
  const std::string mapping = Mapping(10, "/bin/ls\0"s);
  CodeRecord code;
  for (std::size_t size = 8; size < 56; ++size) {
    EXPECT_FALSE(ParseCode(View(mapping.substr(0, size)), &code)) << size;
  }
  for (std::size_t size = 8; size < 24; ++size) {
    EXPECT_FALSE(ParseLost(View(kLost.substr(0, size)), &number)) << size;
    EXPECT_FALSE(ParseTimestamp(View(kLost.substr(0, size)).bytes, &number)) << size;
  }
}

// Returns a sample with a stack of `entries`, which states that their number is `count`. Raw data
// of 4 bytes and `end` follow the stack.
std::string StackSample(const std::vector<std::uint64_t>& entries, std::uint64_t count,
                        const std::string& end = "", const std::string& raw = "abcd") {
  std::string stack(entries.size() * 8, '\0');
  if (!entries.empty()) std::memcpy(stack.data(), entries.data(), stack.size());
  std::string number(8, '\0');
  std::memcpy(number.data(), &count, sizeof count);
  return PerfRecordBytes(PERF_RECORD_SAMPLE, "\x0A\0\0\0\x0B\0\0\0"s + "\x63\0\0\0\0\0\0\0"s +
                                                 std::string(8, '\0') + "\1\0\0\0\0\0\0\0"s +
                                                 number + stack + "\4\0\0\0"s + raw + end);
}

constexpr auto kKernelMark = static_cast<std::uint64_t>(PERF_CONTEXT_KERNEL);
constexpr auto kUserMark = static_cast<std::uint64_t>(PERF_CONTEXT_USER);

TEST(PerfRecords, SampleMayHaveAStack) {
  const std::vector<std::uint64_t> entries = {kKernelMark, 0xffffffff81000000, kUserMark, 0x401000};
  for (const std::string& end : {""s, "\7\0\0\0\0\0\0\0"s}) {
    SampleRecord sample;
    ASSERT_TRUE(ParseSample(View(StackSample(entries, 4, end)), &sample));
    EXPECT_EQ(sample.pid, 10u);
    EXPECT_EQ(sample.tid, 11u);
    ASSERT_TRUE(sample.stack);
    EXPECT_EQ(sample.stack->entries.size(), 32u);
    EXPECT_EQ(sample.raw.size(), 4u);
    EXPECT_EQ(sample.cgroup, end.empty() ? 0u : 7u);
  }
  SampleRecord sample;
  ASSERT_TRUE(ParseSample(View(StackSample({}, 0)), &sample));
  ASSERT_TRUE(sample.stack);
  EXPECT_TRUE(sample.stack->entries.empty());
  EXPECT_EQ(sample.raw.size(), 4u);
}

TEST(PerfRecords, SamplesOfCpuTimeAndOfSwitchesDiffer) {
  const std::string raw(4, '\0');
  const std::string transaction(8, '\0');
  for (const std::string& cgroup : {""s, "\7\0\0\0\0\0\0\0"s}) {
    for (const bool is_switch : {false, true}) {
      const std::string end = (is_switch ? transaction : "") + cgroup;
      const std::string record = StackSample({kUserMark, 1}, 2, end, raw);
      SampleRecord sample;
      ASSERT_TRUE(ParseSample(View(record), &sample));
      EXPECT_EQ(sample.kind,
                is_switch ? SampleRecord::Kind::kSwitchOut : SampleRecord::Kind::kEvent);
      EXPECT_EQ(sample.cgroup, cgroup.empty() ? 0u : 7u);
      ASSERT_TRUE(sample.stack);
      EXPECT_EQ(sample.stack->entries.size(), 16u);
      std::uint16_t id = 1;
      ASSERT_TRUE(ParseTracepointId(sample.raw, &id));
      EXPECT_EQ(id, kCpuTimeId);
    }
  }
}

// Returns `value` as 8 bytes.
std::string Number(std::uint64_t value) {
  std::string bytes(8, '\0');
  std::memcpy(bytes.data(), &value, sizeof value);
  return bytes;
}

TEST(PerfRecords, SamplesMayHaveACopyOfTheStack) {
  const std::string registers(kUserRegisters.size() * 8, '\5');
  const std::string copy =
      Number(PERF_SAMPLE_REGS_ABI_64) + registers + Number(32) + std::string(32, '\6') + Number(24);
  const std::string of_kernel = Number(PERF_SAMPLE_REGS_ABI_NONE) + Number(0);
  for (const std::string& part : {copy, of_kernel}) {
    for (const std::string& cgroup : {""s, Number(7)}) {
      for (const std::string& transaction : {""s, Number(0)}) {
        SampleRecord sample;
        const std::string raw(4, '\0');
        const std::string record =
            StackSample({kKernelMark, 1}, 2, absl::StrCat(part, transaction, cgroup), raw);
        ASSERT_TRUE(ParseSample(View(record), &sample));
        ASSERT_TRUE(sample.stack && sample.stack->copy);
        const UserCopy& parsed = *sample.stack->copy;
        EXPECT_EQ(parsed.has_64_bits, part == copy);
        EXPECT_EQ(parsed.registers.size(), part == copy ? registers.size() : 0);
        EXPECT_EQ(parsed.stack.size(), part == copy ? 24u : 0u);
        EXPECT_EQ(sample.kind, transaction.empty() ? SampleRecord::Kind::kEvent
                                                   : SampleRecord::Kind::kSwitchOut);
        EXPECT_EQ(sample.cgroup, cgroup.empty() ? 0u : 7u);
        EXPECT_EQ(sample.stack->entries.size(), 16u);
      }
    }
  }
}

TEST(PerfRecords, ACopyMustFitItsSample) {
  const std::string registers(kUserRegisters.size() * 8, '\5');
  for (const std::string& end :
       {Number(3) + registers + Number(0), Number(2) + registers.substr(8) + Number(0),
        Number(2) + registers + Number(16) + Number(1) + Number(0),
        Number(2) + registers + Number(8) + Number(1) + Number(16),
        Number(2) + registers + Number(~std::uint64_t{0}) + Number(1) + Number(0),
        Number(2) + registers + Number(12) + std::string(12, '\0') + Number(0) + "\0\0\0\0"s}) {
    SampleRecord sample;
    EXPECT_FALSE(ParseStackSample(View(StackSample({kKernelMark, 1}, 2, end)).bytes, &sample));
    EXPECT_FALSE(sample.stack);
    EXPECT_EQ(sample.kind, SampleRecord::Kind::kEvent);
  }
}

TEST(PerfRecords, OnlySwitchesInAreParsed) {
  const std::string other = "\x0A\0\0\0\x0B\0\0\0"s;
  for (const auto& [type, body] :
       {std::pair(std::uint32_t{PERF_RECORD_SWITCH}, kTrailer),
        std::pair(std::uint32_t{PERF_RECORD_SWITCH_CPU_WIDE}, other + kTrailer)}) {
    std::string record = PerfRecordBytes(type, body);
    SampleRecord sample;
    ASSERT_TRUE(ParseSwitchIn(View(record), &sample));
    EXPECT_EQ(sample.kind, SampleRecord::Kind::kSwitchIn);
    EXPECT_EQ(sample.pid, 1u);
    EXPECT_EQ(sample.tid, 2u);
    const std::uint16_t out = PERF_RECORD_MISC_SWITCH_OUT;
    std::memcpy(record.data() + offsetof(perf_event_header, misc), &out, sizeof out);
    EXPECT_FALSE(ParseSwitchIn(View(record), &sample));
  }
  SampleRecord sample;
  EXPECT_FALSE(ParseSwitchIn(View(PerfRecordBytes(PERF_RECORD_SWITCH, other)), &sample));
  EXPECT_FALSE(ParseSwitchIn(View(kComm), &sample));
}

TEST(PerfRecords, SampleOfZeroUnitsHasNoStack) {
  // A tracepoint that counts another quantity than hits may write a period of 0.
  const std::string body =
      "\x0A\0\0\0\x0B\0\0\0"s + "\x63\0\0\0\0\0\0\0"s + std::string(8, '\0') + "\4\0\0\0"s + "abcd";
  SampleRecord sample;
  ASSERT_TRUE(ParseSample(View(PerfRecordBytes(PERF_RECORD_SAMPLE, body)), &sample));
  EXPECT_EQ(sample.raw.size(), 4u);
  EXPECT_FALSE(sample.stack);
}

TEST(PerfRecords, NothingStaysOfTheSampleBefore) {
  const std::string copy = Number(PERF_SAMPLE_REGS_ABI_NONE) + Number(0);
  const std::string full =
      StackSample({kKernelMark, 1}, 2, copy + Number(0) + Number(7), std::string(4, '\0'));
  SampleRecord sample;
  ASSERT_TRUE(ParseSample(View(full), &sample));
  ASSERT_TRUE(sample.stack && sample.stack->copy);
  EXPECT_EQ(sample.kind, SampleRecord::Kind::kSwitchOut);
  EXPECT_EQ(sample.cgroup, 7u);
  ASSERT_TRUE(ParseSample(View(kSample), &sample));
  EXPECT_EQ(sample.kind, SampleRecord::Kind::kEvent);
  EXPECT_EQ(sample.cgroup, 0u);
  EXPECT_FALSE(sample.stack);
  ASSERT_TRUE(ParseSample(View(full), &sample));
  ASSERT_TRUE(ParseSample(View(StackSample({kUserMark, 1}, 2)), &sample));
  EXPECT_EQ(sample.kind, SampleRecord::Kind::kEvent);
  EXPECT_EQ(sample.cgroup, 0u);
  ASSERT_TRUE(sample.stack);
  EXPECT_FALSE(sample.stack->copy);
  ASSERT_TRUE(ParseSample(View(full), &sample));
  ASSERT_TRUE(ParseSwitchIn(View(PerfRecordBytes(PERF_RECORD_SWITCH, kTrailer)), &sample));
  EXPECT_EQ(sample.kind, SampleRecord::Kind::kSwitchIn);
  EXPECT_TRUE(sample.raw.empty());
  EXPECT_EQ(sample.cgroup, 0u);
  EXPECT_FALSE(sample.stack);
}

TEST(PerfRecords, StackMustFitItsSample) {
  SampleRecord sample;
  const std::vector<std::uint64_t> entries = {kUserMark, 0x401000};
  EXPECT_FALSE(ParseStackSample(View(StackSample(entries, 3)).bytes, &sample));
  EXPECT_FALSE(ParseStackSample(View(StackSample(entries, ~std::uint64_t{0})).bytes, &sample));
  EXPECT_FALSE(ParseStackSample(View(StackSample(entries, std::uint64_t{1} << 61)).bytes, &sample));
  EXPECT_FALSE(ParseStackSample(View(StackSample({0x401000, 0x402000}, 2)).bytes, &sample));
  EXPECT_FALSE(ParseStackSample(View(StackSample(entries, 2, "abc")).bytes, &sample));
  const std::string whole = StackSample(entries, 2);
  for (std::size_t size = 8; size < whole.size(); ++size) {
    EXPECT_FALSE(ParseStackSample(View(whole.substr(0, size)).bytes, &sample)) << size;
  }
}

TEST(PerfRecords, MappingHasItsParts) {
  const std::string place =
      "\x0A\0\0\0\x0B\0\0\0"s + "\1\0\0\0\0\0\0\0"s + "\2\0\0\0\0\0\0\0"s + "\3\0\0\0\0\0\0\0"s;
  const std::string file = "\2\0\0\0"s + "id" + std::string(18, '\0') + std::string(8, '\0');
  const std::string path = "/bin/a\0\0"s + kTrailer;
  MappingRecord mapping;
  const std::string first = PerfRecordBytes(PERF_RECORD_MMAP, place + path);
  ASSERT_TRUE(ParseMapping(View(first), &mapping));
  EXPECT_EQ(mapping.pid, 10u);
  EXPECT_EQ(mapping.tid, 11u);
  EXPECT_EQ(mapping.address, 1u);
  EXPECT_EQ(mapping.size, 2u);
  EXPECT_EQ(mapping.offset, 3u);
  EXPECT_EQ(mapping.path, "/bin/a");
  std::string second = PerfRecordBytes(PERF_RECORD_MMAP2, place + file + path);
  ASSERT_TRUE(ParseMapping(View(second), &mapping));
  EXPECT_EQ(mapping.path, "/bin/a");
  EXPECT_TRUE(mapping.build_id.empty());
  second[5] = 0x40;  // misc: the record has a build id
  ASSERT_TRUE(ParseMapping(View(second), &mapping));
  ASSERT_EQ(mapping.build_id.size(), 2u);
  EXPECT_EQ(static_cast<char>(mapping.build_id[1]), 'd');
  second[8 + 32] = 21;  // more bytes than there are
  ASSERT_TRUE(ParseMapping(View(second), &mapping));
  EXPECT_TRUE(mapping.build_id.empty());
  EXPECT_FALSE(ParseMapping(View(second.substr(0, 8 + 64 + 15)), &mapping));
}

}  // namespace
}  // namespace collector
