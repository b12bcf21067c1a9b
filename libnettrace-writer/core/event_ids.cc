#include "libnettrace-writer/core/event_ids.h"

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "libnettrace-writer/core/traceevent.h"

namespace nettrace::internal {
namespace {

// Minimum of hashed ids. Authors usually number their events from 1, so smaller ids are often
// taken.
constexpr std::uint32_t kMinHashed = 4096;
// Maximum number of ids that FreeId tries from the hashed id upwards. If all are taken, it searches
// downwards, from the id that the previous downward search for the provider found. A search that
// always started at the largest id would try all taken ids again.
constexpr int kMaxTries = 256;

// An FNV-1a hash of 64 bits.
class Hash {
 public:
  void Number(std::uint64_t value, int bytes) {
    for (; bytes > 0; --bytes, value >>= 8) Byte(static_cast<std::uint8_t>(value));
  }
  // Hashes the length first, so that different sequences of texts do not give the same bytes, such
  // as ("ab", "c") and ("a", "bc").
  void Text(std::string_view text) {
    Number(text.size(), 4);
    for (const char c : text) Byte(static_cast<std::uint8_t>(c));
  }
  void Fields(const std::vector<Field>& fields) {
    Number(fields.size(), 4);
    for (const Field& field : fields) {
      Text(field.name);
      OneType(field.type);
    }
  }
  std::uint64_t value() const { return value_; }

 private:
  void Byte(std::uint8_t byte) { value_ = (value_ ^ byte) * 0x100000001b3; }
  void OneType(const Type& type) {
    Number(static_cast<std::uint8_t>(type.code), 1);
    Number(type.count, 2);
    for (const Type& element : type.element) OneType(element);
    if (type.code == TypeCode::kObject) Fields(type.fields);
  }

  std::uint64_t value_ = 0xcbf29ce484222325;
};

// Returns a hash of the properties that all rows with the same provider and EventId must share.
std::uint64_t SchemaOf(const EventMetadata& row) {
  Hash hash;
  hash.Text(row.provider);
  hash.Text(row.name);
  hash.Fields(row.fields);
  hash.Number(row.opcode.value_or(0), 1);
  hash.Number(!row.opcode && traceevent::TakesOpcodeFrom(row.name) ? 1 : 0, 1);
  return hash.value();
}

bool GoesByName(const EventMetadata& row) {
  return absl::EqualsIgnoreCase(
      row.provider, {traceevent::kUniversalEvents.data(), traceevent::kUniversalEvents.size()});
}

std::uint64_t HashOf(std::string_view text) {
  Hash hash;
  hash.Text(text);
  return hash.value();
}

template <typename Map>
const typename Map::mapped_type* FindIn(const Map& map, const typename Map::key_type& key) {
  const auto found = map.find(key);
  return found == map.end() ? nullptr : &found->second;
}

}  // namespace

std::uint32_t HashedEventId(std::string_view name, const std::vector<Field>& fields,
                            std::uint8_t opcode) {
  Hash hash;
  hash.Text(name);
  hash.Fields(fields);
  hash.Number(opcode, 1);
  return kMinHashed +
         static_cast<std::uint32_t>(hash.value() % (kMaxGivenEventId + 1 - kMinHashed));
}

bool EventIdTable::Agrees(const Key& key, std::uint64_t schema) const {
  for (const Generation* rows : {&current_, &before_}) {
    if (const std::uint64_t* other = FindIn(rows->schemas, key); other && *other != schema) {
      return false;
    }
  }
  return true;
}

EventIdTable::Clash EventIdTable::Find(const EventMetadata& row) const {
  if (!Agrees({traceevent::ProviderGuid(row), row.event_id}, SchemaOf(row))) return Clash::kSchema;
  return IdOfName(row).value_or(row.event_id) == row.event_id ? Clash::kNone : Clash::kName;
}

void EventIdTable::Add(const EventMetadata& row) {
  current_.schemas.try_emplace({traceevent::ProviderGuid(row), row.event_id}, SchemaOf(row));
  if (GoesByName(row)) current_.ids_by_name.try_emplace(HashOf(row.name), row.event_id);
}

std::optional<std::uint32_t> EventIdTable::IdOfName(const EventMetadata& row) const {
  if (!GoesByName(row)) return std::nullopt;
  const std::uint64_t name = HashOf(row.name);
  for (const Generation* rows : {&current_, &before_}) {
    if (const std::uint32_t* id = FindIn(rows->ids_by_name, name)) return *id;
  }
  return std::nullopt;
}

std::optional<std::uint32_t> EventIdTable::FreeId(const EventMetadata& row) {
  const Guid provider = traceevent::ProviderGuid(row);
  const std::uint64_t schema = SchemaOf(row);
  std::uint32_t id = HashedEventId(row.name, row.fields, row.opcode.value_or(0));
  for (int i = 0; i < kMaxTries; ++i, id = NextEventId(id)) {
    if (Agrees({provider, id}, schema)) return id;
  }
  for (std::uint32_t& next = next_free_.try_emplace(provider, kMaxGivenEventId).first->second;
       next > 0; --next) {
    if (Agrees({provider, next}, schema)) return next;
  }
  return std::nullopt;
}

std::size_t EventIdTable::bytes() const {
  // Twice the size of an entry, because the maps may be half empty.
  constexpr std::size_t kEntry = 2 * sizeof(std::pair<Key, std::uint64_t>);
  return kEntry * (current_.schemas.size() + current_.ids_by_name.size() + before_.schemas.size() +
                   before_.ids_by_name.size());
}

void EventIdTable::StartGeneration() {
  if (before_.schemas.size() + current_.schemas.size() > max_entries_) before_ = {};
  before_.schemas.merge(current_.schemas);
  before_.ids_by_name.merge(current_.ids_by_name);
  current_ = {};
}

}  // namespace nettrace::internal
