// Writes traces of stacks for the tests of `nettrace report`. Usage: write_stack_traces DIR
//   stacks.nettrace  10 CPU samples, 2 times off the CPU and 2 events of a service, on two threads;
//                    a function has a name that would be HTML
//   many.nettrace    40,000 different stacks, more than a page of 1 MB has room for
//   plain.nettrace   an event without a stack
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <string>
#include <vector>

#include "tests/unit/nettrace_tool/stacks_trace.h"

namespace {

using tools::stacks_trace::Cpu;
using tools::stacks_trace::Function;
using tools::stacks_trace::Mapping;
using tools::stacks_trace::Sale;
using tools::stacks_trace::StacksOf;
using tools::stacks_trace::Stream;
using tools::stacks_trace::Switch;
using tools::stacks_trace::TraceEvent;
using tools::stacks_trace::WithCode;

constexpr char kHtml[] = "<img src=x onerror=\"document.title='broken'\">";

void Write(const std::string& path, const nettrace::Bytes& stream) {
  std::ofstream file(path, std::ios::binary);
  file.write(reinterpret_cast<const char*>(stream.span().data()),
             static_cast<std::streamsize>(stream.span().size()));
  file.close();
  if (file) return;
  std::cerr << path << ": cannot be written\n";
  std::exit(1);
}

// The functions are main, shop::Send, one with a hostile name, and write of the kernel.
void WriteStacks(const std::string& path) {
  const nettrace::Bytes stacks = StacksOf({{0x1110, 0x1205},
                                           {0x1120, 0x1205},
                                           {0x1310, 0x1205},
                                           {0xffffffff81000010, 0x1115, 0x1205},
                                           {0x9000}});
  std::vector<TraceEvent> events = {Function(1, 0x1300, 0x13ff, kHtml)};
  for (int i = 0; i < 6; ++i) events.push_back(Cpu(1));
  for (const TraceEvent& event : {Cpu(2, 2), Cpu(2, 2), Cpu(3), Cpu(4, 2), Switch(4, 5000),
                                  Switch(1, 2000), Sale(5), Sale(5)}) {
    events.push_back(event);
  }
  Write(path, Stream(WithCode(events), stacks));
}

void WriteMany(const std::string& path) {
  constexpr std::uint64_t kStacks = 40'000;
  std::vector<std::vector<std::uint64_t>> stacks;
  std::vector<TraceEvent> events = {Mapping(3, 0x100000, 0xfffffff, "/lib/many.so")};
  for (std::uint64_t i = 0; i < kStacks; ++i) {
    stacks.push_back({0x1000000 + i * 16, 0x100000 + i % 100 * 16, 0x1205});
    events.push_back(Cpu(static_cast<std::uint32_t>(i + 1), 1 + i % 2));
  }
  for (int i = 0; i < 1000; ++i) events.push_back(Cpu(1));
  Write(path, Stream(WithCode(events), StacksOf(stacks)));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2 || argv[1][0] == '-') {
    std::cerr << "usage: write_stack_traces DIR\n";
    return 2;
  }
  const std::string folder = argv[1];
  WriteStacks(folder + "/stacks.nettrace");
  WriteMany(folder + "/many.nettrace");
  Write(folder + "/plain.nettrace", Stream({Sale(0)}));
  return 0;
}
