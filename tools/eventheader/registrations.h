// Parses the tracepoints that `eventheader register` registers, from the command line and from
// files.
//
// The input is untrusted text. The output is a list of unique definitions, the number of errors,
// and the texts of the first errors. The text of an error in a file begins with the file and line.
// Time and memory are linear in the input and the number of tracepoints, which is bounded.
#ifndef TOOLS_EVENTHEADER_REGISTRATIONS_H_
#define TOOLS_EVENTHEADER_REGISTRATIONS_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "tools/collector/tracefs/user_event_definition.h"

namespace tools {

// The levels, keywords and group of a provider, which has one tracepoint for each combination of a
// level and a keyword.
struct ProviderSets {
  std::string levels;    // e.g. "1-4" or "1,2,4"; decimal, or hexadecimal after 0x
  std::string keywords;  // e.g. "0x1,0x2"; in the same form
  std::string group;     // "": no group

  bool empty() const { return levels.empty() && keywords.empty() && group.empty(); }
};

class Registrations {
 public:
  // Maximum number of tracepoints. It equals the kernel's default limit for the whole machine,
  // which kernel.user_events_max changes.
  static constexpr std::size_t kMaxTracepoints = 32768;
  // Maximum number of bytes that AddText() accepts.
  static constexpr std::size_t kMaxText = std::size_t{4} << 20;
  // Maximum number of errors that are kept; further errors are only counted.
  static constexpr std::size_t kMaxErrors = 50;

  // Adds the tracepoints that a word of the command line names. The word is an EventHeader
  // tracepoint, a definition with its fields or, if `sets` is not empty, a provider.
  void AddWord(std::string_view word, const ProviderSets& sets);
  // Adds the tracepoints that the lines of a file name; `file` is the file's name, for messages. A
  // line is a word as for AddWord(), or `Provider --levels L --keywords K [--group G]`. A # at the
  // beginning of a line or after a blank begins a comment.
  void AddText(std::string_view text, const std::string& file);

  const std::vector<collector::UserEventDefinition>& definitions() const { return definitions_; }
  // Returns the first kMaxErrors errors.
  const std::vector<std::string>& errors() const { return errors_; }
  std::size_t error_count() const { return error_count_; }

 private:
  void AddLine(std::string_view line, const std::string& origin);
  void AddDefinition(collector::UserEventDefinition definition, const std::string& origin);
  absl::Status AddProvider(std::string_view provider, const ProviderSets& sets,
                           const std::string& origin);
  void AddError(const std::string& origin, std::string_view message);

  std::vector<collector::UserEventDefinition> definitions_;
  // File and line of each definition that comes from a file, by name.
  absl::flat_hash_map<std::string, std::string> origins_;
  // Index in definitions_, by name.
  absl::flat_hash_map<std::string, std::size_t> by_name_;
  std::vector<std::string> errors_;
  std::size_t error_count_ = 0;
};

}  // namespace tools

#endif  // TOOLS_EVENTHEADER_REGISTRATIONS_H_
