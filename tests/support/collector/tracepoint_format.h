// The text of the `format` file of an EventHeader tracepoint, and ids for its samples.
#ifndef TESTS_SUPPORT_COLLECTOR_TRACEPOINT_FORMAT_H_
#define TESTS_SUPPORT_COLLECTOR_TRACEPOINT_FORMAT_H_

#include <cstdint>
#include <string>

namespace collector {

// Ids of the process and of the thread that samples come from. No thread in /proc has this thread
// id.
inline constexpr std::uint32_t kSamplePid = 100;
inline constexpr std::uint32_t kSampleTid = 4'000'000;

// Returns the text of the `format` file of the tracepoint `name`, such as P_L4K1.
inline std::string EventHeaderFormat(int id, const std::string& name) {
  return "name: " + name + "\nID: " + std::to_string(id) +
         "\nformat:\n"
         "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
         "\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n"
         "\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n"
         "\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n"
         "\tfield:u8 eventheader_flags;\toffset:8;\tsize:1;\tsigned:0;\n"
         "\tfield:u8 version;\toffset:9;\tsize:1;\tsigned:0;\n"
         "\tfield:u16 id;\toffset:10;\tsize:2;\tsigned:0;\n"
         "\tfield:u16 tag;\toffset:12;\tsize:2;\tsigned:0;\n"
         "\tfield:u8 opcode;\toffset:14;\tsize:1;\tsigned:0;\n"
         "\tfield:u8 level;\toffset:15;\tsize:1;\tsigned:0;\n\n"
         "print fmt: \"\"\n";
}

}  // namespace collector

#endif  // TESTS_SUPPORT_COLLECTOR_TRACEPOINT_FORMAT_H_
