// Reads a .nettrace file and counts its events by provider and name:
//
//   example-nettrace-read FILE
#include <cstdint>
#include <cstdio>
#include <map>
#include <string>
#include <utility>

#include "nettrace/reader.h"
#include "nettrace/source.h"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: %s FILE\n", argv[0]);
    return 2;
  }
  auto source = nettrace::FdSource::Open(argv[1]);
  if (!source.ok()) {
    std::fprintf(stderr, "%s\n", source.status().ToString().c_str());
    return 2;
  }
  auto opened = nettrace::Reader::Open(*std::move(source));
  if (!opened.ok()) {
    std::fprintf(stderr, "%s: %s\n", argv[1], opened.status().ToString().c_str());
    return 2;
  }
  nettrace::Reader& reader = **opened;
  std::map<std::pair<std::string, std::string>, std::uint64_t> counts;
  using Step = nettrace::Reader::Step;
  for (Step step = reader.Next(); step != Step::kEnd; step = reader.Next()) {
    if (step != Step::kEvent) continue;
    const nettrace::EventMetadata& metadata = *reader.event().metadata;
    ++counts[{metadata.provider, metadata.name}];
  }
  for (const auto& [event, count] : counts) {
    std::printf("%10llu %s %s\n", static_cast<unsigned long long>(count), event.first.c_str(),
                event.second.c_str());
  }
  std::printf("%10llu lost\n", static_cast<unsigned long long>(reader.stats().lost));
  if (reader.status().ok()) return 0;
  std::fprintf(stderr, "%s: %s\n", argv[1], reader.status().ToString().c_str());
  return 1;
}
