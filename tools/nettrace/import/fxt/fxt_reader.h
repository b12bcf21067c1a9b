// Reads the records of the Fuchsia trace format, in both byte orders.
//
// The input may contain any bytes: values are read only within the bounds of their record, and
// memory is bounded. Invalid records and records of unknown types are skipped. Reading ends early
// if the position of the next record is unknown, or if a limit is exceeded.
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
#include "tools/nettrace/export/fxt/fxt_format.h"

namespace tools::importing::fxt {

using tools::fxt::ArgumentType;
using tools::fxt::EventType;

// Maximum number of bytes in the string tables of all providers, as an estimate.
inline constexpr std::size_t kMaxStrings = std::size_t{256} << 20;
inline constexpr std::size_t kMaxProviders = 4096;

struct Argument {
  ArgumentType type = ArgumentType::kNull;
  std::string_view name;
  std::uint64_t number = 0;  // 0 for text; the bits of a double; an Int32 is sign-extended
  std::string_view text;
};

struct Thread {
  // Ids of kernel objects ("koids"); 0 if unknown.
  std::uint64_t process = 0;
  std::uint64_t thread = 0;
};

struct Event {
  EventType type = EventType::kInstant;
  std::uint64_t timestamp = 0;  // ticks of its provider
  Thread thread;
  std::string_view category;
  std::string_view name;
  std::vector<Argument> arguments;
  // Id of a counter, asynchronous event or flow, or end of a kDurationComplete in ticks; 0 for
  // other types.
  std::uint64_t number = 0;
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
  std::uint8_t type = 0;  // 1: process; 2: thread
  std::uint64_t koid = 0;
  std::string_view name;
  std::uint64_t process = 0;  // process of a thread; 0 if unknown
};

class FxtReader {
 public:
  enum class Step : std::uint8_t {
    kEvent,
    kContextSwitch,
    kLog,
    kKernelObject,
    kBufferFull,  // records are missing because a provider's buffer was full
    kSkipped,     // a record that is not converted, such as bulk data or one of an unknown type
    kDamaged,     // an invalid record; see status()
    kEnd          // the end of the input, or an error that ends reading; see status()
  };

  // Returns a reader of `source`. Fails with InvalidArgument if the source does not begin with
  // kMagic, or with the error of the source.
  static absl::StatusOr<std::unique_ptr<FxtReader>> Open(std::unique_ptr<nettrace::Source> source);

  Step Next();
  // The following references are valid until the next call of Next.
  const Event& event() const { return event_; }
  const ContextSwitch& context_switch() const { return switch_; }
  const Log& log() const { return log_; }
  const KernelObject& kernel_object() const { return object_; }
  // The following two functions return values of the current record's provider.
  std::uint64_t ticks_per_second() const { return provider_->ticks_per_second; }
  const std::string& provider_name() const { return provider_->name; }
  // After kDamaged, and after kEnd if an error has ended reading, returns the error with its
  // offset. Otherwise returns OK.
  const absl::Status& status() const { return status_; }

 private:
  struct Provider {
    std::string name;
    std::uint64_t ticks_per_second = 1'000'000'000;
    absl::flat_hash_map<std::uint16_t, std::string> strings;
    absl::flat_hash_map<std::uint8_t, Thread> threads;
  };

  explicit FxtReader(std::unique_ptr<nettrace::Source> source) : source_(std::move(source)) {}

  // Appends the next `size` bytes of the input to `bytes`. Returns false at the end of the input
  // and after an error. Sets status_ after an error, and if the input ends within a record.
  bool ReadBytes(std::size_t size, std::vector<std::byte>* bytes);
  // Skips bytes of the input. Returns false in the same cases as ReadBytes.
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

  // Returns the word at `bytes`, which is in the byte order of the input.
  std::uint64_t LoadWord(const std::byte* bytes) const;
  // The following functions read the next part of the current record. If it is missing, they return
  // 0 or an empty value, and Next returns kDamaged. For an undefined thread, ThreadOf returns ids
  // of 0. Arguments stores the arguments in event_.
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
  std::uint64_t offset_ = 0;         // bytes from the start to the next byte to read
  std::uint64_t record_offset_ = 0;  // bytes from the start to the current record
  std::vector<std::byte> record_;
  std::uint64_t header_ = 0;
  std::size_t next_ = 0;  // index in record_ of the next byte to read
  std::string wrong_;     // first error in the record; "" if there is none
  absl::Status status_;
  absl::flat_hash_map<std::uint32_t, std::unique_ptr<Provider>> providers_;
  std::size_t strings_size_ = 0;
  // Provider of the records before the first provider record, and of the records after a section
  // record whose provider is not declared.
  Provider unnamed_;
  Provider* provider_ = &unnamed_;
  Event event_;
  ContextSwitch switch_;
  Log log_;
  KernelObject object_;
};

}  // namespace tools::importing::fxt

#endif  // TOOLS_NETTRACE_IMPORT_FXT_FXT_READER_H_
