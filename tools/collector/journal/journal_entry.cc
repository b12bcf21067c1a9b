#include "tools/collector/journal/journal_entry.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>

#include "absl/strings/numbers.h"
#include "eventheader/wire.h"

namespace collector {
namespace {

// Removes the bytes of an incomplete UTF-8 sequence at the end of `text`.
void DropPartOfCharacter(std::string* text) {
  std::size_t tail = 0;  // continuation bytes at the end
  while (tail < 3 && tail < text->size() &&
         (static_cast<unsigned char>(text->end()[-1 - static_cast<std::ptrdiff_t>(tail)]) >> 6) ==
             2) {
    ++tail;
  }
  if (tail >= text->size()) return;
  const auto lead = static_cast<unsigned char>(text->end()[-1 - static_cast<std::ptrdiff_t>(tail)]);
  const auto length = static_cast<std::size_t>(std::countl_one(lead));
  if (length >= 2 && tail + 1 < length) text->resize(text->size() - tail - 1);
}

template <typename T>
T Number(const std::string& text) {
  std::uint64_t number = 0;
  if (!absl::SimpleAtoi(text, &number) || number > std::numeric_limits<T>::max()) return 0;
  return static_cast<T>(number);
}

// Collects the definitions and values of an event's fields.
class EventBytes {
 public:
  void AddName(std::string_view name) {
    names_.append(name);
    names_.push_back('\0');
  }
  void AddText(std::string_view name, std::string_view text) {
    Define(name, eh::Encoding::kStringLength16Char8, eh::Format::kDefault);
    Put(static_cast<std::uint16_t>(text.size()));
    data_.append(text);
  }
  template <typename T>
  void AddNumber(std::string_view name, eh::Encoding encoding, eh::Format format, T value) {
    Define(name, encoding, format);
    Put(value);
  }
  // Returns the event with the fields that were added.
  std::vector<std::byte> Finish(std::uint8_t level) const {
    eh::wire::Header header = {};
    header.flags = eh::kFlagExtension;
    if (sizeof(void*) == 8) header.flags |= eh::kFlagPointer64;
    if (std::endian::native == std::endian::little) header.flags |= eh::kFlagLittleEndian;
    header.level = level;
    const eh::wire::ExtensionHeader extension = {static_cast<std::uint16_t>(names_.size()),
                                                 eh::kExtensionMetadata};
    std::vector<std::byte> event;
    event.reserve(sizeof header + sizeof extension + names_.size() + data_.size());
    Append(&header, sizeof header, &event);
    Append(&extension, sizeof extension, &event);
    Append(names_.data(), names_.size(), &event);
    Append(data_.data(), data_.size(), &event);
    return event;
  }

 private:
  static void Append(const void* bytes, std::size_t size, std::vector<std::byte>* event) {
    const auto* const begin = static_cast<const std::byte*>(bytes);
    event->insert(event->end(), begin, begin + size);
  }
  void Define(std::string_view name, eh::Encoding encoding, eh::Format format) {
    AddName(name);
    const bool has_format = format != eh::Format::kDefault;
    names_.push_back(static_cast<char>(static_cast<std::uint8_t>(encoding) |
                                       (has_format ? eh::kEncodingHasFormat : 0)));
    if (has_format) names_.push_back(static_cast<char>(format));
  }
  template <typename T>
  void Put(T value) {
    char bytes[sizeof value];
    std::memcpy(bytes, &value, sizeof value);
    data_.append(bytes, sizeof bytes);
  }

  std::string names_;
  std::string data_;
};

}  // namespace

std::uint8_t JournalLevel(std::string_view priority) {
  constexpr std::uint8_t kLevels[] = {1, 1, 1, 2, 3, 4, 4, 5};
  if (priority.size() != 1 || priority[0] < '0' || priority[0] > '7') return 4;
  return kLevels[priority[0] - '0'];
}

JournalEntryBuilder::JournalEntryBuilder(const std::vector<std::string>& fields) {
  constexpr std::size_t kMaxNumber = 20;
  values_ = {{"MESSAGE", kMaxMessage},
             {"_SYSTEMD_UNIT", kMaxText},
             {"SYSLOG_IDENTIFIER", kMaxText},
             {"_PID", kMaxNumber},
             {"PRIORITY", kMaxNumber},
             {"CODE_FILE", kMaxText},
             {"CODE_LINE", kMaxNumber},
             {"CODE_FUNC", kMaxText},
             {"_COMM", kMaxText},
             {"_SYSTEMD_USER_UNIT", kMaxText},
             {"UNIT", kMaxText},
             {"OBJECT_SYSTEMD_UNIT", kMaxText},
             {"COREDUMP_UNIT", kMaxText},
             {"_UID", kMaxNumber},
             {"_TRANSPORT", kMaxNumber},
             {"N_DROPPED", kMaxNumber}};
  for (const std::string& field : fields) values_.push_back({field, kMaxField});
}

void JournalEntryBuilder::Begin() {
  for (Value& value : values_) {
    value.is_set = value.is_cut = false;
    value.text.clear();
  }
}

void JournalEntryBuilder::Add(std::string_view field) {
  const std::size_t end = field.find('=');
  if (end == std::string_view::npos) return;
  const std::string_view name = field.substr(0, end);
  const std::string_view text = field.substr(end + 1);
  // Several values can have this name, because a requested field may also be a fixed field.
  for (Value& value : values_) {
    if (value.is_set || value.name != name) continue;
    value.is_set = true;
    value.text = text.substr(0, value.max);
    value.is_cut = text.size() > value.max;
    if (!value.is_cut) continue;
    DropPartOfCharacter(&value.text);
    value.text += kCut;
  }
}

std::uint32_t JournalEntryBuilder::pid() const { return Number<std::uint32_t>(values_[kPid].text); }

bool JournalEntryBuilder::IsAbout(std::string_view unit) const {
  if (values_[kUnit].text == unit || values_[kUserUnit].text == unit) return true;
  const bool is_of_systemd = pid() == 1;
  const bool is_of_root = values_[kUser].text == "0";
  return (is_of_systemd && values_[kManagedUnit].text == unit) ||
         (is_of_root && (values_[kObjectUnit].text == unit || values_[kCoredumpUnit].text == unit));
}

std::uint64_t JournalEntryBuilder::suppressed() const {
  // Only journald itself can write entries of this transport.
  return values_[kTransport].text == "driver" ? Number<std::uint64_t>(values_[kDropped].text) : 0;
}

bool JournalEntryBuilder::is_cut() const {
  return std::any_of(values_.begin(), values_.end(),
                     [](const Value& value) { return value.is_cut; });
}

std::vector<std::byte> JournalEntryBuilder::MakeEvent() const {
  using eh::Encoding;
  using eh::Format;
  EventBytes event;
  event.AddName(kJournalEvent);
  event.AddText("message", values_[kMessage].text);
  event.AddText("unit", values_[values_[kUserUnit].is_set ? kUserUnit : kUnit].text);
  event.AddText("identifier", values_[kIdentifier].text);
  event.AddNumber("pid", Encoding::kValue32, Format::kPid, pid());
  event.AddNumber("priority", Encoding::kValue8, Format::kDefault,
                  Number<std::uint8_t>(values_[kPriority].is_set ? values_[kPriority].text : "6"));
  if (values_[kCodeFile].is_set || values_[kCodeFunction].is_set) {
    event.AddText("codeFile", values_[kCodeFile].text);
    event.AddNumber("codeLine", Encoding::kValue32, Format::kDefault,
                    Number<std::uint32_t>(values_[kCodeLine].text));
    event.AddText("codeFunction", values_[kCodeFunction].text);
  }
  for (std::size_t i = kFixedFields; i < values_.size(); ++i) {
    event.AddText(values_[i].name, values_[i].text);
  }
  return event.Finish(level());
}

}  // namespace collector
