// The metadata of a CTF 2 trace: a sequence of JSON texts, the fragments. Names and text from files
// may be any bytes; what comes out is valid JSON, whatever they are.
#ifndef TOOLS_NETTRACE_EXPORT_CTF_METADATA_JSON_H_
#define TOOLS_NETTRACE_EXPORT_CTF_METADATA_JSON_H_

#include <string>

#include "tools/nettrace/export/ctf/trace_class.h"

namespace tools::ctf {

// An event record class fragment, without its numbers.
std::string JsonOf(const EventClass& event);

// The whole metadata.
std::string JsonOf(const TraceClass& trace);

}  // namespace tools::ctf

#endif  // TOOLS_NETTRACE_EXPORT_CTF_METADATA_JSON_H_
