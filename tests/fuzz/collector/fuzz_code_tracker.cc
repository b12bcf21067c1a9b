// Parses any bytes as /proc/PID/maps, and applies any changes to the mappings of a few processes.
// Checks that each mapping that Find returns contains the address and existed at the time.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "tools/collector/identity/code_tracker.h"

namespace {

void Require(bool promise) {
  if (!promise) std::abort();
}

void CheckMaps(std::string_view text) {
  std::uint64_t count = 0;
  for (const collector::ProcMapping& mapping : collector::ParseProcMaps(text)) {
    Require(mapping.first <= mapping.last);
    Require(mapping.path.size() <= text.size() || mapping.path == "//anon");
    ++count;
  }
  Require(count <= text.size());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  CheckMaps({reinterpret_cast<const char*>(bytes), size});
  collector::CodeTracker code(collector::KernelSymbols::Parse(""));
  std::uint64_t timestamp = 0;
  std::uint64_t dropped = 0;
  // A step has 4 bytes: its kind and two pids, an address, a size, and the time since the last
  // step.
  for (; size >= 4; bytes += 4, size -= 4) {
    const std::uint32_t pid = (bytes[0] >> 4) & 3;
    const std::uint32_t other = bytes[0] >> 6;
    const std::uint64_t address = std::uint64_t{bytes[1]} << 12;
    timestamp += bytes[3];
    switch (bytes[0] & 7) {
      case 0:
        code.Created(pid, other, timestamp);
        break;
      case 1:
        code.Executes(pid, timestamp);
        break;
      case 2:
        code.Ended(pid, timestamp);
        break;
      case 3:
        dropped = timestamp - bytes[2] % (timestamp + 1);
        code.DropEnded(dropped);
        break;
      default: {
        collector::MappingRecord record;
        record.pid = pid;
        record.address = bytes[2] == 255 ? ~address : address;
        record.size = std::uint64_t{bytes[2]} << 12;
        record.path = other == 0 ? "/a" : "/b";
        code.Maps(record, timestamp);
      }
    }
    for (const std::uint64_t time : {dropped, timestamp}) {
      const collector::CodeTracker::Found found = code.Find(other, address, time);
      if (found.mapping == nullptr) continue;
      Require(found.mapping->first <= address && address <= found.mapping->last);
      Require(found.from <= time && time < found.until);
      Require(found.mapping->id != 0 && found.mapping->file != nullptr);
    }
  }
  return 0;
}
