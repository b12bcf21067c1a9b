// Traces of events with stacks, for tests of the exports and reports that use stacks.
#ifndef TESTS_UNIT_NETTRACE_TOOL_STACKS_TRACE_H_
#define TESTS_UNIT_NETTRACE_TOOL_STACKS_TRACE_H_

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/support/nettrace/stream_builder.h"

namespace tools::stacks_trace {

using nettrace::Bytes;
using nettrace::TypeCode;

enum Row : std::uint32_t { kMapping = 1, kFunction, kMetadata, kSale, kSwitch, kName, kCpu };

struct TraceEvent {
  Row row;
  Bytes payload = {};
  std::uint32_t stack = 0;
  std::uint64_t thread = 1;
};

inline Bytes Text(std::string_view text) {
  return Bytes().U16(static_cast<unsigned>(text.size())).Raw(text);
}
inline TraceEvent Mapping(std::uint64_t id, std::uint64_t first, std::uint64_t last,
                          std::string_view path, std::uint64_t metadata = 0) {
  return {kMapping,
          Bytes().Var(id).Var(first).Var(last).Var(0x40).Append(Text(path)).Var(metadata)};
}
inline TraceEvent Function(std::uint64_t mapping, std::uint64_t first, std::uint64_t last,
                           std::string_view name) {
  return {kFunction, Bytes().Var(1).Var(mapping).Var(first).Var(last).Append(Text(name))};
}
inline TraceEvent Metadata(std::uint64_t id, std::string_view json) {
  return {kMetadata, Bytes().Var(id).Append(Text(json)).Append(Text(""))};
}
inline TraceEvent Sale(std::uint32_t stack, std::uint64_t price = 1, std::uint64_t thread = 1) {
  return {kSale, Bytes().Var(price), stack, thread};
}
inline TraceEvent Switch(std::uint32_t stack, std::uint64_t time) {
  return {kSwitch, Bytes().Var(time), stack};
}
inline TraceEvent Cpu(std::uint32_t stack, std::uint64_t thread = 1) {
  return {kCpu, Bytes().Var(1), stack, thread};
}

// Returns a block of stacks, leaf first, with the ids from 1 on.
inline Bytes StacksOf(const std::vector<std::vector<std::uint64_t>>& stacks) {
  Bytes content;
  content.U32(1).U32(stacks.size());
  for (const std::vector<std::uint64_t>& stack : stacks) {
    content.U32(stack.size() * 8);
    for (const std::uint64_t frame : stack) content.U64(frame);
  }
  return Block(nettrace::BlockKind::kStack, content);
}

// Returns stacks, leaf first. The leaves of 1 and 2 are different addresses in one function, 3 has
// unknown code, and the leaf of 4 is in the kernel.
inline Bytes Stacks() {
  return StacksOf(
      {{0x1110, 0x1205}, {0x1120, 0x1205}, {0x1300, 0x9000}, {0xffffffff81000010, 0x1205}});
}

inline Bytes Stream(const std::vector<TraceEvent>& events, const Bytes& stacks = Stacks()) {
  const auto number = [](const char* name) {
    return nettrace::FieldRow(name, Code(TypeCode::kVarUInt));
  };
  const auto text = [](const char* name) {
    return nettrace::FieldRow(name, Code(TypeCode::kArray).Append(Code(TypeCode::kUtf8CodeUnit)));
  };
  Bytes stream = nettrace::Start();
  stream.Append(
      nettrace::MetadataBlock({{kMapping,
                                "Universal.System",
                                3,
                                "ProcessMapping",
                                {number("Id"), number("StartAddress"), number("EndAddress"),
                                 number("FileOffset"), text("FileName"), number("MetadataId")}},
                               {kFunction,
                                "Universal.System",
                                4,
                                "ProcessSymbol",
                                {number("Id"), number("MappingId"), number("StartAddress"),
                                 number("EndAddress"), text("Name")}},
                               {kMetadata,
                                "Universal.System",
                                5,
                                "ProcessMappingMetadata",
                                {number("Id"), text("SymbolMetadata"), text("VersionMetadata")}},
                               {kSale, "Shop", 7, "Sale", {number("Price")}},
                               {kSwitch, "Universal.Events", 9, "cswitch", {number("Value")}},
                               {kName, "Universal.System", 0, "ExistingProcess", {text("Name")}},
                               {kCpu, "Universal.Events", 10, "cpu", {number("Value")}}}));
  stream.Append(nettrace::ThreadBlock({1, 2})).Append(stacks);
  std::uint32_t sequence = 0;
  std::vector<nettrace::EventFields> rows;
  rows.reserve(events.size());
  for (const TraceEvent& event : events) {
    rows.push_back({.metadata_id = event.row,
                    .sequence = ++sequence,
                    .thread = event.thread,
                    .stack_id = event.stack,
                    .timestamp = 2000 + sequence,
                    .payload = event.payload});
  }
  return stream.Append(nettrace::EventBlock(rows)).Append(nettrace::End());
}

// Returns events that describe the code of the stacks, followed by `events`.
inline std::vector<TraceEvent> WithCode(std::vector<TraceEvent> events) {
  std::vector<TraceEvent> all = {
      {kName, Text("/opt/shop")},
      Metadata(3, R"({"type":"ELF","build_id":"b1ed"})"),
      Mapping(1, 0x1000, 0x1fff, "/opt/shop", 3),
      Function(1, 0x1100, 0x11ff, "_ZN4shop4SendEv"),
      Function(1, 0x1200, 0x12ff, "main"),
      Mapping(2, 0xffff800000000000, 0xffffffffffffffff, "vmlinux"),
      Function(2, 0xffffffff81000000, 0xffffffff810000ff, "write"),
  };
  all.insert(all.end(), events.begin(), events.end());
  return all;
}

}  // namespace tools::stacks_trace

#endif  // TESTS_UNIT_NETTRACE_TOOL_STACKS_TRACE_H_
