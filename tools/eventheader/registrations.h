// What `eventheader register` is to register, as command lines and files say it.
//
// In: words and texts, which may be anything. Out: definitions of tracepoints, each once, and all
// that is wrong, with the place and what would be right. Time and memory are linear in the text
// and the number of tracepoints, which is bounded.
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

// The tracepoints of a provider: one for each of its levels and keywords.
struct ProviderSets {
  std::string levels;    // "1-4", "1,2,4"; decimal or, after 0x, hexadecimal
  std::string keywords;  // "0x1,0x2"
  std::string group;     // "": none

  bool empty() const { return levels.empty() && keywords.empty() && group.empty(); }
};

class Registrations {
 public:
  // What the kernel takes on the whole machine, unless kernel.user_events_max is changed.
  static constexpr std::size_t kMaxTracepoints = 32768;
  // Bytes of a file.
  static constexpr std::size_t kMaxText = std::size_t{4} << 20;
  // Errors that are kept; the others are counted.
  static constexpr std::size_t kMaxErrors = 50;

  // Adds what one word of the command line names: an EventHeader tracepoint, a definition with its
  // fields or, where `sets` has some, a provider.
  void AddWord(std::string_view word, const ProviderSets& sets);
  // Adds what the lines of a file say; `file` is its name. Of a line, what follows a # at its
  // beginning or after a blank is a comment. A line is a word as for AddWord, or
  // `Provider --levels L --keywords K [--group G]`.
  void AddText(std::string_view text, const std::string& file);

  const std::vector<collector::UserEventDefinition>& definitions() const { return definitions_; }
  // What is wrong, a line each, without line feeds.
  const std::vector<std::string>& errors() const { return errors_; }
  std::size_t error_count() const { return error_count_; }

 private:
  void AddLine(std::string_view line, const std::string& origin);
  void AddDefinition(collector::UserEventDefinition definition, const std::string& origin);
  absl::Status AddProvider(std::string_view provider, const ProviderSets& sets,
                           const std::string& origin);
  void AddError(const std::string& origin, std::string_view message);

  std::vector<collector::UserEventDefinition> definitions_;
  absl::flat_hash_map<std::string, std::string> origins_;  // of each, by its name
  absl::flat_hash_map<std::string, std::size_t> by_name_;
  std::vector<std::string> errors_;
  std::size_t error_count_ = 0;
};

}  // namespace tools

#endif  // TOOLS_EVENTHEADER_REGISTRATIONS_H_
