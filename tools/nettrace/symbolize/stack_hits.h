// Collects the addresses of code that the stacks of a file contain, by mapping.
#ifndef TOOLS_NETTRACE_SYMBOLIZE_STACK_HITS_H_
#define TOOLS_NETTRACE_SYMBOLIZE_STACK_HITS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/time/time.h"
#include "nettrace/reader.h"
#include "tools/trace/code_events.h"
#include "tools/trace/code_map.h"

namespace tools::symbolize {

// The file of a mapping, as the trace describes it.
struct MappedFile {
  std::string build_id;  // bytes; empty: not known
  // Address of the mapping's first byte in the addresses of an ELF file.
  std::optional<std::uint64_t> address;
};
// Parses the SymbolMetadata of a ProcessMappingMetadata event.
MappedFile ParseSymbolMetadata(const std::string& json);

// A mapping with code that stacks contain.
struct HitMapping {
  std::uint64_t id = 0;
  std::uint64_t pid = 0;
  std::uint64_t first = 0;
  std::uint64_t last = 0;    // address of the last byte
  std::uint64_t offset = 0;  // offset in the file of the byte at `first`
  absl::Time time;           // when the code was mapped, or later (code_writer.h)
  std::string path;
  std::uint64_t metadata_id = 0;  // id of the event that describes the file; 0: none
  MappedFile file;
  // Addresses without a function in the trace. For a return address, this is the address of the
  // call's last byte. Sorted and unique after Finish.
  std::vector<std::uint64_t> addresses;
};

// Collects the addresses in the stacks of a file, and the mappings that they are in. Not
// thread-safe.
class StackHits {
 public:
  // Maximum estimated memory of mappings and addresses in bytes, in addition to the memory of a
  // CodeMap. Later mappings and addresses are ignored.
  static constexpr std::size_t kMaxBytes = std::size_t{256} << 20;

  // Must be called with every event of `reader`, in order of time.
  void OnEvent(const nettrace::Reader& reader, const nettrace::Event& event);
  // Must be called at every sequence point.
  void OnSequencePoint() { seen_.clear(); }
  // Returns the mappings that contain addresses of stacks for which the file names no function.
  // Must be called once, after the last event of the file.
  std::vector<HitMapping> Finish();

  // Returns the greatest id of the mappings and functions in the file.
  std::uint64_t max_id() const { return max_id_; }
  // Returns the number of mappings, functions and addresses that were ignored because of kMaxBytes
  // or CodeMap::kMaxBytes. A mapping or function that exceeds both limits counts twice.
  std::uint64_t ignored() const { return ignored_ + code_.ignored(); }

 private:
  bool Spend(std::size_t bytes);
  void OnCode(const nettrace::Reader& reader, const nettrace::Event& event,
              const trace::CodeEvent& code);
  void AddStack(const nettrace::Event& event, std::int32_t pointer_size);

  trace::CodeMap code_;
  absl::flat_hash_map<std::uint64_t, HitMapping> mappings_;            // by id
  absl::flat_hash_map<std::uint64_t, MappedFile> files_;               // by id of the metadata
  absl::flat_hash_set<std::pair<std::uint64_t, std::uint64_t>> hits_;  // id of the mapping, address
  // Stacks of this interval whose addresses were added: CodeMap::VersionOf, and a pointer to the
  // bytes of the stack.
  absl::flat_hash_set<std::pair<std::uint64_t, const std::byte*>> seen_;
  std::size_t bytes_ = 0;
  std::uint64_t max_id_ = 0;
  std::uint64_t ignored_ = 0;
};

}  // namespace tools::symbolize

#endif  // TOOLS_NETTRACE_SYMBOLIZE_STACK_HITS_H_
