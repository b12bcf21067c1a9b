// Reads the records of the Fuchsia trace format, of both byte orders.
//
// Whatever the bytes are, nothing beyond the record is read, and memory is bounded. A record that
// is not what the format has is skipped, as is one of a type that is not known.
#ifndef TOOLS_NETTRACE_IMPORT_FXT_FXT_READER_H_
#define TOOLS_NETTRACE_IMPORT_FXT_FXT_READER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "nettrace/source.h"
#include "tools/common/fxt_format.h"

namespace tools::importing::fxt {

using tools::fxt::ArgumentType;
using tools::fxt::EventType;

// The texts of all tables may have so many bytes, by estimate.
inline constexpr std::size_t kMaxStrings = std::size_t{256} << 20;
inline constexpr std::size_t kMaxProviders = 4096;

struct Argument {
  ArgumentType type = ArgumentType::kNull;
  std::string_view name;
  std::uint64_t number = 0;  // of all but texts; a double's bits; sign-extended
  std::string_view text;
};

struct Thread {
  std::uint64_t process = 0;  // koids; 0: not known
  std::uint64_t thread = 0;
};

struct Event {
  EventType type = EventType::kInstant;
  std::uint64_t timestamp = 0;  // ticks of its provider
  Thread thread;
  std::string_view category;
  std::string_view name;
  std::vector<Argument> arguments;
  std::uint64_t number = 0;  // a counter's id, a correlation's, or the end of a kDurationComplete
};

struct ContextSwitch {
  std::uint64_t timestamp = 0;
  std::uint32_t cpu = 0;
  Thread outgoing;
  Thread incoming;
  std::uint8_t outgoing_state = 0;
  std::uint8_t outgoing_priority = 0;
  std::uint8_t incoming_priority = 0;
};

struct Log {
  std::uint64_t timestamp = 0;
  Thread thread;
  std::string_view message;
};

struct KernelObject {
  std::uint8_t type = 0;  // 1: a process; 2: a thread
  std::uint64_t koid = 0;
  std::string_view name;
  std::uint64_t process = 0;  // of a thread; 0: not known
};

class FxtReader {
 public:
  enum class Step : std::uint8_t {
    kEvent,
    kContextSwitch,
    kLog,
    kKernelObject,
    kBufferFull,  // a provider had no room for records: some are missing
    kSkipped,     // a record that no step is for: bulk data, an object of a user, an unknown type
    kDamaged,     // a record that is not what the format has: see status()
    kEnd          // see status()
  };

  // InvalidArgument if it does not begin as the format does; the source's own error.
  static absl::StatusOr<std::unique_ptr<FxtReader>> Open(std::unique_ptr<nettrace::Source> source);

  Step Next();
  // Valid until the next step.
  const Event& event() const { return event_; }
  const ContextSwitch& context_switch() const { return switch_; }
  const Log& log() const { return log_; }
  const KernelObject& kernel_object() const { return object_; }
  // Of the provider whose records come now.
  std::uint64_t ticks_per_second() const { return provider_->ticks_per_second; }
  const std::string& provider_name() const { return provider_->name; }
  // After kDamaged and kEnd: what is wrong, with its offset.
  const absl::Status& status() const { return status_; }

 private:
  struct Provider {
    std::string name;
    std::uint64_t ticks_per_second = 1'000'000'000;
    absl::flat_hash_map<std::uint16_t, std::string> strings;
    absl::flat_hash_map<std::uint8_t, Thread> threads;
  };

  explicit FxtReader(std::unique_ptr<nettrace::Source> source) : source_(std::move(source)) {}

  // False, with status_, at the end.
  bool ReadBytes(std::size_t size, std::vector<std::byte>* bytes);
  bool SkipBytes(std::uint64_t size);
  Step Damaged(std::string_view why);
  std::optional<Step> ReadRecord();

  std::optional<Step> OnMetadata();
  std::optional<Step> OnInitialization();
  std::optional<Step> OnString();
  std::optional<Step> OnThread();
  Step OnEvent();
  Step OnKernelObject();
  Step OnContextSwitch();
  Step OnLog();
  std::optional<Step> SelectProvider(std::uint32_t id, bool is_new);

  // Parts of the record, taken one after the other; after one that is not there, all are empty.
  std::uint64_t LoadWord(const std::byte* bytes) const;
  std::uint64_t Word();
  std::string_view Text(std::size_t size);
  std::string_view String(std::uint64_t ref);
  Thread ThreadOf(std::uint64_t ref);
  void Arguments(std::uint64_t count);
  Argument OneArgument();
  void Fail(std::string_view why) {
    if (wrong_.empty()) wrong_ = std::string(why);
  }

  std::unique_ptr<nettrace::Source> source_;
  bool is_big_ = false;
  std::uint64_t offset_ = 0;         // of what is read next
  std::uint64_t record_offset_ = 0;  // of the record
  std::vector<std::byte> record_;
  std::uint64_t header_ = 0;
  std::size_t next_ = 0;  // byte of the record
  std::string wrong_;
  absl::Status status_;
  absl::flat_hash_map<std::uint32_t, std::unique_ptr<Provider>> providers_;
  std::size_t strings_size_ = 0;
  Provider unnamed_;  // records are its own before a provider is named
  Provider* provider_ = &unnamed_;
  Event event_;
  ContextSwitch switch_;
  Log log_;
  KernelObject object_;
};

}  // namespace tools::importing::fxt

#endif  // TOOLS_NETTRACE_IMPORT_FXT_FXT_READER_H_
