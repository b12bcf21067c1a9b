// Writes a trace of some events to a file that `nettrace dump`, PerfView and other tools can read:
//
//   example-nettrace-write FILE
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "nettrace/payload_encoder.h"
#include "nettrace/writer.h"

namespace {

std::uint64_t Now() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return static_cast<std::uint64_t>(std::chrono::nanoseconds(now).count());
}

absl::Status WriteTrace(const std::string& path) {
  auto sink = nettrace::FdSink::Create(path);
  if (!sink.ok()) return sink.status();

  nettrace::TraceInfo info;
  info.sync_time = absl::Now();  // wall clock time at sync_ticks
  info.sync_ticks = static_cast<std::int64_t>(Now());
  info.key_values = {{"ProcessId", std::to_string(getpid())}};
  auto writer = nettrace::Writer::Create(*std::move(sink), info);
  if (!writer.ok()) return writer.status();

  nettrace::EventMetadata request;
  request.provider = "Example.Shop";
  request.event_id = 1;
  request.name = "Request";
  request.level = 4;
  request.opcode = 0;
  request.fields = {nettrace::MakeField<std::uint32_t>("Status"),
                    nettrace::MakeField<std::u16string_view>("Path")};
  auto metadata_id = (*writer)->AddMetadata(request);
  if (!metadata_id.ok()) return metadata_id.status();

  nettrace::ThreadInfo main_thread;
  main_thread.name = "main";
  main_thread.process_id = getpid();
  main_thread.thread_id = gettid();
  auto thread = (*writer)->AddThread(main_thread);
  if (!thread.ok()) return thread.status();

  nettrace::PayloadEncoder payload(&request.fields);
  for (std::uint64_t i = 0; i < 10; ++i) {
    nettrace::Labels labels;
    labels.span_id = 1 + i / 2;
    auto label_list = (*writer)->InternLabels(labels);
    if (!label_list.ok()) return label_list.status();
    auto bytes = payload.UInt(i == 7 ? 404 : 200).Utf16(u"/index.html").Finish();
    if (!bytes.ok()) return bytes.status();
    absl::Status written = (*writer)->WriteEvent({.metadata_id = *metadata_id,
                                                  .capture_thread = *thread,
                                                  .thread = *thread,
                                                  .timestamp = Now(),
                                                  .label_list_id = *label_list},
                                                 *bytes);
    if (!written.ok()) return written;
  }
  // In a long trace, write a sequence point about every second, because readers must sort all
  // events between two sequence points.
  const absl::Status closed = (*writer)->WriteSequencePoint(Now());
  return closed.ok() ? (*writer)->Finish() : closed;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2 || std::strcmp(argv[1], "--help") == 0) {
    std::printf(
        "usage: example-nettrace-write FILE\n\n"
        "Writes ten events to FILE in the NetTrace format.\n\n"
        "example:\n"
        "  example-nettrace-write shop.nettrace && nettrace dump shop.nettrace\n\n"
        "exit status: 0 written, 1 FILE cannot be written, 2 wrong usage\n");
    return argc == 2 ? 0 : 2;
  }
  const absl::Status status = WriteTrace(argv[1]);
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}
