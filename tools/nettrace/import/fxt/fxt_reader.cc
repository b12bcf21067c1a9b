#include "tools/nettrace/import/fxt/fxt_reader.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace tools::importing::fxt {
namespace {

using tools::fxt::kInlineString;
using tools::fxt::kMagic;
using tools::fxt::kProviderEvent;
using tools::fxt::kProviderInfo;
using tools::fxt::kProviderSection;
using tools::fxt::RecordType;

constexpr std::size_t kEntrySize = 64;  // estimated size of an entry without its text

std::uint64_t Bits(std::uint64_t word, unsigned first, unsigned last) {
  return word >> first & ((std::uint64_t{1} << (last - first + 1)) - 1);
}

}  // namespace

absl::StatusOr<std::unique_ptr<FxtReader>> FxtReader::Open(
    std::unique_ptr<nettrace::Source> source) {
  std::unique_ptr<FxtReader> reader(new FxtReader(std::move(source)));
  std::vector<std::byte> first;
  if (!reader->ReadBytes(8, &first)) {
    if (!reader->status_.ok() && !absl::IsDataLoss(reader->status_)) return reader->status_;
    return absl::InvalidArgumentError("not a Fuchsia trace: the file has fewer than 8 bytes");
  }
  if (reader->LoadWord(first.data()) != kMagic) {
    reader->is_big_ = true;
    if (reader->LoadWord(first.data()) != kMagic) {
      return absl::InvalidArgumentError(
          "not a Fuchsia trace: the magic number is wrong; name a file in the Fuchsia trace "
          "format");
    }
  }
  return reader;
}

std::uint64_t FxtReader::LoadWord(const std::byte* bytes) const {
  std::uint64_t word = 0;
  for (unsigned i = 0; i < 8; ++i) {
    word |= std::to_integer<std::uint64_t>(bytes[i]) << (8 * (is_big_ ? 7 - i : i));
  }
  return word;
}

bool FxtReader::ReadBytes(std::size_t size, std::vector<std::byte>* bytes) {
  const std::size_t before = bytes->size();
  bytes->resize(before + size);
  std::size_t done = 0;
  while (done < size) {
    const absl::StatusOr<std::size_t> got =
        source_->Read(std::span(*bytes).subspan(before + done, size - done));
    if (!got.ok()) {
      status_ = absl::Status(got.status().code(),
                             absl::StrCat("at byte ", offset_, ": ", got.status().message()));
      return false;
    }
    if (*got == 0) {
      if (done > 0 || before > 0) {
        status_ =
            absl::DataLossError(absl::StrCat("at byte ", record_offset_, ": a record is cut"));
      }
      return false;
    }
    done += *got;
    offset_ += *got;
  }
  return true;
}

bool FxtReader::SkipBytes(std::uint64_t size) {
  constexpr std::uint64_t kPiece = 64 << 10;
  while (size > 0) {
    record_.resize(8);  // keeps the header and removes the previous piece
    const std::uint64_t piece = std::min(size, kPiece);
    if (!ReadBytes(piece, &record_)) return false;
    size -= piece;
  }
  return true;
}

FxtReader::Step FxtReader::Damaged(std::string_view why) {
  status_ = absl::DataLossError(
      absl::StrCat("at byte ", record_offset_, ": ", absl::string_view(why.data(), why.size())));
  return Step::kDamaged;
}

FxtReader::Step FxtReader::Next() {
  status_ = absl::OkStatus();
  while (true) {
    record_offset_ = offset_;
    record_.clear();
    if (!ReadBytes(8, &record_)) return Step::kEnd;
    header_ = LoadWord(record_.data());
    if (const std::optional<Step> step = ReadRecord()) return *step;
  }
}

// Reads the record that header_ begins. Returns nullopt if Next must not report the record to its
// caller, but must continue with the next record.
std::optional<FxtReader::Step> FxtReader::ReadRecord() {
  const auto type = static_cast<RecordType>(Bits(header_, 0, 3));
  const std::uint64_t words =
      type == RecordType::kLarge ? Bits(header_, 4, 35) : Bits(header_, 4, 15);
  if (words == 0) {
    // Reading ends, because the position of the next record is unknown.
    Damaged("a record has the size 0; the rest of the file is skipped");
    return Step::kEnd;
  }
  if (type == RecordType::kLarge) {
    return SkipBytes((words - 1) * 8) ? Step::kSkipped : Step::kEnd;
  }
  if (!ReadBytes((words - 1) * 8, &record_)) return Step::kEnd;
  next_ = 8;
  wrong_.clear();
  std::optional<Step> step;
  switch (type) {
    case RecordType::kMetadata:
      step = OnMetadata();
      break;
    case RecordType::kInitialization:
      step = OnInitialization();
      break;
    case RecordType::kString:
      step = OnString();
      break;
    case RecordType::kThread:
      step = OnThread();
      break;
    case RecordType::kEvent:
      step = OnEvent();
      break;
    case RecordType::kKernelObject:
      step = OnKernelObject();
      break;
    case RecordType::kContextSwitch:
      step = OnContextSwitch();
      break;
    case RecordType::kLog:
      step = OnLog();
      break;
    default:
      return Step::kSkipped;
  }
  if (!wrong_.empty()) return Damaged(wrong_);
  return step;
}

std::uint64_t FxtReader::Word() {
  if (record_.size() - next_ < 8) {
    Fail("the record is too short for its contents");
    return 0;
  }
  const std::uint64_t word = LoadWord(record_.data() + next_);
  next_ += 8;
  return word;
}

std::string_view FxtReader::Text(std::size_t size) {
  const std::size_t padded = (size + 7) / 8 * 8;
  if (record_.size() - next_ < padded) {
    Fail("a string extends past the end of its record");
    return {};
  }
  const std::string_view text(reinterpret_cast<const char*>(record_.data() + next_), size);
  next_ += padded;
  return text;
}

std::string_view FxtReader::String(std::uint64_t ref) {
  if ((ref & kInlineString) != 0) return Text(ref & ~kInlineString);
  if (ref == 0) return {};
  const auto found = provider_->strings.find(static_cast<std::uint16_t>(ref));
  if (found != provider_->strings.end()) return found->second;
  Fail(absl::StrCat("no earlier record defines string ", ref));
  return {};
}

Thread FxtReader::ThreadOf(std::uint64_t ref) {
  if (ref == 0) {
    Thread thread;
    thread.process = Word();
    thread.thread = Word();
    return thread;
  }
  const auto found = provider_->threads.find(static_cast<std::uint8_t>(ref));
  return found == provider_->threads.end() ? Thread{} : found->second;
}

Argument FxtReader::OneArgument() {
  const std::size_t begin = next_;
  const std::uint64_t head = Word();
  const std::size_t size = Bits(head, 4, 15) * 8;
  if (size == 0 || size > record_.size() - begin) {
    Fail("an argument extends past the end of its record");
    return {};
  }
  Argument argument;
  argument.type = static_cast<ArgumentType>(Bits(head, 0, 3));
  argument.name = String(Bits(head, 16, 31));
  const std::uint64_t in_head = Bits(head, 32, 63);
  switch (argument.type) {
    case ArgumentType::kInt32:
      argument.number =
          static_cast<std::uint64_t>(std::int64_t{static_cast<std::int32_t>(in_head)});
      break;
    case ArgumentType::kUInt32:
      argument.number = in_head;
      break;
    case ArgumentType::kString:
      argument.text = String(in_head & 0xFFFF);
      break;
    case ArgumentType::kBool:
      argument.number = in_head & 1;
      break;
    case ArgumentType::kInt64:
    case ArgumentType::kUInt64:
    case ArgumentType::kDouble:
    case ArgumentType::kPointer:
    case ArgumentType::kKoid:
      argument.number = Word();
      break;
    default:
      argument.type = ArgumentType::kNull;
  }
  if (next_ > begin + size) Fail("an argument is longer than its header says");
  next_ = begin + size;
  return argument;
}

void FxtReader::Arguments(std::uint64_t count) {
  event_.arguments.clear();
  for (std::uint64_t i = 0; i < count && wrong_.empty(); ++i) {
    event_.arguments.push_back(OneArgument());
  }
}

std::optional<FxtReader::Step> FxtReader::SelectProvider(std::uint32_t id, bool is_new) {
  const auto found = providers_.find(id);
  if (found != providers_.end()) {
    provider_ = found->second.get();
    return std::nullopt;
  }
  if (!is_new) {
    provider_ = &unnamed_;
    return Damaged(absl::StrCat("provider ", id, " is used before it is declared"));
  }
  if (providers_.size() == kMaxProviders) {
    Damaged(
        absl::StrCat("more than ", kMaxProviders, " providers; the rest of the file is skipped"));
    return Step::kEnd;
  }
  provider_ = providers_.emplace(id, std::make_unique<Provider>()).first->second.get();
  return std::nullopt;
}

std::optional<FxtReader::Step> FxtReader::OnMetadata() {
  const std::uint64_t type = Bits(header_, 16, 19);
  const auto id = static_cast<std::uint32_t>(Bits(header_, 20, 51));
  if (type == kProviderInfo) {
    const std::string_view name = Text(Bits(header_, 52, 59));
    const std::optional<Step> step = SelectProvider(id, /*is_new=*/true);
    if (!step) provider_->name = std::string(name);
    return step;
  }
  if (type == kProviderSection) return SelectProvider(id, /*is_new=*/false);
  if (type == kProviderEvent) {
    return Bits(header_, 52, 55) == 0 ? Step::kBufferFull : Step::kSkipped;
  }
  return std::nullopt;
}

std::optional<FxtReader::Step> FxtReader::OnInitialization() {
  const std::uint64_t ticks = Word();
  if (wrong_.empty() && (ticks == 0 || ticks >> 63 != 0)) {
    Fail(absl::StrCat("invalid rate of ", ticks, " ticks a second; it must be from 1 to 2^63 - 1"));
  }
  if (wrong_.empty()) provider_->ticks_per_second = ticks;
  return std::nullopt;
}

std::optional<FxtReader::Step> FxtReader::OnString() {
  const std::uint64_t index = Bits(header_, 16, 30);
  const std::string_view text = Text(Bits(header_, 32, 46));
  if (index == 0 || !wrong_.empty()) return std::nullopt;
  std::string& entry = provider_->strings[static_cast<std::uint16_t>(index)];
  strings_size_ -= entry.empty() ? 0 : entry.size() + kEntrySize;
  if (strings_size_ + text.size() + kEntrySize > kMaxStrings) {
    Damaged(absl::StrCat("the string tables have more than ", kMaxStrings,
                         " bytes; the rest of the file is skipped"));
    return Step::kEnd;
  }
  entry = std::string(text);
  strings_size_ += entry.empty() ? 0 : entry.size() + kEntrySize;
  return std::nullopt;
}

std::optional<FxtReader::Step> FxtReader::OnThread() {
  const auto index = static_cast<std::uint8_t>(Bits(header_, 16, 23));
  Thread thread;
  thread.process = Word();
  thread.thread = Word();
  if (index != 0 && wrong_.empty()) provider_->threads[index] = thread;
  return std::nullopt;
}

FxtReader::Step FxtReader::OnEvent() {
  const std::uint64_t type = Bits(header_, 16, 19);
  if (type > static_cast<std::uint64_t>(EventType::kFlowEnd)) return Step::kSkipped;
  event_.type = static_cast<EventType>(type);
  event_.timestamp = Word();
  event_.thread = ThreadOf(Bits(header_, 24, 31));
  event_.category = String(Bits(header_, 32, 47));
  event_.name = String(Bits(header_, 48, 63));
  Arguments(Bits(header_, 20, 23));
  const bool has_number = event_.type != EventType::kInstant &&
                          event_.type != EventType::kDurationBegin &&
                          event_.type != EventType::kDurationEnd;
  event_.number = has_number ? Word() : 0;
  return Step::kEvent;
}

FxtReader::Step FxtReader::OnKernelObject() {
  object_ = {};
  object_.type = static_cast<std::uint8_t>(Bits(header_, 16, 23));
  object_.koid = Word();
  object_.name = String(Bits(header_, 24, 39));
  Arguments(Bits(header_, 40, 43));
  for (const Argument& argument : event_.arguments) {
    if (argument.name == "process") object_.process = argument.number;
  }
  return Step::kKernelObject;
}

FxtReader::Step FxtReader::OnContextSwitch() {
  switch_.timestamp = Word();
  switch_.cpu = static_cast<std::uint32_t>(Bits(header_, 16, 23));
  switch_.outgoing_state = static_cast<std::uint8_t>(Bits(header_, 24, 27));
  switch_.outgoing = ThreadOf(Bits(header_, 28, 35));
  switch_.incoming = ThreadOf(Bits(header_, 36, 43));
  switch_.outgoing_priority = static_cast<std::uint8_t>(Bits(header_, 44, 51));
  switch_.incoming_priority = static_cast<std::uint8_t>(Bits(header_, 52, 59));
  return Step::kContextSwitch;
}

FxtReader::Step FxtReader::OnLog() {
  log_.timestamp = Word();
  log_.thread = ThreadOf(Bits(header_, 32, 39));
  log_.message = Text(Bits(header_, 16, 30));
  return Step::kLog;
}

}  // namespace tools::importing::fxt
