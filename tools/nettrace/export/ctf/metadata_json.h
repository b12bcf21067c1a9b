// Writes the metadata of a CTF 2 trace, a sequence of JSON texts called fragments. Names and text
// from files may contain any bytes; the result is always valid JSON.
#ifndef TOOLS_NETTRACE_EXPORT_CTF_METADATA_JSON_H_
#define TOOLS_NETTRACE_EXPORT_CTF_METADATA_JSON_H_

#include <string>

#include "tools/nettrace/export/ctf/trace_class.h"

namespace tools::ctf {

// Returns the JSON object of an event record class, without the ids of the class and of its stream
// class.
std::string JsonOf(const EventClass& event);

// Returns the whole metadata.
std::string JsonOf(const TraceClass& trace);

}  // namespace tools::ctf

#endif  // TOOLS_NETTRACE_EXPORT_CTF_METADATA_JSON_H_
